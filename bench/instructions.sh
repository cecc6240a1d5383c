#!/bin/bash
# User instructions per request, by callgrind: the gateway and nginx proxy_pass, one worker, 16 connections, 200 B in,
# 300 B and 4 KiB out.  Each is run twice with different numbers of requests; the difference leaves out the start.
# Called by bench.sh, which built build/bench.  FEW=2000 MANY=6000
set -eu
cd "$(dirname "$0")/.."
if [ "${BENCH_INSIDE:-}" != 2 ]; then exec env BENCH_INSIDE=2 unshare -n -u bash "$0" "$@"; fi
hostname localhost
ip link set lo up
O=$PWD/build/bench FEW=${FEW:-2000} MANY=${MANY:-6000}
sed 's/^worker_processes.*/master_process off;/' bench/nginx.conf > "$O/nginx-one.conf"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
"$O/stub_provider" -p 20880 -A -s 300 & "$O/stub_provider" -p 20882 -A -s 4096 &
"$O/stub_http" -p 21431 -s 300 & "$O/stub_http" -p 21432 -s 4096 &
counted() # PORT PATH N COMMAND…: instructions of the whole run
{
    local port=$1 path=$2 n=$3 pid; shift 3
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$O/callgrind.log" "$@" > /dev/null 2>&1 &
    pid=$!
    for _ in $(seq 100); do "$O/calls" 127.0.0.1 "$port" "$path" 1 1 > /dev/null 2>&1 && break; sleep 0.2; done
    "$O/calls" 127.0.0.1 "$port" "$path" "$n" 16 > /dev/null
    kill -TERM $pid
    wait $pid || true
    awk '/Collected/ { print $NF }' "$O/callgrind.log"
}
each() # PORT PATH COMMAND…
{
    local a b
    a=$(counted "$1" "$2" "$FEW" "${@:3}")
    b=$(counted "$1" "$2" "$MANY" "${@:3}")
    echo $(((b - a) / (MANY - FEW)))
}
echo
echo '| answer | dubbogate instructions/request | nginx | ratio |'
echo '|---|---|---|---|'
for what in "300 B UserService/getUser small" "4 KiB BigService/getUser big"; do
    set -- $what
    ours=$(each 8080 "/com.example.bench.$3" build/release/dubbogate -c bench/gateway.yaml)
    theirs=$(each 21430 "/$4" nginx -c "$O/nginx-one.conf")
    echo "| $1 $2 | $ours | $theirs | $(awk "BEGIN { printf \"%.2f\", $ours / $theirs }") |"
done
