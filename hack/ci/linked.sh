# shellcheck shell=bash
# Which packages are linked into a build. Sourced by the checks of the builds.
tags=containers_image_openpgp,exclude_graphdriver_btrfs

# linked COMMAND TAGS lists the packages of a build; is_in LIST PACKAGE BUILD and not_in LIST PATTERN BUILD check the list.
linked() { GOOS=linux GOFLAGS=-buildvcs=false "${GO:-go}" list -deps -tags "$tags,$2" "./cmd/$1"; }
is_in() { if ! grep -qx "$2" <<<"$1"; then echo "$2 is not linked into $3"; return 1; fi; }
not_in() { if grep -E "^($2)(/|\$)" <<<"$1"; then echo "is linked into $3, and should not be"; return 1; fi; }
