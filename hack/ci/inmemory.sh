#!/usr/bin/env bash
# Runs tests with their files in memory, where there is enough of it: much of their time is waiting for a disk, as each output is
# synced. Full disks, kills and other file systems are what "make hostile" and the acceptance run are about, on a disk.
#   hack/ci/inmemory.sh COMMAND...
set -euo pipefail
memory=/dev/shm
# usable tells whether 6 GB are free there and 12 GB in all, and programs can be started from it.
usable() {
    [ -w "$memory" ] && ! findmnt -no OPTIONS "$memory" | grep -qw noexec &&
        [ "$(df --output=avail -B1M "$memory" | tail -n 1)" -ge 6000 ] &&
        [ "$(awk '/^MemAvailable:/ {printf "%d", $2 / 1024}' /proc/meminfo)" -ge 12000 ]
}
if [ -z "${TMPDIR:-}" ] && usable; then
    GOTMPDIR=${GOTMPDIR:-/tmp} # what Go links stays on the disk
    TMPDIR=$memory/bindery-$UID # always the same: Go runs tests again when the value of a variable that they read changes
    export GOTMPDIR TMPDIR
    mkdir -p "$TMPDIR"
    chmod 755 "$TMPDIR" || # other users look into it, as into /tmp: tests start programs as these
        { echo "$TMPDIR belongs to another user"; exit 1; }
    find "$TMPDIR" -mindepth 1 -maxdepth 1 -mmin +600 -exec rm -rf {} + # of runs that were killed
    trap 'rmdir "$TMPDIR" 2>/dev/null || true' EXIT
fi
"$@"
