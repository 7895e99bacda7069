# shellcheck shell=bash
# Mirrors through the programs that others use on them: docker's registry at both ends, skopeo by the names in the catalog and in
# archives, the published catalog in a container of podman; kill -9 in the middle; deleting. Sourced by hack/acceptance.sh.

# mirror_blob FILE puts a blob into the storage of the source registry and prints its digest without the algorithm.
mirror_blob() {
    local hex; hex=$(sha256sum "$1" | cut -d' ' -f1)
    local dir=$at/source/docker/registry/v2/blobs/sha256/${hex:0:2}/$hex
    mkdir -p "$dir"
    cp "$1" "$dir/data"
    echo "$hex"
}

# mirror_link DIR HEX writes a link of the storage.
mirror_link() { mkdir -p "$1" && printf 'sha256:%s' "$2" >"$1/link"; }

# mirror_manifest REPOSITORY FILE [TAG...] puts a manifest there, whose blobs are in the storage.
mirror_manifest() {
    local repo=$at/source/docker/registry/v2/repositories/$1 file=$2 hex blob tag; shift 2
    hex=$(mirror_blob "$file")
    mirror_link "$repo/_manifests/revisions/sha256/$hex" "$hex"
    for tag in "$@"; do
        mirror_link "$repo/_manifests/tags/$tag/current" "$hex"
        mirror_link "$repo/_manifests/tags/$tag/index/sha256/$hex" "$hex"
    done
    for blob in $(jq -r '(.config // empty, (.layers // [])[]).digest' "$file"); do
        mirror_link "$repo/_layers/sha256/${blob#sha256:}" "${blob#sha256:}"
    done
}

# mirror_registry NAME PORT starts a registry on the directory NAME.
mirror_registry() {
    local i
    mkdir -p "$at/$1"
    cat >"$at/$1.yml" <<END
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $at/$1}, delete: {enabled: true}}
http: {addr: 127.0.0.1:$2}
END
    docker-registry serve "$at/$1.yml" >"$at/$1.log" 2>&1 &
    mirror_pids+=($!)
    for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null && break; sleep 0.05; done
}

# mirror_source fills the source registry: the fixture, and an image of 40 MiB, which takes a while to copy.
mirror_source() {
    local n m blob
    mkdir "$at/fixture"
    zstd -dc testdata/mirror/fixture.tar.zst | tar -xC "$at/fixture"
    for blob in "$at"/fixture/blobs/*; do mirror_blob "$blob" >/dev/null; done
    n=$(jq length "$at/fixture/manifests.json")
    jq -r '.[] | [.repository, .digest[7:]] + .tags | join(" ")' "$at/fixture/manifests.json" >"$at/manifests"
    [ "$(wc -l <"$at/manifests")" = "$n" ]
    while read -r -a m; do mirror_manifest "${m[0]}" "$at/fixture/blobs/${m[1]}" "${m[@]:2}"; done <"$at/manifests"
    head -c $((40 << 20)) /dev/urandom >"$at/random"
    tar -cf "$at/large.layer" -C "$at" random
    printf '{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
        "$(mirror_blob "$at/large.layer")" >"$at/large.config"
    jq -n --arg c "sha256:$(mirror_blob "$at/large.config")" --argjson cs "$(stat -c %s "$at/large.config")" \
        --arg l "sha256:$(mirror_blob "$at/large.layer")" --argjson ls "$(stat -c %s "$at/large.layer")" \
        '{schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
          config: {mediaType: "application/vnd.oci.image.config.v1+json", digest: $c, size: $cs},
          layers: [{mediaType: "application/vnd.oci.image.layer.v1.tar", digest: $l, size: $ls}]}' >"$at/large.json"
    mirror_manifest extra/large "$at/large.json" v1
}

# mirror_list PATH lists what the target has below a path: names, tags and digests.
mirror_list() {
    local repo tag
    for repo in $(curl -sf "http://$target/v2/_catalog?n=1000" | jq -r '.repositories[]'); do
        [[ $repo == "$1"/* ]] || continue
        for tag in $(curl -sf "http://$target/v2/$repo/tags/list" | jq -r '.tags // [] | sort[]'); do
            echo "${repo#"$1/"} $tag $(mirror_digest "$repo" "$tag")"
        done
    done
}

mirror_digest() {
    curl -sfI -H 'Accept: application/vnd.oci.image.index.v1+json' -H 'Accept: application/vnd.oci.image.manifest.v1+json' \
        -H 'Accept: application/vnd.docker.distribution.manifest.v2+json' \
        -H 'Accept: application/vnd.docker.distribution.manifest.list.v2+json' "http://$target/v2/$1/manifests/$2" |
        tr -d '\r' | awk 'tolower($1) == "docker-content-digest:" {print $2}'
}

# mirror_run ARGUMENT... mirrors without a word.
mirror_run() { quiet mirror run -c "$at/imageset.yaml" "$@" >"$at/run.out"; }

mirrors() {
    at=$work/mirror mirror_pids=()
    local source=127.0.0.1:$((port + 500)) target=127.0.0.1:$((port + 501)) form i
    mkdir -p "$at"
    trap 'kill "${mirror_pids[@]}" 2>/dev/null' EXIT
    mirror_source
    mirror_registry source $((port + 500))
    mirror_registry target $((port + 501))
    export BINDERY_USE_HTTP=true CONTAINERS_REGISTRIES_CONF=$at/registries.conf
    printf '[[registry]]\nprefix = "registry.example.com"\nlocation = "%s"\ninsecure = true\n' "$source" >"$at/registries.conf"
    # The catalog of the fixture, on a base that serves.
    mkdir -p "$at/catalog"
    quiet render registry.example.com/acme/catalog:v1 -o json >"$at/catalog/catalog.json"
    quiet build catalog "$at/catalog" -t "$source/acme/served:v1" --push >/dev/null
    cat >"$at/imageset.yaml" <<END
kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: registry.example.com/acme/served:v1
    packages: [{name: alpha-op}, {name: beta-op}, {name: delta-op}]
  additionalImages:
  - name: registry.example.com/extra/tool:v1
  - name: registry.example.com/extra/large:v1
END

    # From registry to registry; again, nothing is sent.
    mirror_run --workspace "$at/ws" "docker://$target/m"
    mirror_list m >"$at/want"
    [ "$(wc -l <"$at/want")" -gt 12 ]
    "$bindery" mirror run -c "$at/imageset.yaml" --workspace "$at/ws" "docker://$target/m" -q -o json >"$at/again.json"
    [ "$(jq '.totals.sent, .totals.failed' "$at/again.json" | tr '\n' ' ')" = '0 0 ' ]
    quiet mirror verify "docker://$target/m" --workspace "$at/ws" >/dev/null

    # Across an air gap in both forms of archive; the registry has the same, and the archives are whole.
    for form in oci oc-mirror; do
        mirror_run --archive-format $form "file://$at/media-$form"
        quiet mirror verify "file://$at/media-$form" >/dev/null
        mkdir "$at/there-$form" && mv "$at/media-$form"/mirror_*.tar "$at/there-$form/"
        mirror_run --from "$at/there-$form" "docker://$target/$form"
        mirror_list $form | diff "$at/want" -
    done
    skopeo copy -q "oci-archive:$at/there-oci/mirror_000001.tar:acme/common:v1" "dir:$at/common"
    [ "sha256:$(sha256sum "$at/common/manifest.json" | cut -d' ' -f1)" = "$(awk '$1 == "acme/common" && $2 == "v1" {print $3}' "$at/want")" ]

    # Every image that the published catalog names, by the name that it has there, with the file for hosts: from the mirror alone.
    "$bindery" list images "$target/m/acme/served:v1" -q >"$at/images"
    [ "$(wc -l <"$at/images")" -gt 6 ]
    # skopeo takes a tag or a digest, not both.
    for i in $(sed "s/:[^:@/]*@/@/" "$at/images"); do
        skopeo --registries-conf "$at/ws/working-dir/cluster-resources/registries.conf" \
            copy -q --all "docker://$i" "dir:$at/pulled" || { echo "$i cannot be pulled from the mirror"; return 1; }
        rm -rf "$at/pulled"
    done

    # Signatures of an index and of its images, byte for byte.
    awk '$2 ~ /\.sig$/ {print $1, $2}' "$at/want" >"$at/sigs"
    [ "$(wc -l <"$at/sigs")" -ge 3 ]
    while read -r repo tag; do
        for i in "$source" "$target/m"; do
            skopeo inspect --raw --tls-verify=false "docker://$i/$repo:$tag" | sha256sum
        done | uniq | wc -l | diff - <(echo 1)
    done <"$at/sigs"

    # Under the name oc-mirror, with its arguments and files.
    ln -s "$bindery" "$at/oc-mirror"
    "$at/oc-mirror" -c "$at/imageset.yaml" --workspace "file://$at/oc" "docker://$target/oc" --dest-tls-verify=false --v2 >"$at/oc.out" 2>&1
    diff <(grep -v 'acme/served' "$at/want") <(mirror_list oc | grep -v 'acme/served')
    ls "$at/oc/working-dir/cluster-resources/cs-served-v1.yaml" "$at/oc/working-dir/cluster-resources/idms-oc-mirror.yaml" >/dev/null

    mirror_killed
    mirror_container
    mirror_delete
}

# Killed at any moment, on the way to a registry, into an archive and out of it: the next run ends as one that was not.
mirror_killed() {
    local i
    for i in $(seq 9); do
        case $((i % 3)) in
        0) set -- --workspace "$at/wk" "docker://$target/k" ;;
        1) set -- "file://$at/media-k" ;;
        2) set -- --from "$at/there-oci" "docker://$target/kd" ;;
        esac
        "$bindery" mirror run -c "$at/imageset.yaml" "$@" -q >/dev/null 2>&1 &
        local pid=$!
        sleep "$(awk "BEGIN{srand($i); print 0.05 + rand() * 0.3}")"
        kill -9 $pid 2>/dev/null || true; wait $pid 2>/dev/null || true
    done
    mirror_run --workspace "$at/wk" "docker://$target/k"
    mirror_list k | diff "$at/want" -
    mirror_run --from "$at/there-oci" "docker://$target/kd"
    mirror_list kd | diff "$at/want" -
    rm -rf "$at/wk2"
    mirror_run --all "file://$at/media-k"
    quiet mirror verify "file://$at/media-k" >/dev/null
    cmp <(cd "$at/media-k" && tar -tf mirror_000001.tar | grep ^blobs/ | sort) <(tar -tf "$at/there-oci/mirror_000001.tar" | grep ^blobs/ | sort)
}

# The published catalog serves what was kept.
mirror_container() {
    command -v podman >/dev/null || return 0
    local p=$((port + 502)) name=bindery-mirror-$$ status=0 i
    printf '[[registry]]\nlocation = "%s"\ninsecure = true\n' "$target" >"$at/insecure.conf"
    CONTAINERS_REGISTRIES_CONF=$at/insecure.conf podman pull -q "$target/m/acme/served:v1" >/dev/null
    # shellcheck disable=SC2086
    podman $podman_flags run -d --rm --name $name --network host --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
        --read-only --read-only-tmpfs=false --cap-drop ALL --security-opt no-new-privileges --user 1000690000:0 \
        "$target/m/acme/served:v1" serve /configs -p $p >/dev/null
    for i in $(seq 200); do "$bindery" probe -connect-timeout 100ms -addr 127.0.0.1:$p >/dev/null 2>&1 && break; sleep 0.05; done
    "$bindery" probe -addr 127.0.0.1:$p >/dev/null || status=1
    "$work/rpc" 127.0.0.1:$p packages | diff - <(printf 'alpha-op\nbeta-op\ndelta-op\n') || status=1
    "$work/rpc" 127.0.0.1:$p bundles | awk '{print $3}' | sort | diff - <("$bindery" list bundles "$target/m/acme/served:v1" -q -o json | jq -r '.[].name' | sort -u) || status=1
    [ $status = 0 ] || podman logs $name
    # shellcheck disable=SC2086
    podman $podman_flags stop -t 20 $name >/dev/null || status=1
    podman rmi -f "$target/m/acme/served:v1" >/dev/null
    return $status
}

# What nothing else needs is deleted, twice without an error; the rest is whole.
mirror_delete() {
    cat >"$at/delete.yaml" <<END
kind: DeleteImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
delete:
  operators:
  - catalog: registry.example.com/acme/served:v1
    packages: [{name: alpha-op}]
END
    "$bindery" mirror delete -c "$at/delete.yaml" --workspace "$at/ws" --list "$at/list.yaml" "docker://$target/m" -q
    grep acme/alpha-app "$at/list.yaml" >/dev/null
    "$bindery" mirror delete --list "$at/list.yaml" "docker://$target/m" -q -o json >"$at/deleted.json"
    "$bindery" mirror delete --list "$at/list.yaml" "docker://$target/m" -q >/dev/null
    ! mirror_list m | grep alpha-app
    mirror_list m | grep '^acme/common ' >/dev/null
    sed -i 's/{name: alpha-op}, //' "$at/imageset.yaml"
    mirror_run --workspace "$at/ws" "docker://$target/m"
    quiet mirror verify "docker://$target/m" -c "$at/imageset.yaml" >/dev/null
}

check mirrors docker-registry skopeo curl jq zstd -- mirrors
