package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// file is a policy.json. It is not changed after it has been read.
type file struct {
	path   string
	policy *signature.Policy
}

// Read reads a policy.json. Errors are a [*trust.PolicyFileError].
func Read(ctx context.Context, path string) (trust.Policy, error) {
	content, err := regularfile.ReadMounted(ctx, path)
	if err != nil {
		return nil, &trust.PolicyFileError{File: path, Err: err}
	}
	policy, err := signature.NewPolicyFromBytes(content)
	if err != nil {
		var syntax *json.SyntaxError
		if len(content) == 0 {
			return nil, &trust.PolicyFileError{File: path, Err: fmt.Errorf("%w: it is empty, which is no policy: "+
				`{"default":[{"type":"insecureAcceptAnything"}]} accepts every image`, fault.ErrInvalid)}
		}
		if !json.Valid(content) {
			err = json.Unmarshal(content, new(any)) // this error has the position
		}
		if errors.As(err, &syntax) {
			err = fmt.Errorf("not JSON: %w, after %d bytes", err, syntax.Offset)
		}
		return nil, &trust.PolicyFileError{File: path, Err: err}
	}
	return &file{path, policy}, nil
}

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

// Rule returns what the policy has for the images of a name.
func (p *file) Rule(n transport.Source) (trust.Rule, error) {
	rule, _, _, err := p.rule(n)
	return rule, err
}

func (p *file) rule(n transport.Source) (rule trust.Rule, ref types.ImageReference, rs []requirement, err error) {
	if ref, err = named(n); err != nil {
		return rule, nil, nil, err
	}
	scope, found := p.scope(ref)
	rule = trust.Rule{File: p.path, Scope: scope}
	text, err := json.Marshal(found)
	if err == nil {
		err = json.Unmarshal(text, &rs)
	}
	if err != nil {
		return rule, ref, nil, &trust.PolicyFileError{File: p.path, Err: err}
	}
	has := func(kinds ...string) bool {
		return slices.ContainsFunc(rs, func(r requirement) bool { return slices.Contains(kinds, r.Type) })
	}
	rule.Accepts = !slices.ContainsFunc(rs, func(r requirement) bool { return r.Type != "insecureAcceptAnything" })
	rule.Rejects, rule.Verifies, rule.Attached = has("reject"), has("sigstoreSigned", "signedBy"), has("sigstoreSigned")
	return rule, ref, rs, nil
}

// scope selects the requirements for an image as the library does: those of the most specific scope of its transport,
// else those of the transport, else the default.
func (p *file) scope(ref types.ImageReference) (string, signature.PolicyRequirements) {
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
func (p *file) checkKeys(scope string, rs []requirement) error {
	for _, r := range rs {
		for _, f := range r.keyFiles() {
			// The library reads it for each image.
			file, err := regularfile.OpenSeekable(f[1])
			if err == nil {
				err = file.Close()
			}
			if err != nil {
				return &trust.PolicyFileError{File: p.path, Err: fmt.Errorf("%s: %s %s: %w", scope, f[0], fault.Quote(f[1]), err)}
			}
		}
	}
	return nil
}
