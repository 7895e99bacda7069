// Package trust declares how the signature policy is asked about images, for those who ask it and those who evaluate
// it: the containers library does, which needs build tags, so that who asks does not import it.
package trust

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage/pkg/configfile"

	"github.com/operator-bindery/bindery/images/internal/registry"
	"github.com/operator-bindery/bindery/images/transport"
)

// Policy is a signature policy. It is safe for concurrent use.
type Policy interface {
	// Rule returns what the policy has for the images of a name.
	Rule(n transport.Source) (Rule, error)
	// Judge asks the policy about a manifest under the name of its image. refused is its answer; err is a failure to ask,
	// such as of a registry that does not answer.
	Judge(ctx context.Context, n transport.Source, e *Evidence) (refused, err error)
}

// Reader reads a policy.json (containers-policy.json(5)). Errors are a [*PolicyFileError].
type Reader func(ctx context.Context, file string) (Policy, error)

// Rule is what a policy has for the images of a name.
type Rule struct {
	// File is the policy.json, and Scope what of it is for the images: "default", or a transport and a scope in it.
	File, Scope string
	// Accepts tells that all of them are accepted, and Rejects that none is. Verifies tells that signatures are
	// verified, and Attached that they may be those that are attached to an image.
	Accepts, Rejects, Verifies, Attached bool
}

// Evidence is what the policy is asked about: a manifest or index, and the signatures that its place has for it.
type Evidence struct {
	Text   []byte
	Digest digest.Digest
	// Signatures returns the signatures of it, in the form of the containers library; nil for a place that has none.
	Signatures func(ctx context.Context, of digest.Digest) ([][]byte, error)
	// Original, unless nil, has the manifest that was signed, and its signatures.
	Original types.ImageSource
	// Signed refuses what the policy accepts without verifying a signature.
	Signed bool
	// Dir is a directory for private files.
	Dir string
	// Read tells whether the policy wanted signatures, so that they have been read, and Found how many there were;
	// negative if that is not known.
	Read  bool
	Found int
}

// Default returns the path of the policy.json that the containers tools enforce; empty if there is none.
func Default() (string, error) {
	const variable = "CONTAINERS_POLICY_JSON"
	if path := os.Getenv(variable); path != "" {
		return path, nil // the library would open it, and a pipe can be opened once
	}
	for item, err := range configfile.Read(&configfile.File{
		Name: "policy", Extension: "json", DoNotLoadDropInFiles: true, EnvironmentName: variable,
		ErrorIfNotFound: true,
	}) {
		var path *fs.PathError
		switch {
		case err == nil:
			return item.Name, nil
		case errors.Is(err, configfile.ErrConfigFileNotFound), registry.Homeless(err):
			return "", nil
		case errors.As(err, &path):
			return "", &PolicyFileError{path.Path, err}
		default:
			return "", &PolicyFileError{"policy.json", err}
		}
	}
	return "", nil
}
