#!/usr/bin/env bash
# Packs a collection of opm's recorded answers into testdata/recorded.tar.zst, from which internal/testing/recorded unpacks it for tests:
#
#   hack/recorded.sh DIRECTORY
#
# Files that are compressed one by one are decompressed first and keep their names: in one stream what they have in common is
# stored once, which makes half the size. Unpacking compresses them again.
set -euo pipefail
cd "$(dirname "$0")/.."
from=${1:?the directory of the collection}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r --no-preserve=mode "$from" "$work/all"
find "$work/all" -maxdepth 1 -name '*.md' -delete
find "$work/all" -name '*.zst' -print0 | while IFS= read -r -d '' f; do zstd -dqc "$f" >"$work/file"; mv "$work/file" "$f"; done
(cd "$work/all" && find . -type f -printf '%P\n' | LC_ALL=C sort >"$work/list" &&
    tar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 -cf - -T "$work/list") | zstd -19 --long=27 -q -f -o testdata/recorded.tar.zst
ls -l testdata/recorded.tar.zst
