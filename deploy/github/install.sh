#!/usr/bin/env bash
# Installs a release of bindery on a runner of GitHub Actions: downloads the archive for the runner, compares its SHA-256, and puts the
# program into PATH. action.yml runs it; checksums.txt beside it has the checksums of one release.
set -euo pipefail
fail() { echo "::error::$1"; exit 1; }

version=$BINDERY_ACTION_VERSION checksum=$BINDERY_ACTION_CHECKSUM
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "the input version is not a release such as v1.0.0"
program=bindery suffix=.tar.gz
case $RUNNER_OS-$RUNNER_ARCH in
    Linux-X64) platform=linux_amd64 ;;
    Linux-ARM64) platform=linux_arm64 ;;
    macOS-X64) platform=darwin_amd64 ;;
    macOS-ARM64) platform=darwin_arm64 ;;
    Windows-X64) platform=windows_amd64 program=bindery.exe suffix=.zip ;;
    *) fail "there is no release for $RUNNER_OS on $RUNNER_ARCH" ;;
esac
archive=bindery_${version#v}_$platform$suffix
if [ -z "$checksum" ]; then
    while read -r sum name; do
        [ "$name" != "$archive" ] || checksum=$sum
    done <"$(dirname "${BASH_SOURCE[0]}")/checksums.txt"
fi
[ -n "$checksum" ] || fail "the checksum of $archive is unknown: give the input checksum, from checksums.txt of the release"
[[ $checksum =~ ^[0-9a-f]{64}$ ]] || fail "the input checksum is not a SHA-256 in hexadecimal"
[[ ! $checksum =~ ^0+$ ]] || fail "the checksum of $archive is a placeholder: use the recipes of a release, or give the input checksum"

dir=$RUNNER_TEMP/bindery-$version
mkdir -p "$dir"
curl --fail --silent --show-error --location --proto '=https,file' --proto-redir '=https' --retry 3 --max-time 300 \
    --output "$dir/$archive" "$BINDERY_ACTION_RELEASES/$version/$archive"
if command -v sha256sum >/dev/null; then sum=$(sha256sum "$dir/$archive"); else sum=$(shasum -a 256 "$dir/$archive"); fi
if [ "${sum%% *}" != "$checksum" ]; then
    rm -f "$dir/$archive"
    fail "$archive has the SHA-256 ${sum%% *} and not $checksum"
fi
if [ "$suffix" = .zip ]; then unzip -q -o -d "$dir" "$dir/$archive" "$program"; else tar -xzf "$dir/$archive" -C "$dir" "$program"; fi
rm "$dir/$archive"
cache=${XDG_CACHE_HOME:-$HOME/.cache}
echo "$dir" >>"$GITHUB_PATH"
printf 'version=%s\npath=%s\ncache=%s\n' "$version" "$dir" "$cache/bindery" >>"$GITHUB_OUTPUT"
"$dir/$program" version
