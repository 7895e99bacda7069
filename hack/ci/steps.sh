# shellcheck shell=bash
# The steps of .ci/run: how one is run and reported. A step that ends with status 77 has left out what cannot be done on
# this machine, and its last line says why.
set -uo pipefail
exec </dev/null
export GIT_TERMINAL_PROMPT=0 DEBIAN_FRONTEND=noninteractive
export BINDERY_NO_PROGRESS=true                    # what steps compare has no lines of progress on a slow machine
export HOSTILE_SLACK="${HOSTILE_SLACK:-5}"         # more time, not more memory: the machine is seldom idle
export ACCEPTANCE_KILLS="${ACCEPTANCE_KILLS:-10}"  # hack/acceptance.sh by itself does 60
export CI_FUZZTIME="${CI_FUZZTIME:-2s}" CI_SKIP="${CI_SKIP:-}" GO="${GO:-go}"
CI_CROSS="${CI_CROSS:-linux/s390x darwin/arm64 windows/amd64}"

began=$SECONDS
state=$(mktemp -d) # how the steps ended, in the order in which they did, and what they printed
trap 'rm -rf "$state"' EXIT
: >"$state/results"

# spend sets spent to the seconds of processor time that the commands of this shell have taken by now, with those of their children.
spend() {
    local at=$state/times-$BASHPID
    times >"$at"
    spent=$(awk 'NR == 2 {split($1 $2, t, /[ms]/); printf "%d", t[1] * 60 + t[2] + t[3] * 60 + t[4]}' "$at")
}

# step NAME COMMAND... runs a step.
step() {
    local name=$1 start=$SECONDS cpu spent status log; shift
    case " $CI_SKIP " in *" $name "*) echo "skip  $name (CI_SKIP)" >>"$state/results"; return ;; esac
    log=$state/$name
    spend; cpu=$spent
    printf '\n===== %s\n' "$name"
    "$@" 2>&1 | tee "$log"; status=${PIPESTATUS[0]}
    spend
    local took="$((SECONDS - start))s, $((spent - cpu))s of processor time"
    case $status in
        0) echo "ok    $name ($took)" ;;
        77) echo "LEFT  $name: $(tail -n 1 "$log")" ;;
        *) echo "FAIL  $name ($took, status $status)" ;;
    esac >>"$state/results"
}

# beside FUNCTION runs the steps of a function beside the ones that follow; joined waits for them and prints what they printed.
beside() {
    (began=$SECONDS; "$1"; echo "      $1: $((SECONDS - began))s") >"$state/beside" 2>&1 &
    beside_pid=$!
}
joined() {
    wait "$beside_pid" || echo "FAIL  the steps beside the others ended with status $?" >>"$state/results"
    cat "$state/beside"
}

# summary prints how the steps ended, and ends with the status of the whole.
summary() {
    printf '\n===== summary (%ds)\n' $((SECONDS - began))
    cat "$state/results"
    ! grep -q '^FAIL' "$state/results"
    exit
}
