#!/usr/bin/env bash
# Makes a release twice from copies of the source: in directories of different depth, with different umasks, time zones and, as root
# on Linux, users, the second time with an empty cache of the compiler. Fails if a file differs.
#   PLATFORMS="..."        the platforms, by default all
#   REPRODUCE_CACHE=keep   the second time too with the caller's cache: links again, but compiles little
#   REPRODUCE_DIST=DIR     keeps the first release there;  REPRODUCE_FIRST="KEY=..."  further variables for it
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
version=${VERSION:-v1.0.0}
: "${COMMIT:=$(git -C "$root" rev-parse --short=12 HEAD)}"
: "${DATE:=$(TZ=UTC git -C "$root" log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)}"
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
GOMODCACHE=$("${GO:-go}" env GOMODCACHE) GOCACHE=$("${GO:-go}" env GOCACHE)
export GOMODCACHE GOCACHE GOFLAGS=''

copy() { # DIR: the files that git knows, as they are now
    mkdir -p "$1"
    (cd "$root" && git ls-files -z | while IFS= read -rd '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
        tar --null -T - -cf -) | tar -C "$1" -xf -
}
make_release() { # SOURCE DIST VARIABLES...
    local source=$1 dist=$2; shift 2
    make --no-print-directory -C "$source" release VERSION="$version" COMMIT="$COMMIT" DATE="$DATE" PLATFORMS="${PLATFORMS:-}" \
        DIST="$dist" ${BASE:+BASE="$BASE"} "$@"
}

first=${REPRODUCE_DIST:-$work/first}
echo "== release 1: umask 022"
start=$SECONDS
copy "$work/source"
read -ra more <<<"${REPRODUCE_FIRST:-}"
(umask 022; TZ=UTC make_release "$work/source" "$first" "${more[@]}")
rm -rf "$work/source"

second=$work/some/other/place
copy "$second/of/the/source"
mkdir -p "$second/dist" "$second/cache" "$second/tmp"
as=()
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    chown -R 65534:65534 "$work/some"
    caps=+dac_override,+dac_read_search # for the caches of the first user
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "$caps" --ambient-caps "$caps")
fi
echo "== release 2 (the first took $((SECONDS - start)) s): umask 077${as[*]:+, user 65534}"
start=$SECONDS
[ "${REPRODUCE_CACHE:-}" = keep ] || export GOCACHE="$second/cache"
export -f make_release
export version COMMIT DATE
(umask 077; TMPDIR="$second/tmp" TZ=Pacific/Auckland LC_ALL=C "${as[@]}" bash -euc 'make_release "$@"' - "$second/of/the/source" "$second/dist")
echo "== it took $((SECONDS - start)) s"

# The list of checksums has every file but signatures and the index of the layout, in which signatures of images are.
diff "$first/checksums.txt" "$second/dist/checksums.txt"
for dist in "$first" "$second/dist"; do (cd "$dist" && sha256sum --quiet -c checksums.txt); done
[ -e "$first/checksums.txt.sig" ] || diff -r "$first" "$second/dist"
for f in "$second"/dist/*; do [ -d "$f" ] || [ "$(stat -c %a "$f")" = 644 ] || { echo "$f has the mode of the umask"; exit 1; }; done
echo "== equal: $(wc -l <"$first/checksums.txt") files, $(du -sh "$first" | cut -f 1)"
