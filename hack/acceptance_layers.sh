# shellcheck shell=bash
# Layers: what moves when a package changes, what is shared between repositories and images, how other programs read what is
# made of it, and the cache of layers under faults. Sourced by hack/acceptance.sh after hack/acceptance_index.sh, whose
# functions and variables it uses.

layers_port=$((port + 200))
layers_repo=127.0.0.1:$layers_port
layers_dir=$work/layers
layers_catalog=testdata/fbc/mini

# A registry whose log of requests is looked at.
layers_setup() {
    mkdir -p "$layers_dir/registry" "$layers_dir/tmp"
    cat >"$layers_dir/registry.yml" <<END_CONFIG
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: $layers_dir/registry}}
http: {addr: $layers_repo}
END_CONFIG
    docker-registry serve "$layers_dir/registry.yml" >"$layers_dir/registry.log" 2>&1 &
    pids+=($!)
    local i; for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$layers_port") 2>/dev/null && break; sleep 0.05; done
    recorded golden-grpc/fbc-mini/calls.ndjson.zst >"$layers_dir/calls.ndjson"
}

# layered runs the command with a cache and temporary files in places of their own. layered_exec is the program itself.
layered() { (layered_exec "$@"); }
layered_exec() { exec env SEAL=what-seals-the-records BINDERY_CACHE_KEY=env://SEAL XDG_CACHE_HOME="${layers_cache:-$layers_dir/cache}" TMPDIR="$layers_dir/tmp" "$bindery" "$@" -q --use-http; }
layered_digest() { local last; last=$(layered build catalog "$@" | tail -n 1); echo "${last#*@}"; }

# asked REGEX counts the requests since the last layers_mark. The log is written just after the answer.
layers_mark() { sleep 0.1; layers_seen=$(wc -l <"$layers_dir/registry.log"); }
asked() { sleep 0.1; tail -n +$((layers_seen + 1)) "$layers_dir/registry.log" | grep -cE "$1" || true; }

# The bytes of all blobs and manifests in the registry.
layers_stored() { find "$layers_dir/registry/docker/registry/v2/blobs" -type f -printf '%s\n' | awk '{n += $1} END {print n}'; }

# Asks what the catalog's recording asked.
layers_answers() { serve_image "$1" "$work/rpc" PORT replay "$layers_dir/calls.ndjson"; }

# One package edited: its layer moves. Another repository: nothing moves. The same again: nothing is made or sent.
layers_delta() {
    local at=$layers_dir/delta repo=$layers_repo/acme/delta before grown sent layer n
    mkdir -p "$at" && cp -r $layers_catalog "$at/catalog"
    layered build catalog "$at/catalog" -t "$repo:v1" --push >/dev/null
    echo '# edited' >>"$at/catalog/shipwright-operator/catalog.yaml"
    before=$(layers_stored); layers_mark
    layered build catalog "$at/catalog" -t "$repo:v2" --push --metadata-file "$at/account.json" >/dev/null
    grown=$(($(layers_stored) - before))
    sent=$(jq '.traffic.pushed.bytes + .traffic.manifests.bytes' "$at/account.json")
    layer=$(jq '.layers[] | select(.packages == ["shipwright-operator"]) | .bytes' "$at/account.json")
    [ -n "$layer" ]
    echo "one package edited: its layer has $layer bytes, $sent were sent, $grown are new in the registry"
    # The manifest is sent twice, under its digest and under its tag.
    [ "$sent" -ge "$grown" ]
    [ $((10 * sent)) -le $((11 * layer + 200000)) ]
    [ "$(asked '"(PATCH|PUT) /v2/acme/delta/blobs/uploads/[^"]*" 20[12]')" -le 4 ]
    [ "$(jq '[.layers[] | select(.transfer == "pushed")] | length' "$at/account.json")" = 1 ]
    # Another repository takes all layers from the one of the previous image, says the registry's log; its configuration is sent.
    layers_mark
    layered build catalog "$at/catalog" -t "$layers_repo/other/delta:v2" --push --previous "$repo:v2" --metadata-file "$at/mounted.json" >/dev/null
    n=$(jq '.layers | length' "$at/mounted.json")
    [ "$(asked '"POST /v2/other/delta/blobs/uploads/\?[^"]*mount=[^"]*" 201')" -ge "$n" ]
    [ "$(asked '"PATCH /v2/other/delta/blobs/')" -le 1 ]
    [ "$(jq '[.layers[] | select(.transfer == "mounted")] | length' "$at/mounted.json")" = "$n" ]
    echo "another repository: $n layers mounted, $(jq '.traffic.pushed.bytes' "$at/mounted.json") bytes sent"
    # Without the blobs in the cache, what had to be compressed would be put there.
    rm -rf "$layers_dir/cache/bindery/blobs"; layers_mark
    layered build catalog "$at/catalog" -t "$repo:v3" --push --metadata-file "$at/again.json" >/dev/null
    # One upload is begun and given up, to see whether the registry takes any.
    [ "$(asked '"(PATCH|PUT) /v2/acme/delta/blobs/')" = 0 ]
    [ "$(asked '"POST /v2/acme/delta/blobs/')" -le 1 ]
    [ "$(asked '"POST /v2/acme/delta/blobs/')" = "$(asked '"DELETE /v2/acme/delta/blobs/uploads/')" ]
    [ "$(jq '.traffic.pushed.count' "$at/again.json")" = 0 ]
    [ -z "$(find "$layers_dir/cache/bindery/blobs" -type f -size +0 2>/dev/null)" ] || { find "$layers_dir/cache/bindery/blobs" -type f; return 1; }
}

# layers_package DIR NAME WEIGHT writes a package, of more or less bytes.
layers_package() {
    mkdir -p "$1/$2"
    printf -- '---\nschema: olm.package\nname: %s\ndefaultChannel: stable\ndescription: "%0*d"\n---\nschema: olm.channel\npackage: %s\nname: stable\nentries: [{name: %s.v1.0.0}]\n---\nschema: olm.bundle\nname: %s.v1.0.0\npackage: %s\nimage: quay.io/acme/%s:v1.0.0\nproperties: [{type: olm.package, value: {packageName: %s, version: 1.0.0}}]\n' \
        "$2" "$3" 0 "$2" "$2" "$2" "$2" "$2" "$2" >"$1/$2/catalog.yaml"
}

# groups_of NAME FLAGS... builds and leaves the digests of the layers of packages in NAME; layers_new OLD NEW counts those of
# NEW that OLD has not.
groups_of() {
    local name=$1; shift
    layered build catalog "$layers_dir/groups/catalog" -t acme/groups:v1 --server none --cache none --max-layers 10 --to "oci:$layers_dir/groups/$name:v1" \
        --metadata-file "$layers_dir/groups/$name.json" "$@" >/dev/null
    jq -r '.layers[] | select(.packages) | .digest' "$layers_dir/groups/$name.json" | sort >"$layers_dir/groups/$name.txt"
    [ "$(wc -l <"$layers_dir/groups/$name.txt")" -le 10 ]
}
layers_new() { comm -13 "$layers_dir/groups/$1.txt" "$layers_dir/groups/$2.txt" | wc -l; }

# More packages than layers: an edit moves one group, an addition or a removal two at most; with --previous no more than that.
layers_groups() {
    local at=$layers_dir/groups i step before=start after
    mkdir -p "$at"
    for i in $(seq 40); do layers_package "$at/catalog" "package-$i" $((i * i)); done
    groups_of start
    for step in edit add remove grow add2 remove2; do
        case $step in
        edit) echo '# edited' >>"$at/catalog/package-7/catalog.yaml" ;;
        grow) layers_package "$at/catalog" package-3 20000 ;;
        add) layers_package "$at/catalog" another 700 ;;
        add2) layers_package "$at/catalog" yet-another 7000 ;;
        remove) rm -r "$at/catalog/package-12" ;;
        remove2) rm -r "$at/catalog/package-40" ;;
        esac
        after=$step
        groups_of "$after"; groups_of "$after-kept" --previous "oci:$at/$before:v1"
        echo "$step: $(layers_new "$before" "$after") of $(wc -l <"$at/$after.txt") layers are new, $(layers_new "$before" "$after-kept") with --previous"
        case $step in edit) i=1 ;; *) i=2 ;; esac
        [ "$(layers_new "$before" "$after")" -le $i ]
        [ "$(layers_new "$before" "$after")" -ge 1 ]
        case $step in remove*) i=2 ;; *) i=1 ;; esac
        [ "$(layers_new "$before" "$after-kept")" -le $i ]
        before=$after
    done
    # What the plan tells is what is built, in whatever order the files are found.
    layered build catalog "$at/catalog" --server none --cache none --max-layers 10 --plan --metadata-file - | jq -c '[.layers[].packages | select(.)]' >"$at/planned"
    jq -c '[.layers[].packages | select(.)]' "$at/$before.json" | diff "$at/planned" -
    mkdir "$at/other" && (cd "$at/catalog" && for i in $(printf '%s\n' * | sort -R --random-source=/dev/zero); do cat "$i/catalog.yaml"; done) >"$at/other/all.yaml"
    layered build catalog "$at/other" --server none --cache none --max-layers 10 --plan --metadata-file - | jq -c '[.layers[].packages | select(.)]' | diff "$at/planned" -
}

# Every package in a repository of its own; the composition is the image of the union, and no layer is fetched for it.
layers_compose() {
    local at=$layers_dir/compose name got want d
    mkdir -p "$at"
    printf 'name: community\nrepo: %s/acme/community\ntag: v1\nreferences:\n' "$layers_repo" >"$at/catalog.yaml"
    for name in $(ls $layers_catalog); do
        mkdir -p "$at/parts/$name" && cp -r "$layers_catalog/$name" "$at/parts/$name/$name"
        layered build catalog "$at/parts/$name" -t "$layers_repo/packages/$name:v1" --push >/dev/null
        printf -- '- name: %s\n  image: %s/packages/%s:v1\n' "$name" "$layers_repo" "$name" >>"$at/catalog.yaml"
    done
    want=$(layered_digest $layers_catalog -t "$layers_repo/acme/community:v1" --dry-run)
    layers_mark
    layers_cache=$at/empty layered build compose "$at/catalog.yaml" --push --metadata-file "$at/account.json" --digest-file "$at/digest" >/dev/null
    got=$(cat "$at/digest")
    [ "$got" = "$want" ] || { echo "composed $got, built $want"; return 1; }
    for d in $(jq -r '.layers[].digest' "$at/account.json"); do [ "$(asked "\"GET /v2/[^\"]*/blobs/$d")" = 0 ] || { echo "layer $d was fetched"; return 1; }; done
    echo "$(asked '"GET /v2/packages/[^"]*/manifests/') manifests and $(asked '"GET /v2/packages/[^"]*/blobs/') blobs fetched, $(asked 'mount=[^"]*" 201') mounted, $(asked '"PATCH /v2/') uploaded"
    [ "$(asked '"POST /v2/acme/community/[^"]*mount=[^"]*" 201')" -ge "$(ls $layers_catalog | wc -l)" ]
    layered verify "$layers_repo/acme/community:v1"
    layers_answers "$layers_repo/acme/community:v1"
}

# Two images for each platform: every reader finds one that it can read, and a copy is what it was.
layers_auto() {
    local at=$layers_dir/auto ref=$layers_repo/acme/auto:v1 want twins layers
    mkdir -p "$at"
    want=$(layered_digest $layers_catalog -t "$ref" --push --compression auto)
    skopeo inspect --raw --tls-verify=false "docker://$ref" >"$at/index.json"
    twins="$(layered_digest $layers_catalog -t a/b:v1 --dry-run --compression gzip) $(layered_digest $layers_catalog -t a/b:v1 --dry-run --compression zstd)"
    [ "$(jq -r '[.manifests[].digest] | join(" ")' "$at/index.json")" = "$twins" ]
    [ "$(jq -r '[.manifests[] | .annotations["io.github.containers.compression.zstd"] // "false"] | join(" ")' "$at/index.json")" = "false true" ]
    layers=$(skopeo inspect --tls-verify=false --format '{{range .LayersData}}{{println .MIMEType}}{{end}}' "docker://$ref" 2>/dev/null | grep . | sort -u ||
        skopeo inspect --tls-verify=false "docker://$ref" | jq -r '.Layers[0]')
    echo "skopeo takes: $layers"
    skopeo copy -q --all --preserve-digests --src-tls-verify=false "docker://$ref" "oci:$at/copied:v1"
    [ "$(skopeo inspect --raw "oci:$at/copied:v1" | sha256sum | cut -d' ' -f1)" = "${want#sha256:}" ]
    layered verify "oci:$at/copied:v1"
    skopeo copy -q --src-tls-verify=false "docker://$ref" "docker-archive:$at/one.tar:a/b:v1"
    layers_answers "$ref"
}

# opm's caches survive what other programs do with an image; what they change is found.
layers_opm() {
    local kind at
    for kind in opm-json opm-pogreb; do
        at=$layers_dir/$kind; mkdir -p "$at"
        layered build catalog $layers_catalog -t acme/opm:v1 --server none --cache $kind --to "oci:$at/layout:v1" >/dev/null
        skopeo copy -q --preserve-digests "oci:$at/layout:v1" "dir:$at/dir"
        skopeo copy -q --preserve-digests "dir:$at/dir" "oci-archive:$at/archive.tar:v1"
        umoci tag --image "$at/layout:v1" v2; umoci gc --layout "$at/layout"
        local ref; for ref in "oci:$at/layout:v2" "dir:$at/dir" "oci-archive:$at/archive.tar"; do layered verify "$ref" | tee "$at/said"; grep -q '^same' "$at/said"; done
        umoci unpack --rootless --image "$at/layout:v2" "$at/bundle" >/dev/null 2>&1
        diff -r $layers_catalog "$at/bundle/rootfs/configs"
        # Any uid of group 0 can write where opm opens its files for writing, and all can read the rest.
        [ -z "$(find "$at/bundle/rootfs/tmp/cache" -mindepth 1 -type f ! -perm -440)" ]
        echo "$kind: $(find "$at/bundle/rootfs/tmp/cache" -type f | wc -l) files, digest $(cat "$at/bundle/rootfs/tmp/cache/digest" "$at/bundle/rootfs/tmp/cache/pogreb.v1/digest" 2>/dev/null)"
        printf -- '---\nschema: acme.note\npackage: trident-operator\nname: note\n' >>"$at/bundle/rootfs/configs/trident-operator/catalog.yaml"
        umoci repack --image "$at/layout:changed" "$at/bundle" >/dev/null 2>&1
        if layered verify "oci:$at/layout:changed" >"$at/said"; then cat "$at/said"; echo "a changed catalog is the same"; return 1; fi
        grep -q "cache" "$at/said" || { cat "$at/said"; return 1; }
    done
}

# jq_true FILE EXPRESSION ARGS...
jq_true() { local file=$1 what=$2; shift 2; jq -e "$@" "$what" "$file" >/dev/null || { echo "$file: not true: $what"; return 1; }; }

# What containerd looks at in an index, a manifest, a configuration and layers: each of one kind only, with types that it
# knows, of the platform and with the diffIDs that they claim.
containerd_index() {
    local dir=$1 file=$2 d platform
    jq_true "$file" '.schemaVersion == 2 and (has("config") or has("layers") or has("fsLayers") or has("history") | not)'
    jq_true "$file" '(keys - ["schemaVersion", "mediaType", "manifests", "annotations", "artifactType", "subject"]) == []'
    jq_true "$file" '(.mediaType // "application/vnd.oci.image.index.v1+json") | IN("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json")'
    jq_true "$file" '[.manifests[] | keys - ["mediaType", "digest", "size", "platform", "annotations", "artifactType", "urls", "data"]] | flatten == []'
    jq -r '.manifests[] | [.digest, .size, .mediaType, "\(.platform.os // "")/\(.platform.architecture // "")"] | @tsv' "$file" | while read -r d size media platform; do
        containerd_blob "$dir" "$d" "$size"
        case $media in
        *index*|*list*) containerd_index "$dir" "$dir/blobs/sha256/${d#sha256:}" ;;
        *) containerd_manifest "$dir" "$dir/blobs/sha256/${d#sha256:}" "$media" "$platform" ;;
        esac
    done
}
containerd_blob() { [ "$(sha256sum <"$1/blobs/sha256/${2#sha256:}" | cut -d' ' -f1)" = "${2#sha256:}" ]; [ "$(stat -c %s "$1/blobs/sha256/${2#sha256:}")" = "$3" ]; }
containerd_manifest() {
    local dir=$1 file=$2 media=$3 platform=$4 config d size n=0 blob got
    jq_true "$file" '.schemaVersion == 2 and (has("manifests") | not) and (.mediaType // $m) == $m' --arg m "$media"
    jq_true "$file" '(keys - ["schemaVersion", "mediaType", "config", "layers", "annotations"]) == []'
    jq_true "$file" '(.config.mediaType) | IN("application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json")'
    jq_true "$file" '(.layers | length) as $n | $n > 0 and $n <= 127'
    jq_true "$file" '[.layers[].mediaType] | all(IN("application/vnd.oci.image.layer.v1.tar+gzip", "application/vnd.oci.image.layer.v1.tar+zstd", "application/vnd.docker.image.rootfs.diff.tar.gzip"))'
    containerd_blob "$dir" "$(jq -r .config.digest "$file")" "$(jq -r .config.size "$file")"
    config=$dir/blobs/sha256/$(jq -r .config.digest "$file" | cut -d: -f2)
    jq_true "$config" '.rootfs.type == "layers" and (.rootfs.diff_ids | length) == ($m[0].layers | length) and ([.history[] | select(.empty_layer | not)] | length) == ($m[0].layers | length)' --slurpfile m "$file"
    [ "$platform" = / ] || jq_true "$config" '"\(.os)/\(.architecture)" == $p' --arg p "$platform"
    jq -r '.layers[] | [.digest, .size, .mediaType] | @tsv' "$file" | while read -r d size media; do
        containerd_blob "$dir" "$d" "$size"
        blob=$dir/blobs/sha256/${d#sha256:}
        case $media in *zstd) got=$(zstd -qdc "$blob" | sha256sum) ;; *) got=$(gzip -dc "$blob" | sha256sum) ;; esac
        jq_true "$config" '.rootfs.diff_ids[$n] == $d' --argjson n $n --arg d "sha256:${got%% *}"
        n=$((n + 1))
    done
}
layers_containerd() {
    local at=$layers_dir/containerd i=0 flags
    mkdir -p "$at"
    while read -r flags; do
        i=$((i + 1))
        # shellcheck disable=SC2086
        layered build catalog $layers_catalog -t acme/catalog:v1 --to "oci:$at/$i:v1" $flags >/dev/null
        containerd_index "$at/$i" "$at/$i/index.json"
        echo "$flags: $(jq -r '.manifests[0].mediaType' "$at/$i/index.json"), $(find "$at/$i/blobs/sha256" -type f | wc -l) blobs"
    done <<END_FLAGS
--compression gzip
--compression zstd --cache opm-json --server none
--compression auto
--max-layers 3 --platform linux/amd64,linux/s390x
END_FLAGS
}

# Whoever builds, with a cache that is full, empty or not used, on however many processors: one digest for each compression.
layers_reproducible() {
    local at=$layers_dir/repro got n=0 compression umask tz uid cores cache want
    for compression in gzip zstd auto; do
        want=
        while read -r umask tz uid cores cache; do
            mkdir -p "$at/home-$uid" "$at/tmp"; chown "$uid" "$at/home-$uid"; chmod 1777 "$at/tmp"
            [ "$cache" = warm ] || rm -rf "$at/home-$uid/cache"
            got=$(umask "$umask"; env -i SEAL=what-seals-the-records BINDERY_CACHE_KEY=env://SEAL PATH="$PATH" TZ="$tz" GOMAXPROCS="$cores" HOME="$at/home-$uid" XDG_CACHE_HOME="$at/home-$uid/cache" TMPDIR="$at/tmp" \
                setpriv --reuid "$uid" --regid 0 --clear-groups "$bindery" build catalog "$at/catalog" -t a/b:v1 --dry-run -q --compression $compression \
                $([ $compression = gzip ] || echo --server none) $([ "$cache" = none ] && echo --no-cache) --jobs "$cores" | tail -n 1)
            n=$((n + 1)); [ -n "${got#*@}" ]
            [ "${want:=${got#*@}}" = "${got#*@}" ] || { echo "$compression, umask $umask TZ $tz uid $uid, $cores processors, $cache: $got and not $want"; return 1; }
        done <<END_BUILDERS
022 UTC 0 2 cold
077 Asia/Kathmandu 0 1 warm
000 America/St_Johns 1000690000 8 cold
077 UTC 1000690000 1 warm
022 Pacific/Apia 1000690000 1 none
END_BUILDERS
    done
    echo "$n builds, a digest for each of three compressions"
}

# Builders that are killed at any moment, and several at once, with one cache: those after them make the right image.
layers_killed() {
    local at=$layers_dir/killed layers_cache=$layers_dir/killed/cache i pid n=${ACCEPTANCE_KILLS:-60} want other d running
    n=$((n / 4)); mkdir -p "$at"
    want=$(layered_digest $layers_catalog -t a/b:v1 --dry-run --no-cache)
    for i in $(seq $n); do
        [ $((i % 5)) = 0 ] && rm -rf "$layers_cache"
        layered_exec build catalog $layers_catalog -t a/b:v1 --to "oci:$at/out$i:v1" >/dev/null 2>&1 &
        pid=$!
        sleep "$(awk "BEGIN{srand($i); print rand() * 0.5}")"
        kill -9 $pid 2>/dev/null || true; wait $pid 2>/dev/null || true
        d=$(layered_digest $layers_catalog -t a/b:v1 --to "oci:$at/after:v1")
        [ "$d" = "$want" ] || { echo "after a builder that was killed: $d and not $want"; return 1; }
        rm -rf "$at/out$i" "$at/after"
    done
    rm -rf "$layers_cache"; running=()
    for i in 1 2 3 4; do layered_exec build catalog $layers_catalog -t a/b:v1 --to "oci:$at/together$i:v1" --digest-file "$at/digest$i" >/dev/null & running+=($!); done
    for pid in "${running[@]}"; do wait "$pid"; done
    for i in 1 2 3 4; do [ "$(cat "$at/digest$i")" = "$want" ]; [ "$(skopeo inspect --format '{{.Digest}}' "oci:$at/together$i:v1")" = "$want" ]; layers_whole "$at/together$i"; done
    other=$(layered cache info -o json | jq .blobs)
    layered cache prune --all >/dev/null
    [ "$(layered cache info -o json | jq '.blobs + .layers.notes')" = 0 ]
    # What tells backups to pass it over, and the account of what was stored since the last pruning, stay.
    [ -z "$(find "$layers_cache" -type f ! -name CACHEDIR.TAG ! -name account)" ] || { find "$layers_cache" -type f; return 1; }
    echo "$n killed, 4 at once, $other blobs in their cache"
}

# Every blob of a layout is what its name says.
layers_whole() { (cd "$1/blobs/sha256" && for b in *; do echo "$b  $b"; done | sha256sum -c --quiet); }

# Entries of the cache that are cut short, changed, exchanged, or not files.
layers_damaged() {
    local at=$layers_dir/damaged want how got f first
    mkdir -p "$at"
    want=$(layers_cache=$at/good layered_digest $layers_catalog -t a/b:v1 --server none --to "oci:$at/good-out:v1")
    for how in empty short flipped longer text directory exchanged links fifo; do
        rm -rf "$at/bad" "$at/out"; cp -r "$at/good" "$at/bad"; first=
        find "$at/bad" -type f -size +0 | sort >"$at/files"
        while read -r f; do
            case $how in
            empty) : >"$f" ;;
            short) truncate -s $(($(stat -c %s "$f") / 2)) "$f" ;;
            flipped) printf '\377' | dd of="$f" bs=1 seek=$(($(stat -c %s "$f") / 2)) conv=notrunc status=none ;;
            longer) echo more >>"$f" ;;
            text) echo '{"digest": "sha256:0"}' >"$f" ;;
            directory) rm "$f"; mkdir "$f" ;;
            exchanged) [ -z "$first" ] || { mv "$f" "$f.x"; mv "$first" "$f"; mv "$f.x" "$first"; }; first=$f ;;
            links) rm "$f"; ln -s /etc/hostname "$f" ;;
            fifo) rm "$f"; mkfifo "$f" ;;
            esac
        done <"$at/files"
        got=$(layers_cache=$at/bad layered_digest $layers_catalog -t a/b:v1 --server none --to "oci:$at/out:v1" 2>"$at/err") || { echo "$how: $(cat "$at/err")"; return 1; }
        [ "$got" = "$want" ] || { echo "$how: $got and not $want"; return 1; }
        layers_whole "$at/out"
        got=$(layers_cache=$at/bad layered_digest $layers_catalog -t a/b:v1 --server none --dry-run 2>/dev/null)
        [ "$got" = "$want" ] || { echo "$how, built again: $got and not $want"; return 1; }
    done
    echo "$(wc -l <"$at/files") entries damaged in nine ways: one digest"
}

# A disk without room for the cache, a bound that is smaller than one image, a cache that cannot be written.
layers_full() {
    local at=$layers_dir/full layers_cache want size got
    mkdir -p "$at/small" "$at/none"
    want=$(layers_cache=$at/plenty layered_digest $layers_catalog -t a/b:v1 --server none --dry-run)
    for size in 64k 1m; do
        mount -t tmpfs -o size=$size tmpfs "$at/small"
        for _ in 1 2; do
            got=$(layers_cache=$at/small layered_digest $layers_catalog -t a/b:v1 --server none --to "oci:$at/out:v1" 2>"$at/err") || { cat "$at/err"; umount "$at/small"; return 1; }
            [ "$got" = "$want" ] || { echo "$size: $got"; umount "$at/small"; return 1; }
            layers_whole "$at/out"; rm -rf "$at/out"
        done
        umount "$at/small"
    done
    for size in 4KiB 1MiB; do
        for _ in 1 2; do
            got=$(layers_cache=$at/bounded layered_digest $layers_catalog -t a/b:v1 --server none --to "oci:$at/out:v1" --cache-size $size)
            [ "$got" = "$want" ] || { echo "--cache-size $size: $got"; return 1; }
            layers_whole "$at/out"; rm -rf "$at/out"
        done
        layers_cache=$at/bounded layered cache info -o json --cache-size $size | jq -e '.bytes <= .maxBytes or .blobs == 0' >/dev/null || { layers_cache=$at/bounded layered cache info; return 1; }
    done
    got=$(layers_cache=/proc/none layered_digest $layers_catalog -t a/b:v1 --server none --dry-run 2>/dev/null); [ "$got" = "$want" ]
}

if [ "$only" = "  " ] || [[ "$only" == *" layers_"* ]]; then
    command -v docker-registry >/dev/null && layers_setup
    mkdir -p "$layers_dir/repro" && cp -r $layers_catalog "$layers_dir/repro/catalog" && chmod -R a+rX "$layers_dir"
    check layers_delta docker-registry jq -- layers_delta
    check layers_groups jq -- layers_groups
    check layers_compose docker-registry jq skopeo podman runc -- layers_compose
    check layers_auto docker-registry jq skopeo podman runc -- layers_auto
    check layers_opm skopeo umoci -- layers_opm
    check layers_containerd jq zstd -- layers_containerd
    check layers_reproducible setpriv -- layers_reproducible
    check layers_killed skopeo jq -- layers_killed
    check layers_damaged sha256sum -- layers_damaged
    check layers_full mount jq -- layers_full
fi
