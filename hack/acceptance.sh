#!/usr/bin/env bash
# Catalog and bundle images through the programs that others use on them: skopeo, a registry, umoci, podman and runc; and
# the command under faults: other users, umasks and directories, kill -9, full disks.
#
#   hack/acceptance.sh [PROGRAM] [CHECK...]      default: dist/bindery, all checks
#
# A check whose program is not installed is left out, loudly. Exits non-zero if a check failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
bindery=$(realpath "${1:-dist/bindery}"); shift || true
only=" $* "
work=$(mktemp -d /tmp/bindery-acceptance-XXXXXX)
chmod 0755 "$work"
pids=()
cleanup() {
    local p
    for p in "${pids[@]:-}"; do [ -n "$p" ] && kill "$p" 2>/dev/null && wait "$p" 2>/dev/null; done
    mountpoint -q "$work/small" && umount "$work/small"
    # What a container that is just being ended still holds goes away a moment later.
    rm -rf "$work" 2>/dev/null || { sleep 1; rm -rf "$work"; }
}
trap cleanup EXIT
export STORAGE_DRIVER=vfs
db=testdata/db/small.db
port=$((20000 + RANDOM % 10000))
results=()
failed=0

check() {
    local name=$1; shift
    [ "$only" = "  " ] || [[ "$only" == *" $name "* ]] || return 0
    printf '\n-- %s\n' "$name"
    local tool
    while [ "$1" != -- ]; do
        tool=$1; shift
        command -v "$tool" >/dev/null || { echo "LEFT OUT: $tool is not installed"; results+=("LEFT OUT  $name ($tool is not installed)"); return 0; }
    done
    shift
    SECONDS=0
    # Not as the condition of an if: bash goes on after commands that fail there, whatever set -e says.
    (set -euo pipefail; "$@")
    local status=$?
    if [ $status = 0 ]; then results+=("ok        $name, ${SECONDS} s"); else results+=("FAILED    $name"); failed=1; fi
}

quiet() { "$bindery" "$@" -q; }

# The expected answers: what the database lists.
go build -o "$work/rpc" ./hack/rpc || exit 1
quiet list packages "$db" | awk 'NR > 1 {print $1}' >"$work/packages" || exit 1
quiet migrate "$db" "$work/catalog" -o json --verify || exit 1
quiet build catalog "$work/catalog" -t localhost/acme/catalog:v1 --to "oci:$work/layout:v1" --digest-file "$work/digest" >/dev/null || exit 1
digest=$(cat "$work/digest")
echo "image $digest"

inspect() {
    skopeo inspect "oci:$work/layout:v1" >"$work/inspect.json"
    grep -q '"operators.operatorframework.io.index.configs.v1": "/configs"' "$work/inspect.json"
    [ "$(skopeo inspect --format '{{.Digest}}' "oci:$work/layout:v1")" = "$digest" ]
    skopeo inspect --config "oci:$work/layout:v1" >"$work/config.json"
    tr -d ' \n' <"$work/config.json" >"$work/config.min"
    grep -q '"User":"1001"' "$work/config.min"
    grep -q '"Entrypoint":\["/bin/opm"\]' "$work/config.min"
}

registry() {
    mkdir -p "$work/registry"
    cat >"$work/registry.yml" <<END
version: 0.1
storage: {filesystem: {rootdirectory: $work/registry}}
http: {addr: 127.0.0.1:$port}
END
    docker-registry serve "$work/registry.yml" >"$work/registry.log" 2>&1 &
    registry_pid=$!
    trap 'kill $registry_pid 2>/dev/null' EXIT
    local i; for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.05; done
    local repo=127.0.0.1:$port/acme/catalog
    skopeo copy -q --preserve-digests --dest-tls-verify=false "oci:$work/layout:v1" "docker://$repo:copied"
    [ "$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$repo:copied")" = "$digest" ]
    local last; last=$(quiet build catalog "$work/catalog" -t "$repo:pushed" --push --use-http | tail -n 1)
    [ "$last" = "$repo@$digest" ] || { echo "pushed as $last"; return 1; }
    skopeo inspect --tls-verify=false "docker://$last" >/dev/null
    # A pod's uid that no one knows, without HOME: the digest file is what a pipeline reads.
    if command -v setpriv >/dev/null && [ "$(id -u)" = 0 ]; then
        mkdir -p "$work/pod" && chown 1000690000:0 "$work/pod"
        env -i PATH="$PATH" TMPDIR="$work/pod" setpriv --reuid 1000690000 --regid 0 --clear-groups \
            "$bindery" build catalog "$work/catalog" -t "$repo:pod" --push --use-http --digest-file "$work/pod/digest" -q >/dev/null
        [ "$(cat "$work/pod/digest")" = "$digest" ]
    fi
    quiet build catalog "$work/catalog" -t "$repo:docker" --push --use-http --format docker >/dev/null
    skopeo inspect --raw --tls-verify=false "docker://$repo:docker" | grep -q 'vnd.docker.distribution.manifest.v2'
    quiet build catalog "$work/catalog" -t "$repo:zstd" --push --use-http --compression zstd >/dev/null
    skopeo copy -q --src-tls-verify=false "docker://$repo:zstd" "oci:$work/back:zstd"
}

# The file that login writes is the one that skopeo and podman read, and the other way round.
login() {
    local at="$work/login" repo=127.0.0.1:$((port + 3)) i
    mkdir -p "$at/registry"
    # The password is sesame.
    echo 'ci:$2a$05$AdBWdUaeiBwbF.JbkMcEmuXjRBlVa40Pdjsft2cKrFdPT/BvMRH0C' >"$at/htpasswd"
    cat >"$at/registry.yml" <<END
version: 0.1
storage: {filesystem: {rootdirectory: $at/registry}}
http: {addr: $repo}
auth: {htpasswd: {realm: acceptance, path: $at/htpasswd}}
END
    docker-registry serve "$at/registry.yml" >"$at/log" 2>&1 &
    login_pid=$!
    trap 'kill $login_pid 2>/dev/null' EXIT
    for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$((port + 3))") 2>/dev/null && break; sleep 0.05; done
    export REGISTRY_AUTH_FILE="$at/auth.json"
    if echo wrong | quiet login "$repo" -u ci --password-stdin --use-http 2>/dev/null; then return 1; fi
    [ ! -e "$REGISTRY_AUTH_FILE" ]
    echo sesame | quiet login "$repo" -u ci --password-stdin --use-http
    [ "$(stat -c %a "$REGISTRY_AUTH_FILE")" = 600 ]
    [ "$(podman login --get-login "$repo")" = ci ]
    skopeo copy -q --dest-tls-verify=false "oci:$work/layout:v1" "docker://$repo/acme/catalog:v1"
    [ "$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$repo/acme/catalog:v1")" = "$digest" ]
    quiet logout "$repo"
    if skopeo inspect --tls-verify=false "docker://$repo/acme/catalog:v1" >/dev/null 2>&1; then return 1; fi
    echo sesame | skopeo login -u ci --password-stdin --tls-verify=false "$repo" >/dev/null
    [ "$(quiet digest "$repo/acme/catalog:v1" --use-http)" = "$digest" ]
}

unpack() {
    umoci unpack --rootless --image "$work/layout:v1" "$work/bundle"
    diff -r "$work/catalog" "$work/bundle/rootfs/configs"
    [ -x "$work/bundle/rootfs/bin/opm" ]
    [ -e "$work/bundle/rootfs/bin/grpc_health_probe" ]
    [ "$(stat -c %a "$work/bundle/rootfs/configs")" = 755 ]
    # Any uid can read the catalog and its cache.
    [ -z "$(find "$work/bundle/rootfs/configs" -type f ! -perm -444)" ]
}

# catalogd's way: only what is below the directory that the label names, layer by layer.
catalogd() {
    local label layers l
    label=$(skopeo inspect --format '{{index .Labels "operators.operatorframework.io.index.configs.v1"}}' "oci:$work/layout:v1")
    layers=$(skopeo inspect --format '{{range .Layers}}{{println .}}{{end}}' "oci:$work/layout:v1")
    mkdir -p "$work/catalogd"
    for l in $layers; do
        tar -xzf "$work/layout/blobs/sha256/${l#sha256:}" -C "$work/catalogd" --wildcards "${label#/}/*" 2>/dev/null || true
    done
    quiet validate "$work/catalogd/configs"
    diff -r "$work/catalog" "$work/catalogd/configs"
}

podman_flags="--cgroup-manager cgroupfs --runtime runc"
container() {
    quiet build catalog "$work/catalog" -t localhost/acme/catalog:v1 --to "docker-archive:$work/image.tar" >/dev/null
    podman load -q -i "$work/image.tar"
    local p=$((port + 1)) name=bindery-acceptance-$$
    # An arbitrary uid with group 0, a read-only root, no capabilities: the restricted pod of a cluster.
    podman $podman_flags run -d --rm --name $name --network host --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
        --read-only --read-only-tmpfs=false --cap-drop ALL --security-opt no-new-privileges --user 1000690000:0 \
        localhost/acme/catalog:v1 serve /configs --cache-dir=/cache -p $p
    local status=0 i
    for i in $(seq 200); do "$bindery" probe -connect-timeout 100ms -addr 127.0.0.1:$p >/dev/null 2>&1 && break; sleep 0.05; done
    "$bindery" probe -addr 127.0.0.1:$p || status=1
    podman $podman_flags exec $name /bin/grpc_health_probe -addr 127.0.0.1:$p || status=1
    "$work/rpc" 127.0.0.1:$p packages | diff - "$work/packages" || status=1
    [ "$("$work/rpc" 127.0.0.1:$p bundles | wc -l)" -gt 0 ] || status=1
    [ $status = 0 ] || podman logs $name
    podman $podman_flags stop -t 20 $name >/dev/null || status=1
    podman rmi -f localhost/acme/catalog:v1 >/dev/null
    return $status
}

# The same input gives the same digest, whoever builds it, wherever, whenever.
reproducible() {
    local got i=0 umask tz dir uid
    for umask in 000 022 077; do for tz in UTC Asia/Kathmandu; do for uid in 0 1000690000; do
        i=$((i + 1)); dir=$work/repro$i/some/where; mkdir -p "$dir"; cp -r "$work/catalog" "$dir/c"; chmod -R a+rX "$work/repro$i" "$dir"; chmod 1777 "$dir"
        find "$dir/c" -exec touch -d "2001-01-0$((i % 9 + 1))" {} +
        got=$(cd "$dir" && umask $umask && TZ=$tz HOME=/nonexistent TMPDIR=$dir setpriv --reuid $uid --regid 0 --clear-groups \
            "$bindery" build catalog c -t localhost/acme/catalog:v1 --to oci:out -q | tail -n 1)
        [ "${got#*@}" = "$digest" ] || { echo "umask $umask TZ $tz uid $uid: $got"; return 1; }
        rm -rf "$work/repro$i"
    done; done; done
    echo "$i builds, one digest"
}

# kill -9 at any moment: the old output or the new one, and the next run works.
killed() {
    local i pid n=${ACCEPTANCE_KILLS:-60}
    quiet migrate "$db" "$work/k/want" -o json
    for i in $(seq "$n"); do
        "$bindery" migrate "$db" "$work/k/out" -o json -q 2>/dev/null &
        pid=$!
        sleep "$(awk "BEGIN{srand($i); print rand() * 0.12}")"
        kill -9 $pid 2>/dev/null || true; wait $pid 2>/dev/null || true
        if [ -e "$work/k/out" ] && [ -n "$(ls -A "$work/k/out")" ]; then diff -r "$work/k/want" "$work/k/out" || return 1; rm -rf "$work/k/out"; fi
        "$bindery" build catalog "$work/catalog" -t a/b:v1 --to "oci:$work/k/image" -q >/dev/null 2>&1 &
        pid=$!
        sleep "$(awk "BEGIN{srand($i + 1000); print rand() * 0.25}")"
        kill -9 $pid 2>/dev/null || true; wait $pid 2>/dev/null || true
        if [ -e "$work/k/image/index.json" ]; then [ "$(skopeo inspect --format '{{.Digest}}' "oci:$work/k/image:v1")" = "$digest" ] || return 1; fi
    done
    quiet migrate "$db" "$work/k/out" -o json && diff -r "$work/k/want" "$work/k/out"
    quiet build catalog "$work/catalog" -t a/b:v1 --to "oci:$work/k/image" >/dev/null
    [ "$(skopeo inspect --format '{{.Digest}}' "oci:$work/k/image:v1")" = "$digest" ]
    # Nothing of the killed runs is left beside the outputs.
    ls -A "$work/k" | sort >"$work/k.ls"
    printf 'image\nout\nwant\n' | diff - "$work/k.ls"
}

# A full disk: a clear error, the old output as it was, nothing left.
full() {
    local dir=$work/small before size
    mkdir -p "$dir"
    for size in 100k 300k 700k 1500k 3000k; do
        mount -t tmpfs -o size=$size tmpfs "$dir"
        before=$(ls -A "$dir")
        if TMPDIR=$dir "$bindery" migrate "$db" "$dir/out" -o yaml -q 2>"$work/full.err"; then echo "$size: migrate fits"; rm -rf "$dir/out"; else
            echo "$size: migrate: $(head -c 150 "$work/full.err")"
            grep -qi 'space' "$work/full.err"; [ "$(ls -A "$dir")" = "$before" ] || { ls -lA "$dir"; umount "$dir"; return 1; }
        fi
        if TMPDIR=$dir "$bindery" build catalog "$work/catalog" -t a/b:v1 --to "oci:$dir/image" -q >/dev/null 2>"$work/full.err"; then echo "$size: build fits"; else
            echo "$size: build: $(head -c 150 "$work/full.err")"
            grep -qi 'space' "$work/full.err"; [ "$(ls -A "$dir")" = "$before" ] || { ls -lAR "$dir"; umount "$dir"; return 1; }
        fi
        umount "$dir"
    done
}

# No command starts another program.
# One bundle through everything that carries images: wherever it is read from, the same is rendered, and the directory that
# it was made of; the list of a catalog's images is what skopeo can copy.
bundles() {
    local bundle=testdata/bundles/etcd/0.9.4 repo=127.0.0.1:$((port + 1))/acme/etcd ref
    mkdir -p "$work/bundles/registry"
    cat >"$work/bundles/registry.yml" <<END
version: 0.1
storage: {filesystem: {rootdirectory: $work/bundles/registry}}
http: {addr: 127.0.0.1:$((port + 1))}
END
    docker-registry serve "$work/bundles/registry.yml" >"$work/bundles/registry.log" 2>&1 &
    registry_pid=$!
    trap 'kill $registry_pid 2>/dev/null' EXIT
    local i; for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$((port + 1))") 2>/dev/null && break; sleep 0.05; done
    local at=$work/bundles
    quiet bundle validate $bundle
    quiet build bundle $bundle -t "$repo:v0.9.4" --push --use-http --to "oci:$at/layout:v1" --to "oci-archive:$at/archive.tar:v1" \
        --to "docker-archive:$at/docker.tar" --to "dir:$at/dir" --digest-file "$at/digest" >/dev/null
    [ "$(skopeo inspect --tls-verify=false --format '{{.Digest}}' "docker://$repo:v0.9.4")" = "$(cat "$at/digest")" ]
    skopeo copy -q --src-tls-verify=false "docker://$repo:v0.9.4" "oci-archive:$at/skopeo.tar:v1"
    skopeo copy -q --src-tls-verify=false "docker://$repo:v0.9.4" "docker-archive:$at/skopeo-docker.tar:acme/etcd:v1"
    skopeo copy -q --src-tls-verify=false --format v2s2 "docker://$repo:v0.9.4" "dir:$at/skopeo-dir"
    quiet render $bundle -o yaml >"$at/want"
    for ref in "oci:$at/layout:v1" "oci-archive:$at/archive.tar:v1" "docker-archive:$at/docker.tar" "dir:$at/dir" \
        "oci-archive:$at/skopeo.tar" "docker-archive:$at/skopeo-docker.tar" "dir:$at/skopeo-dir"; do
        quiet render "$ref" -o yaml | cmp - "$at/want" || { echo "$ref is rendered in another way"; return 1; }
    done
    # In a registry it has a name, which is the only difference.
    quiet render --use-http "$repo:v0.9.4" -o yaml --lock "$at/lock" >"$at/named"
    [ "$(diff "$at/want" "$at/named" | grep -c '^>')" -le 3 ] || { diff "$at/want" "$at/named"; return 1; }
    quiet render --use-http "$repo:v0.9.4" -o yaml --lock "$at/lock" --no-cache | cmp - "$at/named"
    quiet bundle unpack --use-http "$repo:v0.9.4" --to "$at/unpacked"
    diff -r $bundle/manifests "$at/unpacked/manifests"
    umoci unpack --rootless --image "$at/layout:v1" "$at/umoci" >/dev/null 2>&1
    diff -r "$at/umoci/rootfs" "$at/unpacked"
    podman load -q -i "$at/docker.tar" >/dev/null
    # A catalog of it, by a template, and the images that the catalog needs, copied by their list.
    printf 'schema: olm.template.basic\nentries:\n- {schema: olm.package, name: etcd, defaultChannel: a}\n- {schema: olm.channel, package: etcd, name: a, entries: [{name: etcdoperator.v0.9.4}]}\n- {schema: olm.bundle, image: "%s"}\n' "$repo:v0.9.4" >"$at/template.yaml"
    mkdir "$at/catalog"
    quiet template render --use-http "$at/template.yaml" -o yaml >"$at/catalog/catalog.yaml"
    quiet validate "$at/catalog"
    quiet list images "$at/catalog" >"$at/images"
    grep -qx "$repo:v0.9.4" "$at/images"
    grep "^127.0.0.1" "$at/images" | xargs -I{} skopeo copy -q --src-tls-verify=false docker://{} "dir:$at/mirrored"
    quiet diff "$at/catalog" "$at/catalog"
    quiet graph "$at/catalog" --to "$at/graph.html"
    ls -la "$at" | awk 'NR > 1 {print $5, $9}'
}

execs() {
    local n args
    printf 'name: c\nrepo: a/b\ntag: v3\nreferences: [{name: etcd, image: "oci:%s"}]\n' "$work/layout:v1" >"$work/composed.yaml"
    while read -r args; do
        # shellcheck disable=SC2086
        (cd "$work" && strace -f -qq -e trace=execve,execveat -o "$work/strace" "$bindery" $args >/dev/null 2>&1) || { echo "failed: $args"; return 1; }
        n=$(grep -c 'execve' "$work/strace")
        echo "$n execve: $args"
        [ "$n" = 1 ] || { cat "$work/strace"; return 1; }
    done <<END
version
validate catalog
render catalog
migrate catalog migrated -o yaml
list bundles catalog
init example
build catalog catalog -t a/b:v1 --to oci-archive:$work/x.tar
build catalog catalog -t a/b:v1 --format docker --to docker-archive:$work/y.tar
serve catalog --cache-dir $work/servecache --cache-only --pprof-addr=
bundle validate $PWD/testdata/bundles/etcd/0.9.4
build bundle $PWD/testdata/bundles/etcd/0.9.4 -t a/etcd:v1 --to oci:$work/etcd.oci
bundle unpack oci:$work/etcd.oci:v1 --to $work/etcd-unpacked
bundle extract $PWD/testdata/bundles/etcd/0.9.4 -c etcd -z --dry-run
bundle unpack-job quay.io/acme/etcd:v1 -o yaml
render oci:$work/etcd.oci:v1 $PWD/testdata/bundles/etcd/0.9.4
list images catalog
graph catalog -o svg
diff catalog catalog
catalog prune catalog --keep etcd --dry-run
registry add -d added.db -b $PWD/testdata/bundles/synth-constraint/0.1.0
index rm -f oci:$work/layout:v1 -o etcd -t a/index:v2 --to oci:$work/index-pruned.oci
index add -b $PWD/testdata/bundles/synth-constraint/0.1.0 -t a/index:v1 --output-format sqlite -c podman --to oci:$work/index-new.oci
migrate oci:$work/layout:v1 -t a/migrated:v1 --to oci:$work/migrated.oci
template convert substitutes catalog -o yaml
cache info
inspect oci:$work/layout:v1 --deep
verify oci:$work/layout:v1
build catalog catalog --plan
build catalog catalog -t a/b:v2 --server none --compression auto --cache opm-pogreb --previous oci:$work/layout:v1 --dry-run
build compose composed.yaml --any-packages --dry-run
completion bash
keys generate --name $work/execs --sign-passphrase-file $work/digest
sign oci:$work/etcd.oci:v1 --sign-key $work/execs.key --sign-passphrase-file $work/digest --sign-identity example.com/a/etcd:v1
verify oci:$work/etcd.oci:v1 --key $work/execs.pub
sbom oci:$work/etcd.oci:v1
attach oci:$work/etcd.oci:v1 $PWD/README.md --type text/markdown
tree oci:$work/etcd.oci:v1
copy oci:$work/etcd.oci:v1 oci-archive:$work/etcd-copied.tar:v1
END
}

check inspect skopeo -- inspect
check registry docker-registry skopeo -- registry
check login docker-registry skopeo podman -- login
check unpack umoci -- unpack
check catalogd skopeo -- catalogd
check container podman runc -- container
check reproducible setpriv -- reproducible
check bundles docker-registry skopeo umoci podman -- bundles
check killed skopeo -- killed
check full mount -- full
check execs strace -- execs
check containerfile buildah bzip2 xz zstd -- hack/containerfile.sh "$bindery"
# shellcheck source=hack/acceptance_store.sh
. hack/acceptance_store.sh
store_user=$(id -u bindery-store 2>/dev/null || true)
check store podman su newuidmap -- store
[ -n "$store_user" ] || userdel -r bindery-store >/dev/null 2>&1
# shellcheck source=hack/acceptance_index.sh
. hack/acceptance_index.sh
# shellcheck source=hack/acceptance_layers.sh
. hack/acceptance_layers.sh
# shellcheck source=hack/acceptance_supply.sh
. hack/acceptance_supply.sh
# shellcheck source=hack/acceptance_mirror.sh
. hack/acceptance_mirror.sh
# shellcheck source=hack/acceptance_mirror_scale.sh
. hack/acceptance_mirror_scale.sh
# shellcheck source=hack/acceptance_olmv1.sh
. hack/acceptance_olmv1.sh
# shellcheck source=hack/acceptance_serve.sh
. hack/acceptance_serve.sh

printf '\nacceptance:\n'
printf '  %s\n' "${results[@]}"
exit $failed
