#!/bin/sh
# Builds the sample provider for every Dubbo line into build/interop/LINE (Maven needs the network once).
# usage: build.sh [LINE …]   default: 2.6 2.7 3.2 3.3
set -eu
cd "$(dirname "$0")/../.."
top=$PWD
[ $# -gt 0 ] || set -- 2.6 2.7 3.2 3.3
mkdir -p build/interop
for line in "$@"; do
    out=$top/build/interop/$line
    stamp=$out/.built
    if [ -e "$stamp" ] && [ -e "$out/sample-provider.jar" ] && [ -z "$(find tests/interop/provider -newer "$stamp" -type f)" ]; then continue; fi
    if ! command -v javac > /dev/null || ! command -v mvn > /dev/null; then
        echo "a JDK and Maven are missing: apt-get install --no-install-recommends openjdk-17-jdk-headless maven" >&2
        exit 1
    fi
    echo "  MVN     provider for Dubbo $line"
    mvn -q -B -f tests/interop/provider/pom.xml package -Ddubbo.line="$line" -Ddubbo.out="$out" \
        > "build/interop/mvn-$line.log" 2>&1 || { tail -n 30 "build/interop/mvn-$line.log" >&2; exit 1; }
    touch "$stamp"
done
