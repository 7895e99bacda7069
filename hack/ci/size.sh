#!/usr/bin/env bash
# Fails if a server program is larger than its budget, or if the sizes that the documentation states differ from those of
# dist by more than four per cent.
#   hack/ci/size.sh                 the servers, and the program of "make build"
#   hack/ci/size.sh build-small     the program of another target
#   hack/ci/size.sh installed FILE  one of "go install"
set -euo pipefail
over=0
# documented WHAT STATED MEASURED compares megabytes of a page with bytes.
documented() {
    [ "$("${GO:-go}" env GOARCH)" = amd64 ] || return 0 # what the pages state
    awk -v what="$1" -v stated="$2" -v bytes="$3" 'BEGIN {
        mb = bytes / 1e6
        printf "%-44s %6.1f MB, documented %s MB\n", what, mb, stated
        if (stated !~ /^[0-9.]+$/ || stated < mb * 0.96 || stated > mb * 1.04) { print "  correct the page"; exit 1 }
    }' || over=1
}
# stated FILE PATTERN is the number in the parentheses of a pattern.
stated() { sed -nE "s#.*$2.*#\1#p" "$1"; }

if [ "${1:-}" = installed ]; then
    documented "installed (docs/guides/install.md)" "$(stated docs/guides/install.md 'the program itself, ([0-9.]+) MB,')" "$(stat -c %s "$2")"
    exit $over
fi

target=${1:-build} ci=docs/guides/ci.md
program=dist/bindery${target#build}
servers=$(cat build/internal/serverbin/bin/*.layer | wc -c) # what is embedded
bytes=$(stat -c %s "$program")
documented "$program without servers ($ci)" "$(stated $ci "^\| .make $target. .* MB \(([0-9.]+)\) \|")" $((bytes - servers))
if [ -e build/internal/serverbin/bin/opm-server-linux-s390x.layer ]; then
    documented "$program ($ci)" "$(stated $ci "^\| .make $target. .* ([0-9.]+) MB \([0-9.]+\) \|")" "$bytes"
fi
[ "$target" = build ] || exit $over

# The budget is that of the largest platform, s390x, and little more. 0.8 MB of it read the Markdown of descriptions and
# make the pages.
budget=${SERVER_BUDGET_MB:-22.5}
for arch in amd64 arm64 ppc64le s390x; do
    bytes=$(stat -c %s "dist/opm-server-linux-$arch")
    awk -v arch="$arch" -v bytes="$bytes" -v budget="$budget" 'BEGIN {
        printf "opm-server linux/%-8s %5.1f MB\n", arch, bytes / 1e6
        if (bytes > budget * 1e6) { printf "  more than %s MB\n", budget; exit 1 }
    }' || over=1
done
documented "the server (docs/guides/install.md)" "$(stated docs/guides/install.md 'the server of ([0-9.]+) MB')" "$(stat -c %s dist/opm-server-linux-amd64)"
documented "its layer (docs/guides/mirror.md)" "$(stated docs/guides/mirror.md 'the server \(([0-9.]+) MB\)')" \
    "$(stat -c %s build/internal/serverbin/bin/opm-server-linux-amd64.layer)"
exit $over
