#!/bin/sh
# Layer check: a file may include only headers of its own layer and of the layers listed before it.
# usage: layers.sh base codec registry gateway
# Narrower than "all before": registry may not see codec, codec sees only five headers of base.
set -eu

bad=0
mkdir -p build
fail()
{
    echo "$1:$2: $3" >&2
    bad=1
}

allowed=""
for layer in "$@"; do
    allowed="$allowed $layer"
    case $layer in
    registry) ok=" base registry" ;;
    *) ok=$allowed ;;
    esac
    grep -nHo '^# *include *"[^"]*"' "$layer"/*.c "$layer"/*.h 2>/dev/null | tr -d '"' |
        sed 's/# *include *//' > build/.layers || true
    while IFS=: read -r file line inc; do
        top=${inc%%/*}
        case " $ok " in
        *" $top "*) ;;
        *) fail "$file" "$line" "$layer/ must not include $inc" ;;
        esac
        if [ "$layer" = codec ] && [ "$top" = base ]; then
            case $inc in
            base/compiler.h | base/buf.h | base/str.h | base/arena.h | base/fatal.h | base/err.h | base/hash.h) ;;
            *) fail "$file" "$line" "codec/ does no I/O, keeps no clock, writes no log: not $inc" ;;
            esac
        fi
    done < build/.layers
    case $layer in
    codec) pattern='<(sys/socket|netinet|arpa|unistd|time|pthread|ev|microhttpd|jansson|yaml|zookeeper)' ;;
    registry) pattern='<(microhttpd|yaml)' ;;
    gateway) pattern='<(zookeeper)' ;;
    *) pattern='<(ev|microhttpd|jansson|zookeeper)' ;;
    esac
    if grep -nHE "^# *include *$pattern" "$layer"/*.[ch]; then
        echo "$layer/: library not allowed in this layer" >&2
        bad=1
    fi
done

# Inside gateway/ too: a module includes only modules listed before it.
order=tests/tools/gateway-order
if [ -e "$order" ]; then
    grep -Ho '^# *include *"gateway/[^"]*"' gateway/*.[ch] | tr -d '"' | sed 's/# *include *//' |
        awk -F: -v order="$order" '
            function rank(path) {
                sub(/.*\//, "", path)
                sub(/\.[ch]$/, "", path)
                if (path in r) return r[path]
                sub(/_.*/, "", path) # balance_hash counts as balance
                return path in r ? r[path] : -1
            }
            BEGIN { while ((getline line < order) > 0) if (line !~ /^#/) for (i = split(line, m, " "); i > 0; i--) r[m[i]] = ++n }
            { a = rank($1); b = rank($2) }
            a < 0 || b < 0 { print $1 ": not in " order ": " (a < 0 ? $1 : $2); bad = 1; next }
            b > a && $1 !~ /main\.c$/ { print $1 ": must not include " $2 " (" order ")"; bad = 1 }
            END { exit bad }' >&2 || bad=1
fi

# Shared memory has few homes: everything else is owned by one thread.
if grep -nE '(^|[^A-Za-z0-9_])(_Atomic|atomic_)' "$@" -r --include='*.[ch]' | grep -vE '^base/(mailbox|ref|stats|log)\.[ch]:'; then
    echo "atomics only in base/mailbox, ref, stats, log" >&2
    bad=1
fi
if grep -nE 'pthread_(mutex|rwlock|cond|spin)' "$@" -r --include='*.[ch]' |
    grep -vE '^(base/log|registry/kind_zookeeper)\.c:'; then
    echo "locks only in base/log.c and registry/kind_zookeeper.c" >&2
    bad=1
fi

# No header of a module is reached through another module's header only: every .c includes its own.
for c in base/*.c codec/*.c registry/*.c gateway/*.c; do
    h=${c%.c}.h
    [ ! -e "$h" ] || grep -q "^#include \"$h\"" "$c" || { echo "$c: does not include $h" >&2; bad=1; }
done
exit $bad
