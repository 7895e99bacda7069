// In place of a binding to the C library GPGME, with as much of its API as go.podman.io/image uses; see go.work.
module github.com/proglottis/gpgme

go 1.26.0

require golang.org/x/crypto v0.57.0
