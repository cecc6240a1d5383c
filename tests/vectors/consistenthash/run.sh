#!/bin/sh
# Asks the ConsistentHashLoadBalance of two Dubbo lines; they agree, and what they say becomes tests/data/consistenthash.json.
# Needs a JDK and Maven, the network once.
set -eu
cd "$(dirname "$0")"
top=$(cd ../../.. && pwd)
for version in 2.7.23 3.2.15; do
    out=$top/build/consistenthash/$version
    mvn -q -B package -Ddubbo.version=$version -Dout="$out" > /dev/null
    java -cp "$out/classes:$out/lib/*" ConsistentHash 2> /dev/null | sed -n '/^\[/,$p' > "$out/rings.json"
done
cmp "$top/build/consistenthash/2.7.23/rings.json" "$top/build/consistenthash/3.2.15/rings.json"
cp "$top/build/consistenthash/3.2.15/rings.json" "$top/tests/data/consistenthash.json"
