#!/bin/sh
# make demo: the bundled sample provider and the gateway on loopback, three calls with their answers, then it stays
# up until Ctrl-C.  ONCE=1 checks the answers and ends.
set -eu
: "${BUILD:=build/release}" "${ONCE:=0}"
http=${DEMO_PORT:-8080} admin=${DEMO_ADMIN_PORT:-9901} provider=${DEMO_PROVIDER_PORT:-20880}
tmp=$(mktemp -d)
pids=""
stop()
{
    trap - EXIT INT TERM
    for p in $pids; do kill "$p" 2> /dev/null || true; done
    wait 2> /dev/null || true
    rm -rf "$tmp"
}
trap stop EXIT
trap 'stop; exit 0' INT TERM

busy()
{
    hex=$(printf ':%04X' "$1")
    awk -v p="$hex" '$4 == "0A" && substr($2, length($2) - 4) == p { found = 1 } END { exit !found }' \
        /proc/net/tcp /proc/net/tcp6 2> /dev/null
}
for p in "DEMO_PORT $http" "DEMO_ADMIN_PORT $admin" "DEMO_PROVIDER_PORT $provider"; do
    if busy "${p#* }"; then
        echo "port ${p#* } is in use; choose another one: make demo ${p% *}=PORT" >&2
        exit 1
    fi
done

"$BUILD/stub-provider" -p "$provider" > "$tmp/provider.log" 2>&1 &
pids=$!
DEMO_LISTEN=127.0.0.1:$http DEMO_ADMIN=127.0.0.1:$admin DEMO_PROVIDER=127.0.0.1:$provider \
    "$BUILD/dubbogate" -c conf/demo.yaml > "$tmp/gateway.log" 2>&1 &
gateway=$!
pids="$pids $gateway"
n=0
until curl -s -o /dev/null "http://127.0.0.1:$admin/ready"; do
    n=$((n + 1))
    if [ $n -gt 100 ] || ! kill -0 $gateway 2> /dev/null; then
        echo "the gateway did not start:" >&2
        cat "$tmp/gateway.log" "$tmp/provider.log" >&2
        exit 1
    fi
    sleep 0.1
done

bad=0
# call TITLE EXPECTED curl-arguments…     EXPECTED: extended regular expression for status and body
call()
{
    title=$1 expected=$2
    shift 2
    printf '\n# %s\n$ curl -s' "$title"
    for a in "$@"; do
        case $a in *[!A-Za-z0-9:/._-]*) printf " '%s'" "$a" ;; *) printf ' %s' "$a" ;; esac
    done
    answer=$(curl -s -w ' %{http_code}' "$@")
    printf '\n%s\n' "${answer% *}"
    printf '%s' "$answer" | grep -Eqx "$expected" || { echo "unexpected: $answer" >&2; bad=1; }
}

cat << END

dubbogate is up: http://127.0.0.1:$http (calls), http://127.0.0.1:$admin (admin).
A small Dubbo provider (tests/stub, C) listens on 127.0.0.1:$provider with the service demo.UserService.
The configuration is conf/demo.yaml.
END
call "a route: the path variable becomes a Java long" \
    '\{"id":42,"name":"Zoë","tags":\["a","b"\],"balance":12345\.6700\} 200' \
    "http://127.0.0.1:$http/users/42"
call "a direct call: interface and method in the path, a JSON array of arguments" \
    '\{"id":1001,"name":"Zoë","balance":1\.5\} 200' \
    "http://127.0.0.1:$http/demo.UserService/createUser" -d '[{"name":"Zoë","balance":1.5}]'
call "an error: the provider's exception, mapped by the route" \
    '\{"title":"Not Found","status":404,"code":"USER_NOT_FOUND".*\} 404' \
    "http://127.0.0.1:$http/users/0"
[ $bad = 0 ] || exit 1

if [ "$ONCE" = 1 ]; then
    kill -TERM $gateway
    wait $gateway || { echo "the gateway ended with $?" >&2; exit 1; }
    printf '\nok\n'
    exit 0
fi
cat << END

Go on:  curl -s http://127.0.0.1:$admin/references      what the gateway knows
        $BUILD/dubbogate why demo.UserService --admin 127.0.0.1:$admin
        $BUILD/dubbogate call dubbo://127.0.0.1:$provider/demo.UserService getUser '[42]' -t long
Your own providers: README.md, "Your own ZooKeeper".   Ctrl-C stops everything.
END
wait $gateway
