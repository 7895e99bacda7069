# shellcheck shell=bash
# Index images of both formats through a registry and containers: edits, what is left in their layers, what they answer; and
# the commands under kill -9 and beside others of their kind. Sourced by hack/acceptance.sh, whose functions and variables
# it uses.

index_port=$((port + 100))
index_repo=127.0.0.1:$index_port
index_dir=$work/index
# The recorded answers are about bundles of a registry of that name.
recorded_host=127.0.0.1:5056

# recorded NAME... writes files of the collection of recorded answers to standard output, and recorded_to DIR NAME... to a
# directory. What is called .zst is not compressed in it.
recorded() { zstd -dqc --long=27 testdata/recorded.tar.zst | tar -xO "$@"; }
recorded_to() { local to=$1; shift; mkdir -p "$to"; zstd -dqc --long=27 testdata/recorded.tar.zst | tar -xC "$to" "$@"; }

# A registry with the bundles of two packages, and what is needed to find them under the recorded name.
index_setup() {
    mkdir -p "$index_dir/registry" "$index_dir/tmp"
    cat >"$index_dir/registry.yml" <<END
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: $index_dir/registry}}
http: {addr: $index_repo}
END
    docker-registry serve "$index_dir/registry.yml" >"$index_dir/registry.log" 2>&1 &
    pids+=($!)
    local i; for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$index_port") 2>/dev/null && break; sleep 0.05; done
    printf '[[registry]]\nprefix = "%s"\nlocation = "%s"\ninsecure = true\n[[registry]]\nlocation = "%s"\ninsecure = true\n' \
        "$recorded_host" "$index_repo" "$index_repo" >"$index_dir/registries.conf"
    index_bundles=()
    recorded_to "$index_dir/recorded" bundles/etcd bundles/silicom-sts-operator
    local dir from=$index_dir/recorded/bundles
    for dir in "$from"/etcd/*/ "$from"/silicom-sts-operator/*/; do
        local version pkg; version=$(basename "$dir"); pkg=$(basename "$(dirname "$dir")")
        "$bindery" build bundle "$dir" -q -t "$index_repo/community/$pkg:v$version" --push --use-http --skip-validation >/dev/null
        index_bundles+=("$recorded_host/community/$pkg:v$version")
    done
    index_list=$(IFS=,; echo "${index_bundles[*]}")
    recorded golden-grpc/small-fbc/calls.ndjson.zst >"$index_dir/calls.ndjson"
}

# index runs the command with what it needs to find the registry, and its temporary files in a place of their own. In the
# background index_exec is the program itself, and not a shell that waits for it.
index() { (index_exec "$@"); }
index_exec() { exec env TMPDIR="$index_dir/tmp" "$bindery" index "$@" --registries-conf "$index_dir/registries.conf" --use-http; }

# serve_image IMAGE COMMAND... runs the image as it wants to be run, but for the port, as a user that nobody knows and with a
# root that cannot be written, and the command while it serves; PORT in that is where.
serve_image() {
    local image=$1 p=$((index_port + 1)) name=bindery-index-$$ status=0 i words; shift
    podman pull -q --tls-verify=false "$image" >/dev/null
    words=$(podman image inspect --format '{{join .Config.Cmd " "}}' "$image")
    # shellcheck disable=SC2086
    podman $podman_flags run -d --rm --name $name --network host --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
        --read-only --read-only-tmpfs=false --cap-drop ALL --security-opt no-new-privileges --user 1000690000:0 \
        "$image" $words -p $p >/dev/null
    for i in $(seq 200); do "$bindery" probe -connect-timeout 100ms -addr 127.0.0.1:$p >/dev/null 2>&1 && break; sleep 0.05; done
    "${@//PORT/127.0.0.1:$p}" || status=1
    # shellcheck disable=SC2086
    podman $podman_flags exec $name /bin/grpc_health_probe -addr 127.0.0.1:$p >/dev/null || status=1
    # shellcheck disable=SC2086
    [ $status = 0 ] || podman $podman_flags logs $name
    # shellcheck disable=SC2086
    podman $podman_flags stop -t 20 $name >/dev/null || status=1
    # The container removes itself, but perhaps later.
    # shellcheck disable=SC2086
    podman $podman_flags rm -f -i $name >/dev/null 2>&1 || true
    podman rmi -f "$image" >/dev/null
    return $status
}

# packages_of ADDRESS NAMES: the server has these packages.
packages_of() { [ "$("$work/rpc" "$1" packages | sort | tr '\n' ' ')" = "$2 " ] || { "$work/rpc" "$1" packages; return 1; }; }

index_label() { skopeo inspect --tls-verify=false --format "{{index .Labels \"operators.operatorframework.io.index.$2.v1\"}}" "docker://$1"; }

# The bytes of an image's layers, and the files that are in any of them.
index_bytes() { skopeo inspect --tls-verify=false --raw "docker://$1" | tr -d ' \n' | sed 's/.*"layers"://' | grep -o '"size":[0-9]*' | awk -F: '{n += $2} END {print n}'; }
index_layers() {
    rm -rf "$2"; mkdir -p "$2/image" "$2/files"
    skopeo copy -q --src-tls-verify=false "docker://$1" "dir:$2/image"
    local l; for l in $(skopeo inspect --tls-verify=false --format '{{range .Layers}}{{println .}}{{end}}' "docker://$1"); do
        mkdir -p "$2/files/${l#sha256:}"; tar -xzf "$2/image/${l#sha256:}" -C "$2/files/${l#sha256:}"
    done
}

# An index of each format, made of bundles, edited in every way, and served.
index_images() {
    local format image other
    for format in sqlite fbc; do
        image=$index_repo/acme/$format
        index add -q -b "$index_list" --mode replaces --output-format $format -t "$image:v1" --push >/dev/null
        if [ $format = sqlite ]; then
            [ "$(index_label "$image:v1" database)" = /database/index.db ]
            [ "$(index_label "$image:v1" configs)" = "" ]
        else
            [ "$(index_label "$image:v1" configs)" = /configs ]
            [ "$(index_label "$image:v1" database)" = "" ]
        fi
        serve_image "$image:v1" "$work/rpc" PORT replay "$index_dir/calls.ndjson"
        # The same again is the same image.
        index add -q -b "$index_list" --mode replaces --output-format $format -t "$image:again" --push >/dev/null
        [ "$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$image:v1")" = "$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$image:again")" ]

        index prune -q -p etcd -f "$image:v1" -t "$image:pruned" --push >/dev/null
        serve_image "$image:pruned" packages_of PORT etcd
        echo "$format: $(index_bytes "$image:v1") bytes, pruned $(index_bytes "$image:pruned")"
        [ "$(index_bytes "$image:pruned")" -lt "$(index_bytes "$image:v1")" ]
        index_layers "$image:v1" "$index_dir/whole" && index_layers "$image:pruned" "$index_dir/pruned"
        grep -rq silicom "$index_dir/whole/files"
        if grep -rl silicom "$index_dir/pruned/files"; then return 1; fi
        [ -z "$(find "$index_dir/pruned/files" -name '.wh.*' -o -name '*silicom*')" ]

        index rm -q -o etcd -f "$image:v1" -t "$image:removed" --push >/dev/null
        serve_image "$image:removed" packages_of PORT silicom-sts-operator
        index deprecatetruncate -q -b "silicom-sts-operator/silicom-sts-operator.v0.0.5" -f "$image:v1" -t "$image:truncated" --push >/dev/null
        serve_image "$image:truncated" packages_of PORT "etcd silicom-sts-operator"
        quiet list bundles "$image:truncated" --use-http >"$index_dir/bundles"
        grep -q "silicom-sts-operator.v0.0.5" "$index_dir/bundles"
        if grep -q 'silicom-sts-operator.v0.0.4' "$index_dir/bundles"; then return 1; fi

        other=$([ $format = sqlite ] && echo fbc || echo sqlite)
        index prune-stranded -q -f "$image:v1" -t "$image:other" --output-format "$other" --push >/dev/null
        serve_image "$image:other" packages_of PORT "etcd silicom-sts-operator"
        [ "$(index_label "$image:other" "$([ "$other" = fbc ] && echo configs || echo database)")" != "" ]

        # Upon another image: its server serves, the index in it is not seen.
        index rm -q -o etcd -f "$image:v1" --binary-image "$image:pruned" -t "$image:upon" --push >/dev/null
        serve_image "$image:upon" packages_of PORT silicom-sts-operator
        # Platforms stay what they are.
        index add -q -b= -f "$image:v1" --platform linux/amd64,linux/arm64,linux/ppc64le,linux/s390x -t "$image:all" --push >/dev/null
        index rm -q -o etcd -f "$image:all" -t "$image:all-removed" --push >/dev/null
        [ "$(skopeo inspect --tls-verify=false --raw "docker://$image:all-removed" | tr -d ' \n' | grep -o '"architecture":"[a-z0-9]*"' | sort | tr '\n' ' ')" = \
            '"architecture":"amd64" "architecture":"arm64" "architecture":"ppc64le" "architecture":"s390x" ' ]
        serve_image "$image:all-removed" packages_of PORT silicom-sts-operator
        # A user who does not know opm.
        TMPDIR=$index_dir/tmp "$bindery" catalog rm "$image:v1" etcd -q -t "$image:catalog" --push --use-http >/dev/null
        serve_image "$image:catalog" packages_of PORT silicom-sts-operator
    done
    [ -z "$(ls -A "$index_dir/tmp")" ] || { ls -lA "$index_dir/tmp"; return 1; }
}

# kill -9 at any moment: a tag names a whole image or nothing, a layout and a database are what they were or what they shall
# be, and who runs the command again finds nothing in the way.
index_killed() {
    local i pid n=${ACCEPTANCE_KILLS:-60} at=$index_dir/killed image=$index_repo/acme/killed want
    mkdir -p "$at/mine/cache" "$at/mine/database" "$at/out"
    echo mine | tee "$at/mine/cache/file" >"$at/mine/database/file"
    index add -q -b "$index_list" --mode replaces --output-format sqlite -t "$image:v1" --push >/dev/null
    want=$(index rm -q -o etcd -f "$image:v1" -t "$image:want" --push | tail -n 1); want=${want#*@}
    for i in $(seq "$n"); do
        index_exec rm -q -o etcd -f "$image:v1" -t "$image:new$i" --push --to "oci:$at/out/layout:v1" >/dev/null 2>&1 &
        pid=$!
        sleep "$(awk "BEGIN{srand($i); print rand() * 1.5}")"
        kill -9 $pid 2>/dev/null || true; wait $pid 2>/dev/null || true
        if [ -e "$at/out/layout/index.json" ]; then [ "$(skopeo inspect --format '{{.Digest}}' "oci:$at/out/layout:v1")" = "$want" ] || return 1; fi
        if skopeo inspect --tls-verify=false --raw "docker://$image:new$i" >"$at/raw" 2>/dev/null; then
            [ "sha256:$(sha256sum <"$at/raw" | cut -d' ' -f1)" = "$want" ] || return 1
            skopeo copy -q --src-tls-verify=false "docker://$image:new$i" "dir:$at/whole" || return 1
        fi
        (cd "$at/mine" && index_exec rm -q -o "$([ $((i % 2)) = 0 ] && echo etcd || echo silicom-sts-operator)" -f "$image:v1" --generate >/dev/null 2>&1) &
        pid=$!
        sleep "$(awk "BEGIN{srand($i + 1000); print rand() * 0.5}")"
        kill -9 $pid 2>/dev/null || true; wait $pid 2>/dev/null || true
        if [ -e "$at/mine/database/index.db" ]; then [ "$(quiet list packages "$at/mine/database/index.db" | wc -l)" = 2 ] || return 1; fi
    done
    index rm -q -o etcd -f "$image:v1" --to "oci:$at/out/layout:v1" >/dev/null
    (cd "$at/mine" && index rm -q -o etcd -f "$image:v1" --generate)
    [ "$(skopeo inspect --format '{{.Digest}}' "oci:$at/out/layout:v1")" = "$want" ]
    [ "$(ls -A "$at/out")" = layout ]
    (cd "$at/mine" && find . -type f | sort | tr '\n' ' ') | grep -qx './cache/file ./database/file ./database/index.db ./index.Dockerfile ' || { find "$at/mine"; return 1; }
    [ "$(cat "$at/mine/cache/file" "$at/mine/database/file")" = "$(printf 'mine\nmine')" ]
    [ -z "$(ls -A "$index_dir/tmp")" ] || { ls -lA "$index_dir/tmp"; return 1; }
}

# Several at once in one directory: each does what it does alone, or says why not; files of others stay.
index_together() {
    local i at=$index_dir/together image=$index_repo/acme/together pid failed=0
    mkdir -p "$at/cache" "$at/database"
    echo mine | tee "$at/cache/file" >"$at/database/file"
    index add -q -b "$index_list" --mode replaces --output-format sqlite -t "$image:v1" --push >/dev/null
    for i in $(seq 5); do
        local started=()
        (cd "$at" && index_exec rm -q -o etcd -f "$image:v1" -t acme/index:etcd >/dev/null 2>"$index_dir/1.err") & started+=($!)
        (cd "$at" && index_exec rm -q -o silicom-sts-operator -f "$image:v1" -t acme/index:silicom >/dev/null 2>"$index_dir/2.err") & started+=($!)
        (cd "$at" && index_exec rm -q -o etcd -f "$image:v1" --generate 2>"$index_dir/3.err") & started+=($!)
        (cd "$at" && index_exec rm -q -o silicom-sts-operator -f "$image:v1" --generate 2>"$index_dir/4.err") & started+=($!)
        for pid in "${started[@]}"; do wait "$pid" || failed=$((failed + 1)); done
        grep -vE '^error: .*(locked|another)' "$index_dir"/[1-4].err | grep 'error:' && return 1
        [ "$(quiet list packages "oci:$at/index.oci:etcd" | tail -n +2 | awk '{print $1}')" = silicom-sts-operator ]
        [ "$(quiet list packages "oci:$at/index.oci:silicom" | tail -n +2 | awk '{print $1}')" = etcd ]
        [ "$(quiet list packages "$at/database/index.db" | tail -n +2 | wc -l)" = 1 ]
        rm -rf "$at/index.oci" "$at/database/index.db"
    done
    echo "$failed of 20 found another one at work"
    [ "$(cat "$at/cache/file" "$at/database/file")" = "$(printf 'mine\nmine')" ]
    (cd "$at" && find . -type f | sort | tr '\n' ' ') | grep -qx './cache/file ./database/file ./index.Dockerfile ' || { find "$at"; return 1; }
    [ -z "$(ls -A "$index_dir/tmp")" ] || { ls -lA "$index_dir/tmp"; return 1; }
}

if [ "$only" = "  " ] || [[ "$only" == *" index_"* ]]; then
    command -v docker-registry >/dev/null && index_setup
    check index_images docker-registry skopeo podman runc -- index_images
    check index_killed docker-registry skopeo -- index_killed
    check index_together docker-registry -- index_together
fi
