#!/usr/bin/env bash
# Speed and memory of the main jobs, as ratios. opm cannot be had everywhere: its time here is what "gzip -6" takes on this
# machine for the same input, times a factor that was measured once with both side by side (opm with SQLite, two cores).
# buildah is measured beside, if it is installed.
#
#   BENCH_CATALOG=DIR  a large catalog directory      BENCH_DB=FILE  a large index database
#
# Without them ../shared/real is looked at, and last a catalog made of testdata, for which no factor is known.
set -euo pipefail
cd "$(dirname "$0")/.."
bindery=$(realpath "${1:-dist/bindery}")
runs=${BENCH_RUNS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
catalog=${BENCH_CATALOG:-}
db=${BENCH_DB:-}
real=../shared/real
known=1
if [ -z "$catalog" ] && [ -e $real/catalog-v4.16.tar.zst ] && command -v zstd >/dev/null; then
    mkdir "$work/real" && zstd -dc $real/catalog-v4.16.tar.zst | tar -x -C "$work/real"
    catalog=$(find "$work/real" -name '*.yaml' -o -name '*.json' | head -n 1 | xargs dirname | xargs dirname)
fi
if [ -z "$db" ] && [ -e $real/large.db.zst ] && command -v zstd >/dev/null; then
    zstd -dqc $real/large.db.zst >"$work/large.db"
    db=$work/large.db
fi
if [ -z "$db" ]; then db=testdata/db/small.db known=0; fi
if [ -z "$catalog" ]; then "$bindery" migrate "$db" "$work/catalog" -q; catalog=$work/catalog known=0; fi

# measure COMMAND... sets wall, cpu (seconds, the best of the runs) and rss (MB, the largest; 0 if it cannot be measured).
measure() {
    local i out w u s m
    wall=999999 cpu=999999 rss=0
    for i in $(seq "$runs"); do
        "${prepare[@]}"
        if [ -x /usr/bin/time ]; then
            /usr/bin/time -o "$work/time" -f '%e %U %S %M' "$@" >/dev/null 2>"$work/err" || { cat "$work/err"; return 1; }
            read -r w u s m < <(tail -n 1 "$work/time")
        else
            TIMEFORMAT='%R %U %S'
            { time "$@" >/dev/null 2>"$work/err"; } 2>"$work/time" || { cat "$work/err"; return 1; }
            read -r w u s <"$work/time"; m=0
        fi
        read -r wall cpu rss < <(awk "BEGIN{c=$u+$s; m=$m/1024; print ($w<$wall?$w:$wall), (c<$cpu?c:$cpu), (m>$rss?m:$rss)}")
    done
}
prepare=(true)

# row NAME GZIP WALL CPU: opm's seconds are WALL and CPU times gzip's CPU seconds. Where other work slows the machine down,
# the CPU seconds still compare.
row() {
    local name=$1 gzip=$2 wall_factor=$3 cpu_factor=$4
    if [ $known = 1 ]; then
        awk "BEGIN{o=$gzip*$wall_factor; c=$gzip*$cpu_factor; printf \"%-44s %7.2f s %7.2f s CPU %6.0f MB   opm here %5.1f s, %5.1f s CPU: %5.1f times faster, %5.1f in CPU\n\", \"$name\", $wall, $cpu, $rss, o, c, o/$wall, c/$cpu}"
    else
        awk "BEGIN{printf \"%-44s %7.2f s %7.2f s CPU %6.0f MB   %5.2f times gzip -6\n\", \"$name\", $wall, $cpu, $rss, $wall/$gzip}"
    fi
}

tar -cf "$work/catalog.tar" -C "$catalog" .
measure gzip -6 -c "$work/catalog.tar"; gzip_catalog=$cpu
measure gzip -6 -c "$db"; gzip_db=$cpu
echo "catalog $(du -sb "$catalog" | awk '{printf "%.1f MB", $1/1e6}'), gzip -6 takes $gzip_catalog s; database $(du -b "$db" | awk '{printf "%.1f MB", $1/1e6}'), gzip -6 takes $gzip_db s"
echo

measure "$bindery" validate "$catalog" -q; row "validate, catalog" "$gzip_catalog" 3.93 6.2
measure "$bindery" render "$catalog" -q; row "render, catalog" "$gzip_catalog" 3.29 5.6
measure "$bindery" list bundles "$db" -q; row "list bundles, database" "$gzip_db" 9.15 9.2
measure "$bindery" render "$db" -q; row "render, database" "$gzip_db" 7.11 7.1
prepare=(rm -rf "$work/out")
measure "$bindery" migrate "$db" "$work/out" -q; row "migrate, database" "$gzip_db" 7.32 7.5
measure "$bindery" migrate "$db" "$work/out" -o yaml --migrate-level bundle-object-to-csv-metadata -q; row "migrate to csv metadata, database" "$gzip_db" 6.91 6.9
rm -rf "$work/out"; prepare=(true)
"$bindery" migrate "$db" "$work/migrated" -q
tar -cf "$work/migrated.tar" -C "$work/migrated" .
measure gzip -6 -c "$work/migrated.tar"; rm "$work/migrated.tar"
gzip_migrated=$cpu
measure "$bindery" validate "$work/migrated" -q; row "validate, the catalog of the database" "$gzip_migrated" 4.14 5.3
rm -rf "$work/migrated"

echo
prepare=(rm -rf "$work/image")
image() { # NAME FLAGS...
    local name=$1; shift
    measure "$bindery" build catalog "$catalog" -t bench/catalog:v1 --output "oci:$work/image" -q "$@"
    awk "BEGIN{printf \"%-44s %7.2f s %7.2f s CPU %6.0f MB   %s in the image\n\", \"$name\", $wall, $cpu, $rss, \"$(du -sb "$work/image" | awk '{printf "%.1f MB", $1/1e6}')\"}"
}
image "build catalog, gzip, files only" --server none --cache none; gzip_build=$wall
image "build catalog, zstd, files only" --server none --cache none --compression zstd; zstd_build=$wall
image "build catalog, gzip, with server and cache"
image "build catalog, zstd, with server and cache" --compression zstd
if command -v buildah >/dev/null; then
    printf 'FROM scratch\nADD configs /configs\nLABEL operators.operatorframework.io.index.configs.v1=/configs\n' >"$work/Containerfile"
    mkdir "$work/context" && cp -r "$catalog" "$work/context/configs"
    prepare=(rm -rf "$work/store")
    if measure buildah --storage-driver vfs --root "$work/store" --runroot "$work/store/run" bud -q --format oci -f "$work/Containerfile" "$work/context"; then
        awk "BEGIN{printf \"%-44s %7.2f s %7.2f s CPU %6.0f MB   build catalog is %.1f times (gzip), %.1f times (zstd) faster\n\", \"buildah bud, vfs, the same files\", $wall, $cpu, $rss, $wall/$gzip_build, $wall/$zstd_build}"
    fi
else
    echo "buildah is not installed: nothing to compare with"
fi
