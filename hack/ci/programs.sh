#!/usr/bin/env bash
# Installs the programs that the acceptance run needs and this machine lacks, from Debian's packages.
set -euo pipefail
missing=()
for pair in skopeo:skopeo podman:podman umoci:umoci docker-registry:docker-registry runc:runc buildah:buildah strace:strace setpriv:util-linux \
    chromium:chromium node:nodejs npm:npm curl:curl jq:jq newuidmap:uidmap busybox:busybox-static rpm:rpm openssl:openssl ruby:ruby \
    readelf:binutils etcd:etcd-server bzip2:bzip2 xz:xz-utils zstd:zstd file:file; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "all programs are installed"
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "cannot install ${missing[*]}: not root on Debian; the acceptance run reports what it lacks"
    exit 77
fi
apt-get update -q
apt-get install -q -y --no-install-recommends "${missing[@]}"
