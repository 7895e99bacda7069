# shellcheck shell=bash
# The server as a cluster runs it: catalog images in containers of a restricted pod with 64 MiB of memory, with every kind of cache
# and with none; the catalog replaced under a running server; clients that read nothing. Sourced by hack/acceptance.sh after
# hack/acceptance_index.sh, whose functions and variables it uses.
#
#   ACCEPTANCE_CATALOG=DIR|DATABASE  the catalog; else one of 400 bundles is grown from the project's
#   ACCEPTANCE_SWAPS=1000            how often the catalog is replaced, all of it; else a part of it, 30 times
#   ACCEPTANCE_DAMAGES=N             how many caches are damaged, else 2

serve_dir=$work/serve
serve_image_name=localhost/acme/served
serve_port=$((port + 300))
serve_limit=$((64 << 20))
# The limit of a container is made by the engine, or else by hand in the control groups of version 1 or 2, or it is left out.
serve_memory=podman
serve_memory_dir=/sys/fs/cgroup
[ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ] && serve_memory_dir=/sys/fs/cgroup/memory

serve_find_memory() {
    local name=bindery-limit-$$ file
    # shellcheck disable=SC2086
    if podman $podman_flags run --rm --name $name -m $serve_limit --network host --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
        "$serve_image_name:opm-json" version >/dev/null 2>"$serve_dir/limit.err"; then return; fi
    serve_memory=hand
    mkdir "$serve_memory_dir/bindery-$$" 2>/dev/null || { serve_memory=none; return; }
    for file in memory.max memory.limit_in_bytes; do
        [ -e "$serve_memory_dir/bindery-$$/$file" ] && echo $serve_limit >"$serve_memory_dir/bindery-$$/$file" && return
    done
    rmdir "$serve_memory_dir/bindery-$$"
    serve_memory=none
}

# The catalog, its images, and what must be answered, as jq reads it in the catalog.
serve_setup() {
    mkdir -p "$serve_dir"
    go build -o "$serve_dir/load" ./hack/load
    local from=${ACCEPTANCE_CATALOG:-} kind
    if [ -z "$from" ]; then
        from=$serve_dir/grown
        go run ./hack/grow -bundles 400 "$from" "$work/catalog"
    fi
    quiet migrate "$from" "$serve_dir/catalog" -o json
    du -sh "$serve_dir/catalog"
    find "$serve_dir/catalog" -name '*.json' -exec cat {} + | jq -r 'select(.schema == "olm.channel") | .package as $p | .name as $c | .entries[] | "\($p) \($c) \(.name)"' | sort >"$serve_dir/want"
    for kind in opm-json opm-pogreb; do
        quiet build catalog "$serve_dir/catalog" -t "$serve_image_name:$kind" --cache native --cache $kind --max-layers 3 --to "docker-archive:$serve_dir/$kind.tar" >/dev/null
        podman load -q -i "$serve_dir/$kind.tar" >/dev/null
        rm "$serve_dir/$kind.tar"
    done
}

# pod NAME TAG [FLAG OF PODMAN...] -- ARGUMENT... runs an image as a restricted pod does, and waits until it serves. What the server
# says is in the file NAME.log, its status in the end in NAME.status.
pod() {
    local name=$1 tag=$2 flags=() limit=() i pid; shift 2
    while [ "$1" != -- ]; do flags+=("$1"); shift; done
    shift
    [ $serve_memory = podman ] && limit=(-m "$serve_limit" --memory-swap "$serve_limit")
    rm -f "$serve_dir/$name.status"
    # shellcheck disable=SC2086
    { podman $podman_flags run --rm --name "bindery-$name-$$" --network host --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
        "${limit[@]}" --read-only --read-only-tmpfs=false --cap-drop ALL --security-opt no-new-privileges "${flags[@]}" \
        "$serve_image_name:$tag" "$@" >"$serve_dir/$name.log" 2>&1 || echo $? >"$serve_dir/$name.status"; } &
    pod_job=$!
    for i in $(seq 600); do
        grep -q 'serving registry' "$serve_dir/$name.log" 2>/dev/null && break
        [ -e "$serve_dir/$name.status" ] && break
        sleep 0.05
    done
    grep -q 'serving registry' "$serve_dir/$name.log" || { cat "$serve_dir/$name.log"; return 1; }
    if [ $serve_memory = hand ]; then pod_pid "$name" >"$serve_memory_dir/bindery-$$/cgroup.procs"; fi
}
pod_pid() { podman inspect --format '{{.State.Pid}}' "bindery-$1-$$"; }

# pod_end NAME: at SIGTERM the server ends by itself, well, before the engine kills it.
pod_end() {
    # shellcheck disable=SC2086
    podman $podman_flags stop -t 20 "bindery-$1-$$" >/dev/null
    wait $pod_job
    if [ -e "$serve_dir/$1.status" ]; then echo "$1 ended with status $(cat "$serve_dir/$1.status")"; cat "$serve_dir/$1.log"; return 1; fi
}

# pod_peak NAME: the most memory that the container had, in MiB, of the files in it what was not given back.
pod_peak() {
    local pid file; pid=$(pod_pid "$1")
    awk '/VmHWM/ {printf "%d MiB resident at most", $2 / 1024}' "/proc/$pid/status"
    for file in "/sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' "/proc/$pid/cgroup")/memory.failcnt" "/sys/fs/cgroup$(sed -n 's/^0:://p' "/proc/$pid/cgroup")/memory.events"; do
        [ -e "$file" ] && echo "; the limit was reached: $(tr '\n' ' ' <"$file")" && return
    done
    echo
}

# answers NAME PORT: all that the server answers is what every other one did, and what the catalog says.
answers() {
    local addr=127.0.0.1:$2 got
    "$bindery" probe -addr "$addr" >/dev/null
    "$work/rpc" "$addr" bundles | awk '{print $1, $2, $3}' | sort | cmp - "$serve_dir/want"
    got=$("$work/rpc" "$addr" digest)
    [ -e "$serve_dir/digest" ] || echo "$got" >"$serve_dir/digest"
    [ "$got" = "$(cat "$serve_dir/digest")" ] || { echo "$1: other answers than the first server"; return 1; }
    echo "$1: $(wc -l <"$serve_dir/want") bundles of channels, $(pod_peak "$1")"
}

nobody=(--user 1000690000:0)

# Every kind of cache, and none, with the image's own user and with an unknown one.
serve_caches() {
    serve_setup
    serve_find_memory
    echo $serve_memory >"$serve_dir/memory"
    local p=$serve_port pid kind
    # The image's own user and cache; with pages, metrics, and clients that begin a long answer and read nothing of it.
    # Pages want room for the catalog as JSON: an empty directory, as a pod gets one.
    mkdir -p "$serve_dir/room"; chmod 1777 "$serve_dir/room"
    pod native opm-json -v "$serve_dir/room:/tmp" -- serve /configs --cache-dir=/cache -p $p --http-addr 127.0.0.1:$((p + 1)) --metrics-addr 127.0.0.1:$((p + 2))
    pid=$(pod_pid native)
    [ "$(awk '/^Uid/ {print $3}' "/proc/$pid/status")" = 1001 ]
    if grep -q WARN "$serve_dir/native.log" && grep WARN "$serve_dir/native.log" | grep -v 'termination log'; then return 1; fi
    answers native $p
    [ "$(curl -fsS "http://127.0.0.1:$((p + 1))/api/v1/metas?schema=olm.package" | jq -rs '.[].name' | sort)" = "$(cut -d' ' -f1 "$serve_dir/want" | sort -u)" ]
    curl -fsS -o "$serve_dir/page" "http://127.0.0.1:$((p + 1))/"
    grep -q '<h1>' "$serve_dir/page"
    curl -fsS -o "$serve_dir/metrics" "http://127.0.0.1:$((p + 2))/metrics"
    grep -qx "bindery_catalog_packages $(cut -d' ' -f1 "$serve_dir/want" | sort -u | wc -l)" "$serve_dir/metrics"
    "$serve_dir/load" -addr 127.0.0.1:$p -pid "$pid" -mode stopped -crowd 200 -clients 2 -time 1s >"$serve_dir/load.json" 2>"$serve_dir/load.err"
    jq -e '.[0] | .calls > 100 and (.errors // 0) == 0' "$serve_dir/load.json" >/dev/null || { cat "$serve_dir/load.json"; return 1; }
    # A client that is stopped itself holds up neither others nor the end.
    "$work/rpc" 127.0.0.1:$p watch 4 "$("$work/rpc" 127.0.0.1:$p list)" >/dev/null 2>&1 &
    local stopped=$!
    sleep 0.3
    kill -STOP $stopped
    answers native $p
    pod_end native
    kill -KILL $stopped
    wait $stopped 2>/dev/null || true
    [ -z "$(ls -A "$serve_dir/room")" ]

    # There is no cache in the directory that the server is given, and nothing can be written there.
    pod none opm-json "${nobody[@]}" -- serve /configs --cache-dir=/none -p $p
    answers none $p
    pod_end none
    for kind in opm-json opm-pogreb; do
        # The server builds its own cache in place of opm's.
        pod $kind $kind "${nobody[@]}" -- serve /configs --cache-dir=/tmp/cache -p $p
        grep -q "level=WARN.*cache of opm's" "$serve_dir/$kind.log" || { cat "$serve_dir/$kind.log"; return 1; }
        answers $kind $p
        pod_end $kind
    done

    # Damaged caches, mounted over the image's: the answers are the catalog's, and a line says why. With enforced integrity the
    # server ends, in one way or the other it does not fall and rise again for ever.
    local n=${ACCEPTANCE_DAMAGES:-2} i files file size at
    "$bindery" serve "$serve_dir/catalog" --cache-dir "$serve_dir/good" --cache-only -q 2>/dev/null
    mapfile -t files < <(find "$serve_dir/good" -type f | sort)
    for i in $(seq "$n"); do
        rm -rf "$serve_dir/bad"; cp -r "$serve_dir/good" "$serve_dir/bad"; chmod -R a+rX "$serve_dir/bad"
        file=$serve_dir/bad/$(basename "${files[$((i * 7 % ${#files[@]}))]}"); size=$(stat -c %s "$file"); at=$((size * (i * 37 % 100) / 100))
        case $((i % 3)) in
            0) truncate -s "$at" "$file" ;;
            1) printf '\377\000damage' | dd of="$file" bs=1 seek="$at" conv=notrunc status=none ;;
            2) cp "${files[0]}" "$file"; echo more >>"$file" ;;
        esac
        pod damaged opm-json -v "$serve_dir/bad:/cache:ro" "${nobody[@]}" -- serve /configs --cache-dir=/cache -p $p
        grep -q 'level=WARN.*cache' "$serve_dir/damaged.log" || { echo "nothing is said of damage $i"; cat "$serve_dir/damaged.log"; return 1; }
        answers damaged $p
        pod_end damaged
        if pod refused opm-json -v "$serve_dir/bad:/cache:ro" "${nobody[@]}" -- serve /configs --cache-dir=/cache --cache-enforce-integrity -p $p >/dev/null; then return 1; fi
        grep -q 'integrity check failed' "$serve_dir/refused.log" || { cat "$serve_dir/refused.log"; return 1; }
    done
}

# The catalog is replaced under a server with clients: each answer is that of one catalog or the other, and none is lost.
serve_swapped() {
    local n=${ACCEPTANCE_SWAPS:-30} p=$serve_port i lists=() kind loads
    mkdir -p "$serve_dir/swap"
    mkdir "$serve_dir/swap/one"
    find "$serve_dir/catalog" -mindepth 1 -maxdepth 1 | sort | if [ -n "${ACCEPTANCE_SWAPS:-}" ]; then cat; else sed -n 1,10p; fi | xargs cp -rt "$serve_dir/swap/one"
    cp -r "$serve_dir/swap/one" "$serve_dir/swap/two"
    # The second has one package less, and the texts of another are others.
    rm -r "$(find "$serve_dir/swap/two" -mindepth 1 -maxdepth 1 | sort | head -n 1)"
    find "$serve_dir/swap/two" -name '*.json' | sort | head -n 1 | xargs sed -i 's/[Oo]perator for/OPERATOR for/g'
    chmod -R a+rX "$serve_dir/swap"
    swap() { ln -sfn "$1" "$serve_dir/swap/next" && mv -T "$serve_dir/swap/next" "$serve_dir/swap/current"; }
    loaded() { curl -fs "http://127.0.0.1:$((p + 2))/metrics" | awk -v r="$1" '$1 == "bindery_catalog_loads_total{result=\"" r "\"}" {print $2}' || { echo "the server is gone" >&2; cat "$serve_dir/swapped.log" >&2; return 1; }; }
    # more LOADS waits until there were more loads than that.
    more() {
        local now; for _ in $(seq 2000); do now=$(loaded success) || return 1; [ "$now" -gt "$1" ] && return; sleep 0.01; done
        echo "a change is not seen"; cat "$serve_dir/swapped.log"; return 1
    }
    swap one
    # While it is loaded there are two catalogs: where they have no room on a disk, they have it in memory.
    pod swapped opm-json -v "$serve_dir/room:/tmp" -v "$serve_dir/swap:/catalogs:ro" "${nobody[@]}" -- serve /catalogs/current -p $p --metrics-addr 127.0.0.1:$((p + 2)) --reload-every 20ms
    lists+=("$("$work/rpc" 127.0.0.1:$p list)")
    swap two
    more 1
    lists+=("$("$work/rpc" 127.0.0.1:$p list)")
    [ "${lists[0]}" != "${lists[1]}" ]
    "$work/rpc" 127.0.0.1:$p watch 6 "${lists[@]}" >"$serve_dir/watch" 2>&1 &
    local watching=$!
    for i in $(seq "$n"); do
        kind=one; [ $((i % 2)) = 0 ] && kind=two
        loads=$(loaded success)
        swap $kind
        more "$loads"
    done
    kill -TERM $watching
    wait $watching || { cat "$serve_dir/watch"; return 1; }
    cat "$serve_dir/watch"
    [ "$(loaded failure)" = 0 ]
    # A signal loads it again although nothing has changed.
    loads=$(loaded success)
    # shellcheck disable=SC2086
    podman $podman_flags kill -s HUP "bindery-swapped-$$" >/dev/null
    more "$loads"
    echo "$n times another catalog: $(pod_peak swapped), $(find "/proc/$(pod_pid swapped)/fd" | wc -l) files open"
    pod_end swapped
}

# The recorded answers, by servers in containers.
serve_recorded() {
    local recorded kind name at=$serve_dir/recorded p=$serve_port
    while read -r name kind; do
        recorded=serve/testdata/recorded/$name
        rm -rf "$at"; cp -r "$recorded" "$at"
        find "$at" -name '*.zst' -exec zstd -dq --rm {} +
        quiet build catalog "$at/catalog" -t "$serve_image_name:$name" --cache "$kind" --max-layers 3 --to "docker-archive:$at.tar" >/dev/null
        podman load -q -i "$at.tar" >/dev/null
        pod "$name" "$name" "${nobody[@]}" -- serve /configs --cache-dir="$([ "$kind" = native ] && echo /cache || echo /tmp/cache)" -p $p
        "$work/rpc" 127.0.0.1:$p replay "$at/calls.ndjson"
        pod_end "$name"
    done <<END
deprecations native
constraint opm-json
truncated opm-pogreb
END
}

serve_cleanup() {
    local c
    for c in $(podman ps -aq --filter "name=bindery-.*-$$\$" 2>/dev/null); do podman $podman_flags rm -f -t 0 "$c" >/dev/null 2>&1; done
    for c in opm-json opm-pogreb deprecations constraint truncated; do podman rmi -f $serve_image_name:$c >/dev/null 2>&1; done
    if [ -d "$serve_memory_dir/bindery-$$" ]; then rmdir "$serve_memory_dir/bindery-$$"; fi
    case $(cat "$serve_dir/memory" 2>/dev/null) in
        podman) ;;
        hand) results+=("NOTE      serve: the memory limit was set by hand, after the start") ;;
        none) results+=("LEFT OUT  serve: 64 MiB of memory: there is no control group for it") ;;
    esac
    rm -rf "$serve_dir"
}

# All of it by one name, as what comes later needs what is made first.
serve_all() {
    serve_caches
    echo "$SECONDS s"
    serve_swapped
    echo "$SECONDS s"
    serve_recorded
}

check serve podman runc curl jq zstd -- serve_all
serve_cleanup
