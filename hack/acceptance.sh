#!/usr/bin/env bash
# The catalog image through the programs that others use on it: skopeo, a registry, umoci, podman and runc; and the
# command under faults: other users, umasks and directories, kill -9, full disks.
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
    rm -rf "$work"
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
    if (set -euo pipefail; "$@"); then results+=("ok        $name"); else results+=("FAILED    $name"); failed=1; fi
}

quiet() { "$bindery" "$@" -q; }

# The expected answers: what the database lists.
go build -o "$work/rpc" ./hack/rpc || exit 1
quiet list packages "$db" | awk 'NR > 1 {print $1}' >"$work/packages" || exit 1
quiet migrate "$db" "$work/catalog" -o json --verify || exit 1
quiet build catalog "$work/catalog" -t localhost/acme/catalog:v1 --output "oci:$work/layout:v1" --digest-file "$work/digest" >/dev/null || exit 1
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

unpack() {
    umoci unpack --rootless --image "$work/layout:v1" "$work/bundle"
    diff -r "$work/catalog" "$work/bundle/rootfs/configs"
    [ -x "$work/bundle/rootfs/bin/opm" ] && [ -e "$work/bundle/rootfs/bin/grpc_health_probe" ]
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
    quiet build catalog "$work/catalog" -t localhost/acme/catalog:v1 --output "docker-archive:$work/image.tar" >/dev/null
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
            "$bindery" build catalog c -t localhost/acme/catalog:v1 --output oci:out -q | tail -n 1)
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
        kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null || true
        if [ -e "$work/k/out" ] && [ -n "$(ls -A "$work/k/out")" ]; then diff -r "$work/k/want" "$work/k/out" || return 1; rm -rf "$work/k/out"; fi
        "$bindery" build catalog "$work/catalog" -t a/b:v1 --output "oci:$work/k/image" -q >/dev/null 2>&1 &
        pid=$!
        sleep "$(awk "BEGIN{srand($i + 1000); print rand() * 0.25}")"
        kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null || true
        if [ -e "$work/k/image/index.json" ]; then [ "$(skopeo inspect --format '{{.Digest}}' "oci:$work/k/image:v1")" = "$digest" ] || return 1; fi
    done
    quiet migrate "$db" "$work/k/out" -o json && diff -r "$work/k/want" "$work/k/out"
    quiet build catalog "$work/catalog" -t a/b:v1 --output "oci:$work/k/image" >/dev/null
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
        if TMPDIR=$dir "$bindery" build catalog "$work/catalog" -t a/b:v1 --output "oci:$dir/image" -q >/dev/null 2>"$work/full.err"; then echo "$size: build fits"; else
            echo "$size: build: $(head -c 150 "$work/full.err")"
            grep -qi 'space' "$work/full.err"; [ "$(ls -A "$dir")" = "$before" ] || { ls -lAR "$dir"; umount "$dir"; return 1; }
        fi
        umount "$dir"
    done
}

# No command starts another program.
execs() {
    local n args
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
build catalog catalog -t a/b:v1 --output oci-archive:$work/x.tar
build catalog catalog -t a/b:v1 --format docker --output docker-archive:$work/y.tar
serve catalog --cache-dir $work/servecache --cache-only --pprof-addr=
completion bash
END
}

check inspect skopeo -- inspect
check registry docker-registry skopeo -- registry
check unpack umoci -- unpack
check catalogd skopeo -- catalogd
check container podman runc -- container
check reproducible setpriv -- reproducible
check killed skopeo -- killed
check full mount -- full
check execs strace -- execs

printf '\nacceptance:\n'
printf '  %s\n' "${results[@]}"
exit $failed
