// Package fullbuild builds Containerfiles whose commands have to be run: it passes them to buildah as a library, with
// chroot isolation. It works only in programs for Linux that were built with cgo and the tag "buildah" ("make
// build-full"), because entering namespaces takes C code that runs before Go's threads start; in all others [Available]
// is false and [Build] fails.
//
//	main ──> Init        in a process that the library started for a RUN: does its work, and main returns
//	command ──> Enter    before any work: starts the program again in new namespaces
//	command ──> Build    Containerfile, context ──> buildah, with a private store in Request.Dir ──> Result
//	Result ──> build.Directories ──> images.Copy
//
// It neither reads nor writes the user's image store. A killed build leaves a temporary directory but no mounts, as the
// mounts are in a namespace that ends with the process.
package fullbuild

import (
	"errors"
	"fmt"
	"io"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"
)

// ErrUnavailable is returned by programs that cannot run commands.
var ErrUnavailable = errors.New(
	"this build of bindery runs no commands: RUN needs the full build (\"make build-full\", linux with cgo), or " +
		"buildah or podman")

// Format is the manifest format of an image.
type Format string

// The formats, named as in the command's flag.
const (
	OCI    Format = "oci"
	Docker Format = "docker"
)

// Request describes one build.
type Request struct {
	// File is the Containerfile, Context the directory that COPY and ADD read.
	File, Context string
	// Images are the images that the file names. Local ones ("oci:DIR:TAG") are read relative to the working directory.
	Images []Image
	// Platforms are built one after the other; empty means this machine's.
	Platforms []v1.Platform
	Target    string // name or number of the last stage to build; empty means the last in the file
	Args      map[string]string
	// Secrets are for RUN --mount=type=secret, each as "id=NAME,src=FILE" or "id=NAME,env=VARIABLE".
	Secrets []string
	// Contexts are additional directories and images for --from (--build-context), by name.
	Contexts map[string]string
	// Labels and Annotations are "KEY=VALUE".
	Labels, Annotations []string
	Format              Format
	// Zstd compresses the new layers with zstd instead of gzip; not allowed in the docker format.
	Zstd bool
	// Created is the time of everything in the image; zero means 1970, so that equal input gives an equal image.
	Created time.Time

	// Dir is a private, empty directory for the store of the build and its result. The caller removes it.
	Dir string
	// System configures the access to registries. Policy is a policy.json that replaces the system's.
	System *types.SystemContext
	Policy string
	// Retries is how often a failing registry is tried again.
	Retries int
	// Log receives the messages of buildah and the output of the commands.
	Log io.Writer
}

// Image is an image that a file names.
type Image struct {
	Name     string
	Platform v1.Platform // of the image
	Build    v1.Platform // of the build that needs it
}

// Result has the built images, one for each platform, in the order of the request.
type Result struct {
	// Dirs are directories in the format of the "dir:" transport.
	Dirs []string
}

// ExitError reports a failed command of a RUN.
type ExitError struct {
	Status int // the command's, 1 to 255
	Err    error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// check refuses invalid requests before any work.
func (r Request) check() error {
	var errs []error
	for _, p := range []struct{ what, value string }{{"Containerfile", r.File}, {"context", r.Context},
		{"working directory", r.Dir}} {
		if p.value == "" {
			errs = append(errs, fmt.Errorf("a build needs a %s", p.what))
		}
	}
	if r.Format == Docker && r.Zstd {
		errs = append(errs, errors.New("the docker format does not support zstd"))
	}
	return errors.Join(append(errs, CheckSecrets(r.Secrets))...)
}
