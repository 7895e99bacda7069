#!/usr/bin/env bash
# The full build of bindery runs the commands of Containerfiles: as root and as an ordinary user with subordinate ids, with the same
# digest; with secrets; failing and killed builds leave nothing. Its image has the files and the configuration that buildah's has.
# usage: hack/acceptance_full.sh [dist/bindery-full [dist/bindery]]     as root on Linux; needs a static busybox, takes a minute
#
# ACCEPTANCE_FULL=short does without what takes most of the time: one RUN as root, one as a user, and the refusals.
# BUSYBOX names the static busybox; without it Debian's package busybox-static is fetched and taken apart, not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
full=$(realpath "${1:-dist/bindery-full}")
short=; [ "${ACCEPTANCE_FULL:-}" != short ] || short=1
plain=${2:-dist/bindery}; plain=$(realpath "$plain")
[ "$(id -u)" = 0 ] || { echo "LEFT OUT: acceptance_full.sh wants root"; exit 77; }
work=$(mktemp -d)
user=bindery-full-$$
made=
cleanup() {
    if [ -n "$made" ]; then userdel -r "$user" >/dev/null 2>&1 || true; fi
    rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
ok() { echo "ok    $*"; }

if [ -z "${BUSYBOX:-}" ]; then
    BUSYBOX=$(command -v busybox || true)
    if [ -z "$BUSYBOX" ] || ! file -L "$BUSYBOX" | grep -q 'statically linked'; then
        (cd "$work" && chmod 755 . && apt-get download -q busybox-static >/dev/null 2>&1 && dpkg-deb -x busybox-static*.deb bb) ||
            { echo "LEFT OUT: no static busybox and no package of it"; exit 77; }
        BUSYBOX=$(find "$work/bb" -path '*/bin/busybox' -type f | head -1)
    fi
fi
chmod 755 "$work"
mkdir -p "$work/context/dir"
install -m 755 "$BUSYBOX" "$work/context/busybox"
echo text >"$work/context/dir/file"
printf s3cret >"$work/secret"; chmod 644 "$work/secret"
cat >"$work/context/Containerfile" <<'F'
FROM scratch AS tools
COPY busybox /bin/busybox
RUN ["/bin/busybox", "--install", "-s", "/bin"]
FROM tools AS made
ARG WHO=nobody
ENV GREETING=hello
RUN mkdir -p /etc && echo $GREETING $WHO >/etc/greeting && chown 1001:0 /etc/greeting && chmod 0640 /etc/greeting
RUN --mount=type=secret,id=token wc -c </run/secrets/token >/size
FROM tools
COPY dir /dir
COPY --from=made /etc/greeting /size /made/
RUN rm /dir/file && ln -s /made /link && mkdir -m 1777 /sticky
LABEL a=b
USER 1001:0
WORKDIR /work
ENTRYPOINT ["/bin/sh"]
CMD ["-c", "cat /made/greeting"]
F
printf 'FROM scratch\nCOPY busybox /bin/busybox\nRUN ["/bin/busybox", "sh", "-c", "exit 42"]\n' >"$work/Fails"
printf 'FROM scratch\nCOPY busybox /bin/busybox\nRUN ["/bin/busybox", "sleep", "4711"]\n' >"$work/Sleeps"

# What a build as root leaves: no mounts and no files of temporary directories.
as_root() { TMPDIR=$work/tmp-root "$full" build containerfile "$@"; }
mkdir "$work/tmp-root"; install -d -m 700 "$work/home"
useradd --create-home "$user"; made=1
install -d -o "$user" "$work/tmp-user"
as_user() { setpriv --reuid "$user" --regid "$user" --clear-groups env -u XDG_RUNTIME_DIR -u XDG_CACHE_HOME HOME="$(getent passwd "$user" | cut -d: -f6)" TMPDIR="$work/tmp-user" "$full" build containerfile "$@"; }
nothing_left() {
    local left; left=$(find "$work/tmp-root" "$work/tmp-user" -mindepth 1 | head -3)
    [ -z "$left" ] || fail "$1 leaves $left"
    ! grep -q "$work" /proc/self/mountinfo || fail "$1 leaves mounts"
}
flags=(--secret "id=token,src=$work/secret" --build-arg WHO=you -t localhost/acme/run:v1)

if file "$full" | grep -q 'statically linked'; then ok "one static file"; else fail "$(file "$full")"; fi

as_root "$work/context" "${flags[@]}" --to "oci:$work/root:v1" --digest-file "$work/digest" >/dev/null 2>"$work/log" || { cat "$work/log"; fail "a build as root"; }
nothing_left "a build as root"
if grep -q s3cret -r "$work/log" "$work/root"; then fail "the secret is in log or image"; fi
as_user "$work/context" "${flags[@]}" --dry-run 2>"$work/log" | grep -q "$(cat "$work/digest")" || { cat "$work/log"; fail "a user's build has another digest"; }
nothing_left "a user's build"
ok "RUN as root and as a user with subordinate ids: $(cat "$work/digest")"

# Bases on this machine are the same for files with RUN and without, relative to the working directory.
printf 'FROM scratch\nCOPY busybox /bin/busybox\n' >"$work/Base"
(
    cd "$work"
    as_root context -f Base -t localhost/acme/base:v1 --to oci:base:v1 --to oci-archive:base.tar --to docker-archive:base-docker.tar \
        --to dir:base-dir >/dev/null 2>log || { cat log; fail "the base"; }
    for ref in oci:base:v1 "oci:$work/base:v1" oci-archive:base.tar docker-archive:base-docker.tar dir:base-dir; do
        printf 'FROM %s\nCOPY --from=%s /bin/busybox /copy\nRUN ["/bin/busybox", "touch", "/made"]\n' "$ref" "$ref" >OnBase
        as_root context -f OnBase -t localhost/acme/on:v1 --to oci:on:v1 >/dev/null 2>log || { cat log; fail "RUN on $ref"; }
        printf 'FROM oci:on:v1\nCOPY --from=oci:on:v1 /made /copy /again/\n' >Plain
        as_root context -f Plain -t localhost/acme/plain:v1 --dry-run >/dev/null 2>log || { cat log; fail "what RUN made on $ref is not there"; }
    done
) || exit 1
nothing_left "a build on local images"
ok "RUN on images of layouts, archives and directories"

if [ -z "$short" ]; then
STORAGE_DRIVER=vfs as_root "$work/context" "${flags[@]}" --dry-run 2>/dev/null | grep -q "$(cat "$work/digest")" || fail "vfs makes another image"
ok "the same with vfs"

status=0; as_root "$work/context" -f "$work/Fails" -t localhost/acme/f:v1 --to "oci:$work/none:v1" >/dev/null 2>"$work/log" || status=$?
[ "$status" = 42 ] || fail "a failing RUN ends with $status"
[ ! -e "$work/none" ] || fail "a failing RUN leaves an image"
nothing_left "a failing RUN"
ok "a failing RUN gives its status and leaves nothing"

killed() { # SIGNAL as_root|as_user
    local out=$work/tmp-${2#as_}/none
    "$2" "$work/context" -f "$work/Sleeps" -t localhost/acme/f:v1 --to "oci:$out:v1" >/dev/null 2>&1 &
    local job=$! pid="" _
    for _ in $(seq 100); do
        sleep 0.1
        pid=$(pgrep -xf '/bin/busybox sleep 4711' || true)
        [ -z "$pid" ] || break
    done
    [ -n "$pid" ] || fail "the RUN to be killed has not begun"
    # The job is a shell function: the program is its oldest child, or itself.
    local target; target=$(pgrep -o -P "$job" -f 'build containerfile' || echo "$job")
    kill "-$1" "$target"
    wait "$job" || true
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    if kill -0 "$pid" 2>/dev/null; then kill -9 "$pid"; fail "$1 as $2: the command goes on"; fi
    ! grep -q "$work" /proc/self/mountinfo || fail "$1 as $2 leaves mounts"
    [ ! -e "$out" ] || fail "$1 as $2 leaves an image"
}
killed TERM as_root; nothing_left "SIGTERM"
killed TERM as_user; nothing_left "SIGTERM"
killed KILL as_root; killed KILL as_user
# What SIGKILL leaves is a directory for temporary files, which the next build removes.
as_root "$work/context" "${flags[@]}" --dry-run >/dev/null 2>&1
as_user "$work/context" "${flags[@]}" --dry-run >/dev/null 2>&1
nothing_left "a build after one that was killed"
ok "killed builds leave no process, no mount, no image"
fi

# A user without subordinate ids gets an error that names what is missing.
usermod --del-subuids 1-4294967294 --del-subgids 1-4294967294 "$user" 2>/dev/null || sed -i "/^$user:/d" /etc/subuid /etc/subgid
if as_user "$work/context" "${flags[@]}" --dry-run >/dev/null 2>"$work/log"; then fail "a user without subordinate ids builds RUN"; fi
grep -q '/etc/subuid' "$work/log" || { cat "$work/log"; fail "the error does not name what is missing"; }
ok "a user without subordinate ids: $(grep -m1 'subuid' "$work/log" | cut -c1-110)..."

if "$full" build containerfile "$work/context" "${flags[@]}" --platform linux/s390x --dry-run >/dev/null 2>"$work/log"; then
    ok "an emulator for s390x is registered here"
else
    grep -q 's390x.*no emulator' "$work/log" || { cat "$work/log"; fail "a foreign platform"; }
    ok "a foreign platform without emulator is refused"
fi

if "$plain" build containerfile "$work/context" "${flags[@]}" --dry-run >/dev/null 2>"$work/log"; then fail "the usual build runs commands"; fi
grep -q 'make build-full' "$work/log" || { cat "$work/log"; fail "the refusal names no way out"; }
ok "the usual build refuses RUN and names make build-full"

if [ -n "$short" ]; then
    echo "the short form: without vfs, failing and killed builds, and without buildah's image"
elif command -v buildah >/dev/null; then
    store=(--root "$work/buildah" --runroot "$work/buildah-run" --storage-driver vfs)
    buildah "${store[@]}" bud --isolation chroot --ulimit nofile=1024:1024 --timestamp 0 --secret "id=token,src=$work/secret" --build-arg WHO=you -t oci:"$work/theirs:v1" "$work/context" >"$work/log" 2>&1 || { cat "$work/log"; fail "buildah"; }
    # The layers as one list of files: name, kind, mode, owner, size, target. Mount points are left in it by some versions
    # only, and older ones write the kind of a file into its mode as well.
    python3 - "$work/root" "$work/theirs" <<'P' || fail "the image is not the one that buildah makes"
import json, os, sys, tarfile, hashlib
def blob(d, digest): return os.path.join(d, "blobs", *digest.split(":"))
def image(d):
    entry = json.load(open(os.path.join(d, "index.json")))["manifests"][0]
    m = json.load(open(blob(d, entry["digest"])))
    config = json.load(open(blob(d, m["config"]["digest"])))
    files = {}
    for l in m["layers"]:
        with tarfile.open(blob(d, l["digest"])) as t:
            for e in t:
                name = e.name.strip("/")
                if name in ("dev", "proc", "sys", "run", "etc", "etc/hosts", "etc/resolv.conf", "etc/hostname", ""): continue
                content = hashlib.sha256(t.extractfile(e).read()).hexdigest() if e.isreg() else ""
                files[name] = (e.type, oct(e.mode & 0o7777), e.uid, e.gid, e.linkname, content)
    c = config["config"]; labels = c.get("Labels") or {}; labels.pop("io.buildah.version", None); c["Labels"] = labels
    return files, c, config["os"], config["architecture"]
ours, theirs = image(sys.argv[1]), image(sys.argv[2])
for n in [n for n in sorted(set(ours[0]) | set(theirs[0])) if ours[0].get(n) != theirs[0].get(n)][:20]:
    print("differs:", n, ours[0].get(n), theirs[0].get(n))
if ours[1:] != theirs[1:]: print(ours[1:], theirs[1:], sep="\n")
assert len(ours[0]) > 200, len(ours[0])
sys.exit(ours != theirs)
P
    ok "files and configuration are those of $(buildah --version | cut -d' ' -f1-3)"
else
    echo "LEFT OUT: no buildah to compare with"
fi
echo "acceptance_full: passed"
