# shellcheck shell=bash
# The store of podman: as root with vfs, and as an ordinary user in a user namespace. Sourced by hack/acceptance.sh, whose functions
# and variables it uses.

store() {
    local dir=$work/store user=bindery-store name=localhost/acme/store:v1 spec digest pod
    mkdir -p "$dir"; chmod 755 "$dir"
    spec="[vfs@$dir/root+$dir/run]"; pod=(podman --root "$dir/root" --runroot "$dir/run" --storage-driver vfs)
    digest=$("$bindery" -q build catalog testdata/fbc/mini -t "$name" --server none --no-cache --to "containers-storage:$spec$name" | tail -n 1) || return
    digest=${digest#*@}
    [ "$("${pod[@]}" images --digests --format '{{.Digest}}')" = "$digest" ] || return
    "$bindery" -q inspect "containers-storage:$spec$name" >"$dir/inspected" && grep -q "$digest" "$dir/inspected" || return
    "${pod[@]}" rmi "$name" >/dev/null || return

    id "$user" >/dev/null 2>&1 || useradd -m "$user" || return
    mkdir -p "$dir/home"; cp -r testdata/fbc/mini "$dir/catalog"; cp "$bindery" "$dir/bindery"
    printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/home/root"\nrunroot = "%s/home/run"\n' "$dir" "$dir" >"$dir/home/storage.conf"
    chown -R "$user" "$dir/home"; chmod -R a+rX "$dir/catalog" "$dir/bindery"
    su "$user" -c "cd '$dir/home' && export TMPDIR='$dir/home' CONTAINERS_STORAGE_CONF='$dir/home/storage.conf' &&
        '$dir/bindery' -q build catalog '$dir/catalog' -t acme/store:v1 --server none --no-cache --load &&
        '$dir/bindery' -q inspect containers-storage:acme/store:v1" >"$dir/inspected" || return
    # Once from the build, once from the store.
    [ "$(grep -c "$digest" "$dir/inspected")" -ge 2 ]
}
