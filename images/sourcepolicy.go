package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"
	"go.podman.io/storage/pkg/configfile"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// policyFile is the policy.json in use. It is not changed after it has been read, and safe for concurrent use.
type policyFile struct {
	path   string
	policy *signature.Policy
}

// readPolicy reads a policy.json (containers-policy.json(5)), by default that of the containers tools. It returns nil,
// which accepts every image, if there is none. Errors are a [*PolicyFileError].
func readPolicy(ctx context.Context, path string) (*policyFile, error) {
	if path == "" {
		var err error
		if path, err = defaultPolicy(); path == "" || err != nil {
			return nil, err
		}
	}
	content, err := regularfile.ReadMounted(ctx, path)
	if err != nil {
		return nil, &PolicyFileError{path, err}
	}
	policy, err := signature.NewPolicyFromBytes(content)
	if err != nil {
		var syntax *json.SyntaxError
		if len(content) == 0 {
			return nil, &PolicyFileError{path, fmt.Errorf("%w: it is empty, which is no policy: "+
				`{"default":[{"type":"insecureAcceptAnything"}]} accepts every image`, fault.ErrInvalid)}
		}
		if !json.Valid(content) {
			err = json.Unmarshal(content, new(any)) // it has the position
		}
		if errors.As(err, &syntax) {
			err = fmt.Errorf("not JSON: %w, after %d bytes", err, syntax.Offset)
		}
		return nil, &PolicyFileError{path, err}
	}
	return &policyFile{path, policy}, nil
}

// defaultPolicy returns the path of the policy.json that the containers tools enforce; empty if there is none.
func defaultPolicy() (string, error) {
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

// PolicyFileError is the error of a signature policy that cannot be read or understood. It is of the class [ErrPolicy].
type PolicyFileError struct {
	File string
	Err  error
}

func (e *PolicyFileError) Error() string {
	var path *fs.PathError
	if errors.As(e.Err, &path) && path.Path == e.File {
		return fmt.Sprintf("%v: %v", ErrPolicy, e.Err)
	}
	return fmt.Sprintf("%v: %s: %v", ErrPolicy, e.File, e.Err)
}

func (e *PolicyFileError) Unwrap() []error { return []error{ErrPolicy, e.Err} }

// requirement is what this package needs to know of a requirement of a policy.
type requirement struct {
	Type                string
	KeyPath             string
	KeyPaths            []string
	RekorPublicKeyPath  string
	RekorPublicKeyPaths []string
	Fulcio              struct{ CAPath string }
	PKI                 struct{ CARootsPath, CAIntermediatesPath string }
}

// verifies tells whether the requirement wants a signature of the image.
func (r requirement) verifies() bool { return r.Type == "sigstoreSigned" || r.Type == "signedBy" }

// keyFiles returns the files of keys and certificates, each after the name of its field.
func (r requirement) keyFiles() [][2]string {
	named := [][2]string{{"keyPath", r.KeyPath}, {"rekorPublicKeyPath", r.RekorPublicKeyPath},
		{"caPath", r.Fulcio.CAPath}, {"caRootsPath", r.PKI.CARootsPath},
		{"caIntermediatesPath", r.PKI.CAIntermediatesPath}}
	for _, path := range r.KeyPaths {
		named = append(named, [2]string{"keyPaths", path})
	}
	for _, path := range r.RekorPublicKeyPaths {
		named = append(named, [2]string{"rekorPublicKeyPaths", path})
	}
	var files [][2]string
	for _, f := range named {
		if f[1] != "" {
			files = append(files, f)
		}
	}
	return files
}

// requirements returns the requirements for an image, and the scope in the policy that has them.
func (p *policyFile) requirements(ref types.ImageReference) (scope string, _ []requirement, err error) {
	scope, found := p.scope(ref)
	text, err := json.Marshal(found)
	if err != nil {
		return scope, nil, &PolicyFileError{p.path, err}
	}
	var rs []requirement
	if err := json.Unmarshal(text, &rs); err != nil {
		return scope, nil, &PolicyFileError{p.path, err}
	}
	return scope, rs, nil
}

// scope selects the requirements for an image as the library does: those of the most specific scope of its transport,
// else those of the transport, else the default.
func (p *policyFile) scope(ref types.ImageReference) (string, signature.PolicyRequirements) {
	transport := ref.Transport().Name()
	if scopes, ok := p.policy.Transports[transport]; ok {
		names := append([]string{ref.PolicyConfigurationIdentity()}, ref.PolicyConfigurationNamespaces()...)
		for _, name := range append(names, "") {
			if found, ok := scopes[name]; ok {
				if name == "" {
					return "transport " + transport, found
				}
				return fmt.Sprintf("transport %s, scope %q", transport, name), found
			}
		}
	}
	return "default", p.policy.Default
}

// checkKeys returns an error that names the policy and the key if a file of a key cannot be read. The library's error
// names neither, and without a signature it does not look for the key.
func (p *policyFile) checkKeys(scope string, rs []requirement) error {
	for _, r := range rs {
		for _, f := range r.keyFiles() {
			// The library reads it for each image.
			file, err := regularfile.OpenSeekable(f[1])
			if err == nil {
				err = file.Close()
			}
			if err != nil {
				return &PolicyFileError{p.path, fmt.Errorf("%s: %s %s: %w", scope, f[0], fault.Quote(f[1]), err)}
			}
		}
	}
	return nil
}
