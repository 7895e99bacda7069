// Package fullbuild is the half of a Containerfile build that has to run commands: it hands a build with RUN to buildah as a
// library. It does something only in programs built with cgo and the tag "buildah", because a process without C code in it
// cannot become the first of its own namespaces (docs/containerfile.md).
package fullbuild
