#!/usr/bin/env bash
# Runs the tests of the packages that changed with the race detector: since CI_SINCE, else since the commit that this clone saw the
# last time, else since the last tag, else since the commit before. The tests of command families run the whole program, which takes
# an hour with the detector: they are left to "make race".
set -euo pipefail
cd "$(dirname "$0")/../.."
since=${CI_SINCE:-$(git rev-parse -q --verify refs/ci/seen || git describe --tags --abbrev=0 2>/dev/null || git rev-parse -q --verify HEAD~1)}
if [ -z "$since" ]; then
    echo "there is no commit to compare with (a clone of one commit): NOT CHECKED"
    exit 77
fi
if ! command -v "$("${GO:-go}" env CC)" >/dev/null; then
    echo "the race detector needs a C compiler: NOT CHECKED"
    exit 77
fi
packages=()
while read -r dir; do
    case $dir in hack | hack/*) continue ;; esac # modules of their own, and no part of the program
    [ -n "$(git ls-files "$dir/*_test.go")" ] && ! grep -qs internal/clitest "$dir"/*_test.go && packages+=("./$dir")
done < <(git diff --name-only "$since" HEAD -- '*.go' | xargs -r -n 1 dirname | sort -u)
echo "since $since: ${#packages[@]} packages with tests changed"
[ ${#packages[@]} = 0 ] || make race PKG="${packages[*]}"
git update-ref refs/ci/seen HEAD
