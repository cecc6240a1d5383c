#!/bin/bash
# make bench: the gateway and nginx proxy_pass in interleaved rounds against C stubs, in a network namespace.
# Prints CPU per request and the ratio; access logs of both go to a file.  ROUNDS=3 SECONDS_EACH=2
set -eu
cd "$(dirname "$0")/.."
B=build/release
if [ "${BENCH_INSIDE:-}" != 1 ]; then
    mkdir -p build/bench
    for t in stub_provider stub_http idle_conns; do gcc -O2 -w -o build/bench/$t bench/$t.c; done
    cp bench/run.sh bench/post200.lua build/bench/
    exec env BENCH_INSIDE=1 unshare -n -u bash "$0" "$@"
fi
hostname localhost
ip link set lo up
ulimit -n 16384
gw="$PWD/$B/dubbogate -c $PWD/bench/gateway.yaml > $PWD/build/bench/access.log"
ng="nginx -c $PWD/bench/nginx.conf > $PWD/build/bench/nginx.log"
url=http://127.0.0.1:8080/com.example.bench
{
    for s in "stub_provider -p 20880 -A -s 300" "stub_provider -p 20882 -A -s 4096" "stub_http -p 21431 -s 300" "stub_http -p 21432 -s 4096"; do
        echo "stub|$PWD/build/bench/$s"
    done
} > build/bench/stubs
run()
{
    title=$1 conns=$2 ours=$3 theirs=$4 idle=$5
    { cat build/bench/stubs; echo "gw|dubbogate|$url.$ours|post200.lua|$gw"; echo "gw|nginx|http://127.0.0.1:21430/$theirs|post200.lua|$ng"; } > build/bench/targets
    bash build/bench/run.sh -r "${ROUNDS:-3}" -c "$conns" -d "${SECONDS_EACH:-2}" -w 1 -i "$idle" build/bench/targets > build/bench/out.txt 2> build/bench/err.txt
    awk -v t="$title" -v c="$conns" '/^median of/ { on = 1; next } /^$/ { on = 0 } on && $1 == "dubbogate" { a = $3; r = $2; k = $7; l = $8; e = $9 } on && $1 == "nginx" { b = $3 }
        END { printf "| %s | %s | %.2f | %.2f | %.2f | %d | %d | %d | %d |\n", t, c, a, b, b ? a / b : 0, r, k, l, e }' build/bench/out.txt
    grep 'KiB/conn' build/bench/out.txt | sed 's/^/    /' || true
}
echo '| answer | connections | dubbogate CPU us/request | nginx | ratio | req/s | idle RSS KiB | loaded RSS KiB | non-2xx |'
echo '|---|---|---|---|---|---|---|---|---|'
for c in 1 64 1000; do run '300 B' $c UserService/getUser small "$([ $c = 64 ] && echo 1000 || echo 0)"; done
run '4 KiB' 64 BigService/getUser big 0
