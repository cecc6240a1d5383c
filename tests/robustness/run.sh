#!/bin/sh
# Plays tests/robustness/cases.json against the gateway over the C provider, in a namespace of its own.
# usage: run.sh [options of run.py]     VARIANT=debug|release|asan chooses the gateway
set -eu
cd "$(dirname "$0")/../.."
B=build/${VARIANT:-debug}
if [ "${ROBUSTNESS_INSIDE:-}" != 1 ]; then
    export ROBUSTNESS_INSIDE=1
    own=""
    unshare -n true 2> /dev/null || own=-r
    # shellcheck disable=SC2086
    exec unshare $own -n -u sh "$0" "$@"
fi
hostname localhost
ip link set lo up
ulimit -n 8192
mkdir -p build/check
"$B/stub-provider" -p 20880 -c 20881 > build/check/robustness-stub.log 2>&1 &
stub=$!
"$B/dubbogate" -c tests/robustness/gateway.yaml > build/check/robustness-access.log 2> build/check/robustness-gateway.log &
gateway=$!
trap 'kill $stub $gateway 2> /dev/null || true' EXIT
for _ in $(seq 100); do
    curl -s -o /dev/null http://127.0.0.1:9901/ready && break
    sleep 0.1
done
rc=0
python3 tests/robustness/run.py --target 127.0.0.1:8080 --path /demo.UserService/echo \
    --t-header 2 --t-body 2 --t-idle 3 --t-write 3 --max-conns 1000 \
    --calls-url http://127.0.0.1:20881/ --calls-re '"calls": *([0-9]+)' "$@" tests/robustness/cases.json || rc=$?
kill -TERM $gateway
wait $gateway || { echo "the gateway ended with $?"; rc=3; cat build/check/robustness-gateway.log | tail -40; }
exit $rc
