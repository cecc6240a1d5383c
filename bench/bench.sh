#!/bin/bash
# make bench: the gateway and nginx proxy_pass in interleaved rounds against C stubs, in a network namespace.
# Prints CPU per request and the ratio, access logs of both go to a file; then user instructions per request
# (instructions.sh) and memory per reference and over a million calls (memory.py).  ROUNDS=5 SECONDS_EACH=2
set -eu
cd "$(dirname "$0")/.."
B=build/release
if [ "${BENCH_INSIDE:-}" != 1 ]; then
    mkdir -p build/bench
    for t in stub_provider stub_http idle_conns calls; do gcc -O2 -w -o build/bench/$t bench/$t.c; done
    cp bench/run.sh bench/post200.lua build/bench/
    env BENCH_INSIDE=1 unshare -n -u bash "$0" "$@"
    bash bench/instructions.sh
    VARIANT=release exec python3 bench/memory.py
fi
hostname localhost
ip link set lo up
ulimit -n 16384
gw="$PWD/$B/dubbogate -c $PWD/bench/gateway.yaml >> $PWD/build/bench/access.log"
ng="nginx -c $PWD/bench/nginx.conf >> $PWD/build/bench/nginx.log"
export LOGS="$PWD/build/bench/access.log $PWD/build/bench/nginx.log"
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
    bash build/bench/run.sh -r "${ROUNDS:-5}" -c "$conns" -d "${SECONDS_EACH:-2}" -w 1 -i "$idle" build/bench/targets > build/bench/out.txt 2> build/bench/err.txt
    awk -v t="$title" -v c="$conns" '/^median of/ { on = 1; next } /^$/ { on = 0 } on && $1 == "dubbogate" { a = $3; r = $2; k = $7; l = $8; e = $9 } on && $1 == "nginx" { b = $3 }
        END { printf "| %s | %s | %.2f | %.2f | %.2f | %d | %d | %d | %d |\n", t, c, a, b, b ? a / b : 0, r, k, l, e }' build/bench/out.txt
    grep 'KiB/conn' build/bench/out.txt | sed 's/^/    /' || true
}
echo '| answer | connections | dubbogate CPU us/request | nginx | ratio | req/s | idle RSS KiB | loaded RSS KiB | non-2xx |'
echo '|---|---|---|---|---|---|---|---|---|'
for c in ${CONNECTIONS:-1 64 1000}; do run '300 B' $c UserService/getUser small "$([ $c = 64 ] && echo 1000 || echo 0)"; done
run '4 KiB' 64 BigService/getUser big 0
sed 's/access: {.*/access: {target: none}/' bench/gateway.yaml > build/bench/no-log.yaml
sed 's/access_log .*/access_log off;/' bench/nginx.conf > build/bench/no-log.conf
gw="$PWD/$B/dubbogate -c $PWD/build/bench/no-log.yaml"
ng="nginx -c $PWD/build/bench/no-log.conf"
run '300 B, no access log' 64 UserService/getUser small 0
