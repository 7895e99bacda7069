# shellcheck shell=bash
# The steps of .ci/run: how one is run and reported. A step that ends with status 77 has left out what cannot be done on
# this machine, and its last line says why.
set -uo pipefail
exec </dev/null
export GIT_TERMINAL_PROMPT=0 DEBIAN_FRONTEND=noninteractive
export BINDERY_NO_PROGRESS=true                    # what steps compare has no lines of progress on a slow machine
export HOSTILE_SLACK="${HOSTILE_SLACK:-3}"         # more time, not more memory: the machine is seldom idle
export ACCEPTANCE_KILLS="${ACCEPTANCE_KILLS:-10}"  # hack/acceptance.sh by itself does 60
export CI_FUZZTIME="${CI_FUZZTIME:-2s}" CI_SKIP="${CI_SKIP:-}" GO="${GO:-go}"
CI_CROSS="${CI_CROSS:-linux/s390x darwin/arm64 windows/amd64}"

results=() failed=0 began=$SECONDS
log=$(mktemp) beside_log=$(mktemp)
trap 'rm -f "$log" "$beside_log"' EXIT

skipped() {
    case " $CI_SKIP " in *" $1 "*) results+=("skip  $1 (CI_SKIP)"); return 0 ;; esac
    return 1
}

# step NAME COMMAND... runs a step.
step() {
    local name=$1 start=$SECONDS status; shift
    skipped "$name" && return
    printf '\n===== %s\n' "$name"
    "$@" 2>&1 | tee "$log"; status=${PIPESTATUS[0]}
    case $status in
        0) results+=("ok    $name ($((SECONDS - start))s)") ;;
        77) results+=("LEFT  $name: $(tail -n 1 "$log")") ;;
        *) results+=("FAIL  $name ($((SECONDS - start))s, status $status)"); failed=1 ;;
    esac
}

# beside NAME COMMAND... starts a step that runs beside the following ones; joined waits for it and prints what it printed.
beside() {
    beside_name=$1 beside_start=$SECONDS beside_pid=''; shift
    skipped "$beside_name" && return
    "$@" >"$beside_log" 2>&1 &
    beside_pid=$!
}
joined() {
    [ -n "$beside_pid" ] || return
    local status; wait "$beside_pid"; status=$?
    printf '\n===== %s\n' "$beside_name"
    cat "$beside_log"
    if [ $status -eq 0 ]; then results+=("ok    $beside_name (ended after $((SECONDS - beside_start))s, beside others)")
    else results+=("FAIL  $beside_name (status $status)"); failed=1; fi
}

# summary prints how the steps ended, and ends with the status of the whole.
summary() {
    printf '\n===== summary (%ds)\n' $((SECONDS - began))
    printf '%s\n' "${results[@]}"
    exit $failed
}
