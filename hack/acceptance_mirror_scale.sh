# shellcheck shell=bash
# Mirrors of real catalogs, with a synthetic image in place of every image that they name, from and to docker's registry:
# killed at random, with an image that is gone, and brought to the next catalog by an inventory. What the registry has on
# disk is compared with that of a run that nothing disturbed. Sourced by hack/acceptance.sh, after acceptance_mirror.sh.

# scale_list PREFIX lists what the target has below a path: every tag, manifest and blob of every repository.
scale_list() {
    (cd "$at/target/docker/registry/v2/repositories/$1" &&
        find . -name link -not -path '*/_uploads/*' -print0 | sort -z | xargs -0 grep -H .)
}

# scale_run CATALOG ARGUMENT... mirrors the heads of a catalog.
scale_run() {
    local catalog=$1; shift
    "$bindery" mirror run -c "$at/$catalog.yaml" "$@" -q -o json >"$at/account.json"
}

# scale_kill DIRECTION ARGUMENT... kills a run after some time, again and again, until it has ended and as often as asked.
scale_kill() {
    local what=$1 i pid status ended=0; shift
    for i in $(seq "$(((${ACCEPTANCE_KILLS:-60} + 2) / 3))"); do
        "$bindery" mirror run -c "$at/v4.13.yaml" "$@" -q >/dev/null 2>&1 &
        pid=$!
        sleep "$(awk "BEGIN{srand($i); print 0.1 + rand() * 1.5}")"
        kill -9 $pid 2>/dev/null || true
        status=0; { wait $pid; } 2>/dev/null || status=$?
        [ $status = 137 ] || ended=$((ended + 1))
        # A catalog that is there names nothing that is not.
        if [ -d "$at/target/docker/registry/v2/repositories/$what/catalogs/c/_manifests/tags/v4.13" ]; then
            diff <(scale_list m) <(scale_list "$what") >/dev/null || { echo "$what: published before its images"; return 1; }
        fi
    done
    echo "$what: $i kills, $ended of them too late"
    scale_run v4.13 "$@"
}

scale() {
    at=$work/scale mirror_pids=()
    local source=127.0.0.1:$((port + 510)) target=127.0.0.1:$((port + 511)) v gone
    mkdir -p "$at"
    trap 'kill "${mirror_pids[@]}" 2>/dev/null' EXIT
    for v in v4.13 v4.16; do
        zstd -dc "testdata/real/catalog-$v.tar.zst" | tar -xC "$at"
        printf '%s\n' 'kind: ImageSetConfiguration' 'apiVersion: mirror.openshift.io/v2alpha1' 'mirror:' '  operators:' \
            "  - catalog: registry.example.com/catalogs/c:$v" >"$at/$v.yaml"
    done
    go run ./hack/synthesize -storage "$at/source" -catalogs "$at/catalogs" -divide 50 "$at/v4.13" "$at/v4.16"
    mirror_registry source $((port + 510))
    mirror_registry target $((port + 511))
    export BINDERY_USE_HTTP=true CONTAINERS_REGISTRIES_CONF=$at/registries.conf
    printf '[[registry]]\nprefix = "registry.example.com"\nlocation = "%s"\ninsecure = true\n' "$source" >"$at/registries.conf"
    for v in v4.13 v4.16; do
        quiet build catalog "$at/catalogs/$v" -t "$source/catalogs/c:$v" --cache opm-json --push >/dev/null
    done

    # Undisturbed: what all else is compared with. Again, nothing is sent.
    scale_run v4.13 --workspace "$at/wm" "docker://$target/m"
    jq -c .totals "$at/account.json"
    scale_list m >"$at/want"
    [ "$(jq .totals.copied "$at/account.json")" -gt 40 ]
    scale_run v4.13 --workspace "$at/wm" "docker://$target/m"
    [ "$(jq '.totals.copied + .totals.sent' "$at/account.json")" = 0 ]
    quiet mirror verify "docker://$target/m" --workspace "$at/wm"

    # What the published catalog has is what the plan keeps.
    "$bindery" mirror plan -c "$at/v4.13.yaml" -q -o json | jq -r '.catalogs[].packages[].bundles[]' | sort -u >"$at/planned"
    [ "$(wc -l <"$at/planned")" -gt 10 ]
    "$bindery" list bundles "$target/m/catalogs/c:v4.13" -q -o json | jq -r '.[].name' | sort -u | diff "$at/planned" -

    # Killed in each direction.
    scale_kill k --workspace "$at/wk" "docker://$target/k"
    scale_list k | diff "$at/want" -
    scale_kill medium "file://$at/medium" --archive-size 8MiB --all
    quiet mirror verify "file://$at/medium" >/dev/null
    scale_kill d --from "$at/medium" "docker://$target/d"
    scale_list d | diff "$at/want" -

    # An image that is gone takes its bundle with it; when it is back, nothing tells that it was not there.
    gone=$(jq -r '[.images[] | select(.type == "operatorRelatedImage" and (.bundles | length == 1))][0].digest[7:]' "$at/account.json")
    mv "$at/source/docker/registry/v2/blobs/sha256/${gone:0:2}/$gone" "$at/gone"
    local status=0
    scale_run v4.13 --workspace "$at/wg" "docker://$target/g" 2>"$at/error" || status=$?
    [ $status = 4 ] && [ "$(jq '.catalogs[0].leftOut | length' "$at/account.json")" = 1 ]
    grep -F "left out: bundle $(jq -r '.catalogs[0].leftOut[0].bundle' "$at/account.json")" "$at/error" | grep -F "needs $(jq -r '.catalogs[0].leftOut[0].image' "$at/account.json")" >/dev/null
    quiet mirror verify "docker://$target/g" --workspace "$at/wg" >/dev/null
    mv "$at/gone" "$at/source/docker/registry/v2/blobs/sha256/${gone:0:2}/$gone"
    scale_run v4.13 --workspace "$at/wg" "docker://$target/g"
    scale_list g | grep -v ^./catalogs/ | diff <(grep -v ^./catalogs/ "$at/want") -

    # To the next catalog, by what the target says that it has.
    quiet mirror inventory "docker://$target/k" --to "$at/inventory.json.gz" >/dev/null
    scale_run v4.16 --against "$at/inventory.json.gz" "file://$at/delta"
    jq -c .totals "$at/account.json"
    scale_run v4.16 --from "$at/delta" "docker://$target/k"
    scale_run v4.16 --workspace "$at/wn" "docker://$target/n"
    [ -z "$(comm -13 <(scale_list k) <(scale_list n))" ]
    quiet mirror verify "docker://$target/k" -c "$at/v4.16.yaml"
}

check scale docker-registry jq zstd -- scale
