package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/docker/docker-credential-helpers/client"
	helpers "github.com/docker/docker-credential-helpers/credentials"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
)

// credentials authenticate a client. The zero value is anonymous.
type credentials struct {
	user, secret  string
	identityToken string // exchanged for tokens (OAuth 2 refresh token)
	registryToken string // sent as the bearer token
	source        string // the file or helper that they come from
}

// credentialStore finds credentials in files and with credential helpers. It is safe for concurrent use.
type credentialStore struct {
	explicit string   // the only file, if set
	files    []string // else these files, in this order
	sys      *types.SystemContext
	warn     func(error)
}

func newCredentialStore(r Config, sys *types.SystemContext, warn func(error)) *credentialStore {
	return &credentialStore{explicit: r.AuthFile, files: r.AuthFiles, sys: sys, warn: warn}
}

// find returns the credentials for a repository: from the explicit file, else from the first of the files that has
// some. In a file the most specific name wins, from HOST/PATH/REPOSITORY down to HOST. If registries.conf lists
// credential helpers, they are asked in that order.
func (s *credentialStore) find(ctx context.Context, named reference.Named) (credentials, error) {
	ways, err := sysregistriesv2.CredentialHelpers(s.sys)
	if err != nil {
		if !Homeless(err) {
			return credentials{}, fmt.Errorf("registries.conf: %w", err)
		}
		ways = []string{sysregistriesv2.AuthenticationFileHelper}
	}
	for _, way := range ways {
		var found credentials
		if way == sysregistriesv2.AuthenticationFileHelper {
			found, err = s.fromFiles(ctx, named)
		} else {
			found, err = fromHelper(ctx, way, "registries.conf", reference.Domain(named))
		}
		if err != nil || found != (credentials{}) {
			return found, err
		}
	}
	return credentials{}, nil
}

func (s *credentialStore) fromFiles(ctx context.Context, named reference.Named) (credentials, error) {
	if s.explicit != "" {
		f, err := readAuthFile(ctx, s.explicit)
		if err != nil {
			return credentials{}, err
		}
		return f.find(ctx, named)
	}
	for _, path := range s.files {
		f, err := readAuthFile(ctx, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, fs.ErrPermission):
			note := ""
			if home := os.Getenv("HOME"); home != "" && strings.HasPrefix(path, home+string(os.PathSeparator)) {
				note = "; the variable HOME names its directory"
			}
			s.warn(fmt.Errorf("credentials: passed over: %w%s", err, note))
			continue
		case err != nil:
			return credentials{}, err
		}
		found, err := f.find(ctx, named)
		if err != nil || found != (credentials{}) {
			return found, err
		}
	}
	return credentials{}, nil
}

// find returns the credentials for a repository in one file.
func (f *authFile) find(ctx context.Context, named reference.Named) (credentials, error) {
	hosts := hostNames(reference.Domain(named))
	for _, host := range hosts {
		if helper, ok := f.credHelpers[host]; ok {
			return fromHelper(ctx, helper, f.path, hosts...)
		}
	}
	for _, key := range f.keys(named) {
		found, err := f.entry(key)
		if err != nil || found != (credentials{}) {
			found.source = f.path
			return found, err
		}
	}
	if f.credsStore != "" {
		return fromHelper(ctx, f.credsStore, f.path, hosts...)
	}
	return credentials{}, nil
}

// keys returns the names of the file's entries for a repository, the most specific first.
func (f *authFile) keys(named reference.Named) (keys []string) {
	name := named.Name()
	if !f.legacy {
		for ; strings.Contains(name, "/"); name = name[:strings.LastIndex(name, "/")] {
			keys = append(keys, name)
		}
	}
	hosts := hostNames(reference.Domain(named))
	keys = append(keys, hosts...)
	// Older programs wrote URLs.
	for _, key := range slices.Sorted(maps.Keys(f.auths)) {
		stripped, isURL := strings.CutPrefix(key, "https://")
		if !isURL {
			stripped, isURL = strings.CutPrefix(key, "http://")
		}
		if isURL || f.legacy {
			if host, _, _ := strings.Cut(stripped, "/"); slices.Contains(hosts, host) {
				keys = append(keys, key)
			}
		}
	}
	return slices.DeleteFunc(keys, func(k string) bool { _, ok := f.auths[k]; return !ok })
}

// hostNames returns the names of a registry in files with credentials.
func hostNames(host string) []string {
	if host != "docker.io" {
		return []string{host}
	}
	return []string{host, "https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io"}
}

// fromHelper runs a credential helper, the program docker-credential-NAME, and returns the credentials for the first
// host that it knows.
func fromHelper(ctx context.Context, name, by string, hosts ...string) (credentials, error) {
	program, err := helperProgram(name, by)
	if err != nil {
		return credentials{}, err
	}
	type answer struct {
		found *helpers.Credentials
		err   error
	}
	source := fmt.Sprintf("the credential helper docker-credential-%s, which %s names", name, by)
	for _, host := range hosts {
		done := make(chan answer, 1)
		go func() {
			found, err := client.Get(program, host)
			done <- answer{found, err}
		}()
		var a answer
		select {
		case a = <-done:
		case <-ctx.Done():
			return credentials{}, context.Cause(ctx)
		}
		switch {
		case a.err != nil && helpers.IsErrCredentialsNotFoundMessage(a.err.Error()):
		case a.err != nil:
			return credentials{}, fmt.Errorf("credential helper docker-credential-%s, named by %s: %w", name, by, a.err)
		case a.found.Username == "<token>":
			return credentials{identityToken: a.found.Secret, source: source}, nil
		case a.found.Username != "" || a.found.Secret != "":
			return credentials{user: a.found.Username, secret: a.found.Secret, source: source}, nil
		}
	}
	return credentials{}, nil
}

// helperProgram returns the program docker-credential-NAME, which by names.
func helperProgram(name, by string) (client.ProgramFunc, error) {
	if name == "" || strings.ContainsAny(name, `/\`) || !printable.NoControl(name) {
		return nil, fmt.Errorf("%w: %s: invalid name %.80q of a credential helper", fault.ErrInvalid, by, name)
	}
	return client.NewShellProgramFunc("docker-credential-" + name), nil
}

// Homeless tells whether an error is only that the user has no home directory, as users in clusters often have no entry
// in /etc/passwd. Then there is no configuration of the user either.
func Homeless(err error) bool {
	_, isSet := os.LookupEnv("XDG_CONFIG_HOME")
	var path *fs.PathError
	return err != nil && os.Getenv("HOME") == "" && !isSet && !errors.As(err, &path)
}
