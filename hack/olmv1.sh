#!/bin/sh
# Packs what operator-controller answered for bundles to testdata/olmv1/render.tar.zst: cases.tsv (an answer a line, with
# the first digits of its SHA-256), errors/ (the texts of errors), bundles/ (those that testdata/recorded.tar.zst lacks).
#
#   hack/olmv1.sh RECORDED    a directory with cases.tsv, render.tar.zst, bundles-extra.tar.zst and bundles-synth.tar.zst
set -eu
recorded=$1
to=$(cd "$(dirname "$0")/.." && pwd)/testdata/olmv1/render.tar.zst
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
mkdir "$dir/all" "$dir/all/bundles" "$dir/render"
cp "$recorded/cases.tsv" "$dir/all/"
for part in extra synth; do
	zstd -dcq "$recorded/bundles-$part.tar.zst" | tar -xf - -C "$dir/all/bundles"
done
zstd -dcq "$recorded/render.tar.zst" | tar -xf - -C "$dir/render"
(cd "$dir/render/team" && find . -name '*.error' | sort | tar -cf - -T -) | (mkdir "$dir/all/errors" && tar -xf - -C "$dir/all/errors")
chmod -R u+w,a+rX "$dir/all"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=u=rw,go=r,a+X -cf - -C "$dir/all" cases.tsv bundles errors |
	zstd -19 --long=27 -qf -o "$to"
