#!/usr/bin/env bash
# Releases two platforms twice, compares, and installs what came out. The first release is signed and has a debug image over a base
# made here.
set -euo pipefail
(cd hack/release && . ../flags.sh && "${GO:-go}" test . && "${GO:-go}" vet .)
host="linux/$("${GO:-go}" env GOARCH)" arch=$("${GO:-go}" env GOARCH)
[ "$("${GO:-go}" env GOOS)" = linux ] || { echo "the release is tested on Linux only: NOT CHECKED"; exit 77; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
bindery=$PWD/dist/bindery
[ -x "$bindery" ] || make build SERVER_ARCHES="$arch"

# The base of the debug image: a static busybox.
base=''
if busybox=$(command -v busybox) && ! readelf -l "$busybox" | grep -q INTERP; then
    mkdir "$work/base"
    cp "$busybox" "$work/base/busybox"
    printf 'FROM scratch\nCOPY busybox /bin/busybox\nCOPY busybox /bin/sh\n' >"$work/base/Containerfile"
    "$bindery" -q build containerfile "$work/base" -t localhost/base:v1 --platform "$host" --to "oci:$work/base.oci:v1" >/dev/null
    base="oci:$work/base.oci:v1"
else
    echo "no static busybox is installed (Debian: busybox-static): no debug image"
fi
export BINDERY_SIGN_PASSPHRASE='a passphrase'
(cd "$work" && "$bindery" -q keys generate --name release)
dist=$work/dist
# The registry that the images are pushed to.
push='' port=5079
if command -v docker-registry >/dev/null; then
    printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: 127.0.0.1:%s}\n' "$work/registry" "$port" >"$work/registry.yml"
    docker-registry serve "$work/registry.yml" >"$work/registry.log" 2>&1 &
    registry=$!
    trap 'kill $registry 2>/dev/null || true; chmod -R u+w "$work"; rm -rf "$work"' EXIT
    for _ in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
    push=127.0.0.1:$port/acme/bindery BINDERY_USE_HTTP=true
    export BINDERY_USE_HTTP
fi
VERSION=v1.0.0 PLATFORMS="$host darwin/arm64" BASE=$base REPRODUCE_CACHE=keep REPRODUCE_DIST=$dist \
    REPRODUCE_FIRST="KEY=$work/release.key${push:+ PUSH=$push}" hack/reproduce.sh
[ -z "$push" ] || "$bindery" verify "$push:v1.0.0" --key "$work/release.pub"
hack/ci/installed.sh "$dist" "$work/release.pub"

# Two versions of the program make the same images.
tar -xzf "$dist/bindery_1.0.0_linux_$arch.tar.gz" -C "$work" bindery
platforms=$("$bindery" version -o json | jq -r '.servers | join(",")')
made() { # PROGRAM: the digests of a catalog, whose layers come from no cache, and of a bundle
    local at; at=$(mktemp -d -p "$work")
    XDG_CACHE_HOME=$at "$1" -q build catalog testdata/fbc/mini -t example.com/acme/catalog:v1 --to "oci:$at/catalog" \
        --platform "$platforms" | tail -n 1 &&
    XDG_CACHE_HOME=$at "$1" -q build bundle testdata/bundles/etcd/0.9.4 -t example.com/acme/bundle:v1 --to "oci:$at/bundle" | tail -n 1
}
one=$(made "$bindery")
two=$(made "$work/bindery")
[ "$one" = "$two" ] || { printf '%s\n' "two versions make different images" "$one" "$two"; exit 1; }
[ "$("$bindery" version)" != "$("$work/bindery" version)" ]
echo "== two versions of the program make the same images: $one"
