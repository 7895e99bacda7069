#!/usr/bin/env bash
# Installs a signed release of v1.0.0 in the ways that this machine has: archive, deb, rpm, image. Everything goes to a directory of its own,
# and is removed.
#   hack/ci/installed.sh DIST KEY.pub
set -euo pipefail
key=$(realpath "$2") arch=$("${GO:-go}" env GOARCH)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$1"
left=()
lacks() { left+=("$1"); }
start=$SECONDS
took() { echo "   took $((SECONDS - start)) s"; start=$SECONDS; }

echo "== archive, with its checksum and its signature"
base64 -d checksums.txt.sig >"$work/sig"
openssl dgst -sha256 -verify "$key" -signature "$work/sig" checksums.txt
grep "_linux_$arch.tar.gz\$" checksums.txt | sha256sum -c
mkdir "$work/bin"
tar -xzf "bindery_1.0.0_linux_$arch.tar.gz" -C "$work/bin"
"$work/bin/bindery" version -o json | tee "$work/version.json"
jq -e '.version == "v1.0.0" and .build == "usual" and (.servers | length) == 4 and .commit != "" and .date != ""' "$work/version.json" >/dev/null
ln -s bindery "$work/bin/kubectl-bindery"
"$work/bin/kubectl-bindery" --help | grep '^kubectl bindery - '
man=$(head -c 200 "$work/bin/man/man1/bindery.1"); [[ $man == *.TH* ]]
bash -n "$work/bin/completions/bindery.bash"
[ "$(grep -c '^====' "$work/bin/THIRD-PARTY-NOTICES.txt")" -gt 200 ]
if command -v ruby >/dev/null; then ruby -c bindery.rb; else lacks "the formula (ruby)"; fi
for f in bindery_1.0.0_*.spdx.json bindery_1.0.0_*.cdx.json; do jq -e '(.packages // .components) | length > 100' "$f" >/dev/null; done
took

echo "== the action of GitHub, from the recipes of the release"
mkdir "$work/recipes" "$work/runner" "$work/releases"
tar -xzf bindery_1.0.0_recipes.tar.gz -C "$work/recipes"
ln -s "$PWD" "$work/releases/v1.0.0"
case $arch in amd64) runner=X64 ;; arm64) runner=ARM64 ;; *) runner='' ;; esac
if [ -n "$runner" ]; then
    BINDERY_ACTION_VERSION=v1.0.0 BINDERY_ACTION_CHECKSUM='' BINDERY_ACTION_RELEASES="file://$work/releases" RUNNER_OS=Linux RUNNER_ARCH=$runner \
        RUNNER_TEMP=$work/runner GITHUB_PATH=$work/runner/path GITHUB_OUTPUT=$work/runner/output bash "$work/recipes/deploy/github/install.sh"
    "$(cat "$work/runner/path")/bindery" version
else
    lacks "the action (no runner is of $arch)"
fi
grep -F "$(grep ':v1.0.0@' images.txt)" "$work/recipes/deploy/ci/pod.yaml" >/dev/null
took

echo "== deb"
if [ "$(id -u)" = 0 ] && command -v dpkg >/dev/null; then
    mkdir -p "$work/deb/var/lib/dpkg/"{info,updates,triggers} && touch "$work/deb/var/lib/dpkg/"{status,available}
    installs() { dpkg --root="$work/deb" --force-architecture "$@" >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log"; exit 1; }; }
    installs --install bindery_*_"$arch".deb
    "$work/deb/usr/bin/kubectl-bindery" version
    zcat "$work/deb/usr/share/man/man1/bindery.1.gz" | grep '^\.TH'
    installs --purge bindery
    [ ! -e "$work/deb/usr/bin/bindery" ] || { echo "it is not removed"; exit 1; }
else
    lacks "the deb (dpkg, root)"
fi
took

echo "== rpm"
if [ "$(id -u)" = 0 ] && command -v rpm >/dev/null; then
    mkdir "$work/rpm"
    rpm -qp --qf '%{NAME} %{VERSION}-%{RELEASE} %{ARCH} %{LICENSE} built on %{BUILDHOST}\n' bindery-*."$(uname -m)".rpm 2>/dev/null
    rpm --root "$work/rpm" --dbpath /var/lib/rpm --ignorearch --nodeps --nosignature -i bindery-*."$(uname -m)".rpm
    "$work/rpm/usr/bin/bindery" version
    rpm --root "$work/rpm" --dbpath /var/lib/rpm --nodeps -e bindery
    [ ! -e "$work/rpm/usr/bin/bindery" ] || { echo "it is not removed"; exit 1; }
else
    lacks "the rpm (rpm, root)"
fi
took

echo "== images"
cat images.txt
"$work/bin/bindery" verify oci:bindery.oci:v1.0.0 --key "$key"
if [ "$(id -u)" = 0 ] && command -v umoci >/dev/null && command -v skopeo >/dev/null; then
    unpack() { skopeo copy -q "oci:bindery.oci:$1" "oci:$work/one.oci:$1" && umoci unpack --image "$work/one.oci:$1" "$work/$2" >/dev/null; }
    unpack v1.0.0 usual
    chroot --userspec=1001:0 "$work/usual/rootfs" /bin/opm version
    [ "$(stat -c '%u:%g %a' "$work/usual/rootfs/home/bindery")" = "1001:0 775" ] && [ "$(stat -c %a "$work/usual/rootfs/tmp")" = 1777 ]
    openssl crl2pkcs7 -nocrl -certfile "$work/usual/rootfs/etc/ca-certificates.crt" >/dev/null
    if grep -q :v1.0.0-debug@ images.txt; then
        unpack v1.0.0-debug debug
        chroot "$work/debug/rootfs" /bin/sh -c 'PATH=/usr/local/bin:/bin; bindery version && kubectl-bindery version'
    fi
else
    lacks "the files of the images (umoci, skopeo, root)"
fi
took
[ ${#left[@]} -eq 0 ] || { printf -v list '%s; ' "${left[@]}"; echo "equal and installed, but NOT CHECKED: ${list%; }"; exit 77; }
