package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// authFile is a file with credentials: auth.json of podman, config.json of docker, or its predecessor .dockercfg
// (containers-auth.json(5)).
type authFile struct {
	path        string
	legacy      bool // the old form, which has only hosts
	auths       map[string]json.RawMessage
	credHelpers map[string]string
	credsStore  string
}

// readAuthFile reads a file with credentials. Its errors name the file and the fault, and quote nothing of the content.
//
// /dev/null has no credentials. Any other file that is empty is an error: it was cut short.
func readAuthFile(ctx context.Context, path string) (*authFile, error) {
	content, err := regularfile.ReadMounted(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("authfile: %w", err)
	}
	f := &authFile{path: path, legacy: filepath.Base(path) == ".dockercfg"}
	if regularfile.IsNull(path) {
		return f, nil
	}
	fields := map[string]any{"auths": &f.auths, "credHelpers": &f.credHelpers, "credsStore": &f.credsStore}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(content, &raw); err != nil {
		return nil, f.invalid("", err)
	}
	if f.legacy {
		f.auths = raw
		return f, nil
	}
	for name, into := range fields {
		if text, ok := raw[name]; ok {
			if err := json.Unmarshal(text, into); err != nil {
				return nil, f.invalid(name, err)
			}
		}
	}
	return f, nil
}

// invalid returns an error about a field of the file. It does not quote the content.
func (f *authFile) invalid(field string, err error) error {
	what := "not as it should be"
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		what = fmt.Sprintf("not JSON from byte %d on", syntax.Offset)
	case errors.As(err, &kind):
		what = fmt.Sprintf("a %s where something else belongs", strings.Fields(kind.Value)[0])
	case err != nil && err.Error() != "":
		what = err.Error()
	}
	if field != "" {
		field = ": " + field
	}
	return fmt.Errorf("%w: authfile %s%s: %s", fault.ErrInvalid, f.path, field, what)
}

// entry reads one entry of auths. An entry without credentials is empty: a credential helper has them.
func (f *authFile) entry(key string) (credentials, error) {
	field := fmt.Sprintf("auths.%.200q", key)
	var e struct {
		Auth          string `json:"auth"`
		Username      string `json:"username"`
		Password      string `json:"password"`
		IdentityToken string `json:"identitytoken"`
		RegistryToken string `json:"registrytoken"`
	}
	if err := json.Unmarshal(f.auths[key], &e); err != nil {
		return credentials{}, f.invalid(field, err)
	}
	c := credentials{user: e.Username, secret: e.Password, identityToken: e.IdentityToken,
		registryToken: e.RegistryToken}
	if e.Auth == "" {
		return c, nil
	}
	text, err := base64.StdEncoding.DecodeString(e.Auth)
	if err != nil {
		return credentials{}, f.invalid(field+".auth", errors.New("not base64"))
	}
	user, secret, ok := strings.Cut(string(text), ":")
	if !ok {
		return credentials{}, f.invalid(field+".auth", errors.New("not USER:PASSWORD in base64"))
	}
	c.user, c.secret = user, strings.Trim(secret, "\x00")
	return c, nil
}
