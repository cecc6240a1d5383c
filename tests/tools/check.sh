#!/bin/sh
# Runs the suites of `make check` one after another and ends with one line: N passed, N failed[, N skipped].
# usage: check.sh NAME=COMMAND …   Each suite's output goes to build/check/NAME.log.
# A suite that prints its own "N passed, N failed" line counts with these numbers, any other as one test.
set -u

mkdir -p build/check
passed=0
failed=0
skipped=0
for suite in "$@"; do
    name=${suite%%=*}
    log=build/check/$name.log
    start=$(date +%s)
    if sh -c "${suite#*=}" > "$log" 2>&1; then rc=0; else rc=$?; fi
    numbers=$(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p' "$log" | tail -n 1)
    if [ -z "$numbers" ]; then
        if [ "$rc" = 0 ]; then numbers="1 0 0"; else numbers="0 1 0"; fi
    fi
    set -f
    # shellcheck disable=SC2086
    set -- $numbers
    p=$1 f=$2 s=${3:-0}
    set +f
    if [ "$rc" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '  %-18s %5d passed, %d failed, %d skipped  (%d s)\n' "$name" "$p" "$f" "$s" $(($(date +%s) - start))
    [ "$f" = 0 ] || { grep -E '^(FAIL|not ok)|  FAIL|error:|ERROR: |Assert' "$log" | head -n 40; tail -n 25 "$log"; }
done
[ "$skipped" = 0 ] || [ "${ALLOW_SKIP:-0}" = 1 ] || {
    echo "$skipped tests were skipped (see the logs); ALLOW_SKIP=1 accepts that"
    failed=$((failed + 1))
}
if [ "$skipped" = 0 ]; then echo "$passed passed, $failed failed"; else echo "$passed passed, $failed failed, $skipped skipped"; fi
[ "$failed" = 0 ]
