#!/bin/sh
# Makes sure that what a target needs is installed.  usage: deps.sh build|test
# As root it installs what is missing from Debian; otherwise it prints the one line to run and fails.
set -eu

need_build="gcc make pkg-config libmicrohttpd-dev libzookeeper-mt-dev libjansson-dev libev-dev
            libyaml-dev zlib1g-dev libgnutls28-dev uthash-dev check"
need_test="$need_build clang libclang-rt-14-dev clang-format valgrind zookeeper python3
           openjdk-17-jdk-headless maven iproute2 util-linux curl nginx-light wrk procps"
case ${1:-build} in
build) need=$need_build ;;
demo) need="$need_build curl" ;;
test) need=$need_test ;;
*) echo "usage: deps.sh build|demo|test" >&2; exit 2 ;;
esac

installed()
{
    case $1 in
    # a JDK or Maven from elsewhere serves as well
    openjdk-17-jdk-headless) command -v javac > /dev/null 2>&1 && return 0 ;;
    maven) command -v mvn > /dev/null 2>&1 && return 0 ;;
    nginx-light) command -v nginx > /dev/null 2>&1 && return 0 ;;
    python3) command -v python3 > /dev/null 2>&1 && return 0 ;;
    esac
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'
}

missing=
for p in $need; do
    installed "$p" || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ]; then
    echo "installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    mkdir -p build
    { apt-get update -q && apt-get install -y -q --no-install-recommends $missing; } > build/deps.log 2>&1 ||
        { tail -n 20 build/deps.log >&2; exit 1; }
else
    echo "missing packages; run this as root, then try again:" >&2
    echo "  apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
