// Package fullbuild is the half of a Containerfile build that has to run commands: it hands a build with RUN to buildah as a
// library, with chroot isolation. It does something only in programs for linux that were built with cgo and the tag "buildah"
// ("make build-full"), because a process without C code in it cannot become the first of its own namespaces; in all others
// [Available] is false and [Build] refuses.
//
//	main ──> Init        the program started itself as the process of a RUN: does that, and the program ends
//	command ──> Enter    before any work: the program starts itself once more in namespaces of its own
//	command ──> Build    Containerfile, context ──> buildah, with a store of its own in Request.Dir ──> Result
//	Result ──> build.Directories ──> images.Copy
//
// No image of the user's store is read or written: what is left of a killed build is a directory for temporary files, and
// no mount, because these are in a namespace that ends with the process.
package fullbuild

import (
	"errors"
	"fmt"
	"io"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"
)

// ErrUnavailable is what programs say that cannot run commands.
var ErrUnavailable = errors.New("this build of bindery runs no commands: RUN needs the full build (\"make build-full\", linux with cgo), or buildah or podman")

// Format is the kind of manifest that an image has.
type Format string

// The formats, by the names that the command has for them.
const (
	OCI    Format = "oci"
	Docker Format = "docker"
)

// Request is one build.
type Request struct {
	// File is the Containerfile, Context the directory that COPY and ADD read.
	File, Context string
	// Images are those that the file names. Those on this machine ("oci:DIR:TAG") are read from there, relative to the working
	// directory.
	Images []Image
	// Platforms are those to build for, one after the other; this machine's if it is empty.
	Platforms []v1.Platform
	Target    string // the stage to end with, by name or number; the last if it is empty
	Args      map[string]string
	// Secrets are for RUN --mount=type=secret, each as "id=NAME,src=FILE" or "id=NAME,env=VARIABLE".
	Secrets []string
	// Contexts are further directories and images that --from can name (--build-context), by name.
	Contexts map[string]string
	// Labels and Annotations are "KEY=VALUE".
	Labels, Annotations []string
	Format              Format
	// Zstd compresses the new layers with zstd in place of gzip; not in the format of Docker.
	Zstd bool
	// Created is the time of everything in the image; zero means 1970, so that the same input gives the same image.
	Created time.Time

	// Dir is a private directory for the store of the build and its result. It must be empty; the caller removes it.
	Dir string
	// System says how to talk to registries; Policy is a policy.json in place of the system's.
	System *types.SystemContext
	Policy string
	// Retries is how often a registry that fails is tried again.
	Retries int
	// Log receives the messages of buildah and the output of the commands.
	Log io.Writer
}

// Image is an image that a file names.
type Image struct {
	Name     string
	Platform v1.Platform // that is wanted of it
	Build    v1.Platform // that it is wanted for
}

// Result is what was built: an image for each platform, in the order of the request.
type Result struct {
	// Dirs are directories in the form of the transport "dir:", one for each platform.
	Dirs []string
}

// ExitError is a command of a RUN that failed.
type ExitError struct {
	Status int // that of the command, 1 to 255
	Err    error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// check refuses what cannot be meant, before any work.
func (r Request) check() error {
	var errs []error
	for _, p := range []struct{ what, value string }{{"Containerfile", r.File}, {"context", r.Context}, {"working directory", r.Dir}} {
		if p.value == "" {
			errs = append(errs, fmt.Errorf("a build needs a %s", p.what))
		}
	}
	if r.Format == Docker && r.Zstd {
		errs = append(errs, errors.New("the docker format does not support zstd"))
	}
	return errors.Join(append(errs, CheckSecrets(r.Secrets))...)
}
