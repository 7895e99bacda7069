package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage/pkg/configfile"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// ErrPolicy is the class of errors about images that the signature policy refuses, and about invalid policies.
var ErrPolicy = errors.New("signature policy")

// sourcePolicy reads a policy.json (containers-policy.json(5)), by default that of the containers tools. It returns
// nil, which accepts every image, if there is none.
func sourcePolicy(file string) (*signature.PolicyContext, error) {
	var policy *signature.Policy
	var err error
	if file == "" {
		policy, err = signature.DefaultPolicy(nil)
	} else {
		var content []byte
		if content, err = regularfile.ReadMounted(file); err == nil {
			policy, err = signature.NewPolicyFromBytes(content)
		}
	}
	var syntax *json.SyntaxError
	switch {
	case file == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, configfile.ErrConfigFileNotFound) ||
		registry.Homeless(err)):
		return nil, nil
	case err != nil && file == "":
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("%w: %s: not JSON: %w", ErrPolicy, file, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrPolicy, file, err)
	}
	return newPolicyContext(policy)
}

// allowed checks an image against the policy. Most policies decide by the name alone. A policy that needs signatures is
// given the library's source, which can read them, and which must have the same image.
func (c *Client) allowed(ctx context.Context, n sourceName, top digest.Digest) error {
	if c.policy == nil {
		return nil
	}
	ref, err := n.reference()
	if err != nil {
		return err
	}
	// A policy context is not safe for concurrent use.
	c.policyLock.Lock()
	defer c.policyLock.Unlock()
	probe := &nameOnly{ref: ref}
	ok, err := c.policy.IsRunningImageAllowed(ctx, image.UnparsedInstance(probe, nil))
	if !probe.asked {
		return policyAnswer(ok, err)
	}
	if err := registry.Config(c.o.Registry).RequireTLS(ctx, ref); err != nil {
		return registry.Wrap(err)
	}
	creds, err := c.libraryCredentials(ctx, n)
	if err != nil {
		return err
	}
	src, err := ref.NewImageSource(ctx, creds)
	if err != nil {
		return registry.Wrap(fmt.Errorf("reading signatures: %w", err))
	}
	defer src.Close()
	unparsed := image.UnparsedInstance(src, nil)
	text, _, err := unparsed.Manifest(ctx)
	if err != nil {
		return registry.Wrap(fmt.Errorf("reading signatures: %w", err))
	}
	if got := digest.FromBytes(text); got != top && n.transport != DockerArchive {
		return fmt.Errorf("%w: the tag names %s now and named %s before", fault.ErrIntegrity, got, top)
	}
	return policyAnswer(c.policy.IsRunningImageAllowed(ctx, unparsed))
}

// libraryCredentials returns the library's configuration with the credentials for one repository.
func (c *Client) libraryCredentials(ctx context.Context, n sourceName) (*types.SystemContext, error) {
	if n.transport != Docker {
		return c.sys, nil
	}
	return c.remote.System(ctx, n.repository)
}

func policyAnswer(ok bool, err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	if !ok {
		return fmt.Errorf("%w: the image is not allowed", ErrPolicy)
	}
	return nil
}

// nameOnly is a source with a name and no content. It records whether the content was requested.
type nameOnly struct {
	ref   types.ImageReference
	asked bool
}

var errNameOnly = errors.New("only the name is known")

func (n *nameOnly) Reference() types.ImageReference { return n.ref }
func (n *nameOnly) Close() error                    { return nil }
func (n *nameOnly) HasThreadSafeGetBlob() bool      { return false }

func (n *nameOnly) GetManifest(context.Context, *digest.Digest) ([]byte, string, error) {
	n.asked = true
	return nil, "", errNameOnly
}

func (n *nameOnly) GetBlob(context.Context, types.BlobInfo, types.BlobInfoCache) (io.ReadCloser, int64, error) {
	n.asked = true
	return nil, 0, errNameOnly
}

func (n *nameOnly) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) {
	n.asked = true
	return nil, errNameOnly
}

func (n *nameOnly) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}
