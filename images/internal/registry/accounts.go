package registry

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/docker-credential-helpers/client"
	helpers "github.com/docker/docker-credential-helpers/credentials"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/filelock"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// ErrNotLoggedIn is the error of [Accounts.Forget] for a registry without credentials.
var ErrNotLoggedIn = errors.New("not logged in")

// Accounts is the file in which credentials are kept (containers-auth.json(5)), with the credential helpers that it or
// registries.conf names. Each change is made under a lock beside the file, so that processes of this program
// lose nothing of each other, and replaces the file as a whole: what is in it beside the changed entry stays. Methods are
// safe for concurrent use, also by several processes.
type Accounts struct {
	// File is the path of the file. It is made if it does not exist; a link is followed.
	File string
	// Docker says that the file is docker's configuration: it has no entries for paths, and its own name for docker.io.
	Docker bool

	sys *types.SystemContext
}

// Accounts returns the file in which credentials are kept: AuthFile, else the first of AuthFiles, which is where reading
// looks first.
func (r Config) Accounts() (*Accounts, error) {
	file := r.AuthFile
	if file == "" && len(r.AuthFiles) > 0 {
		file = r.AuthFiles[0]
	}
	if file == "" {
		return nil, errors.New("there is no place for credentials: name a file, or set HOME")
	}
	return &Accounts{File: file, Docker: filepath.Base(file) == "config.json",
		sys: &types.SystemContext{SystemRegistriesConfPath: r.RegistriesConf}}, nil
}

// Check returns the error with which the file cannot be read, if any, before anyone is asked for a password.
func (a *Accounts) Check(ctx context.Context) error {
	_, err := readAccounts(ctx, a.File)
	return err
}

// Keep keeps the credentials for HOST[:PORT][/PATH], and returns where: a file, or a credential helper.
func (a *Accounts) Keep(ctx context.Context, registry, user, password string) (where string, err error) {
	key, err := a.key(registry)
	if err != nil {
		return "", err
	}
	ways, err := a.ways()
	if err != nil {
		return "", err
	}
	var failed []error
	for _, way := range ways {
		if way != sysregistriesv2.AuthenticationFileHelper {
			err = keepInHelper(way, key, user, password)
			where = "the credential helper docker-credential-" + way
		} else {
			where, err = a.keepInFile(ctx, key, user, password)
		}
		if err == nil {
			return where, nil
		}
		failed = append(failed, err)
	}
	return "", errors.Join(failed...)
}

func (a *Accounts) keepInFile(ctx context.Context, key, user, password string) (where string, err error) {
	where = a.File
	err = a.edit(ctx, true, func(f *accountsFile) error {
		if helper, ok := f.helpers[key]; ok {
			where, f.unchanged = "the credential helper docker-credential-"+helper, true
			return keepInHelper(helper, key, user, password)
		}
		entry, err := json.Marshal(map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + password))})
		f.auths[key] = entry
		return err
	})
	return where, err
}

// Forget removes the credentials for HOST[:PORT][/PATH] from the file and from the helpers. It fails with
// [ErrNotLoggedIn] if neither has some.
func (a *Accounts) Forget(ctx context.Context, registry string) error {
	key, err := a.key(registry)
	if err != nil {
		return err
	}
	ways, err := a.ways()
	if err != nil {
		return err
	}
	found := false
	erase := func(helper string) error {
		had, err := eraseFrom(helper, key)
		found = found || had
		return err
	}
	for _, way := range ways {
		if way != sysregistriesv2.AuthenticationFileHelper {
			err = errors.Join(err, erase(way))
			continue
		}
		err = errors.Join(err, a.edit(ctx, false, func(f *accountsFile) error {
			_, had := f.auths[key]
			delete(f.auths, key)
			found, f.unchanged = found || had, !had
			if helper, ok := f.helpers[key]; ok {
				return erase(helper)
			}
			return nil
		}))
	}
	if err == nil && !found {
		err = ErrNotLoggedIn
	}
	return err
}

// ForgetAll removes all credentials from the file, and those of the registries for which it names a helper.
func (a *Accounts) ForgetAll(ctx context.Context) error {
	return a.edit(ctx, false, func(f *accountsFile) error {
		var failed error
		for key, helper := range f.helpers {
			_, err := eraseFrom(helper, key)
			failed = errors.Join(failed, err)
		}
		clear(f.auths)
		clear(f.helpers)
		return failed
	})
}

// Elsewhere returns where the configuration still finds credentials for a registry; empty if nowhere.
func (r Config) Elsewhere(ctx context.Context, registry string) (string, error) {
	named, err := reference.ParseNormalizedNamed(registry + "/x")
	if err != nil {
		return "", err
	}
	found, err := newCredentialStore(r, &types.SystemContext{SystemRegistriesConfPath: r.RegistriesConf},
		func(error) {}).find(ctx, named)
	return found.source, err
}

// key returns the name of the entry for a registry.
func (a *Accounts) key(registry string) (string, error) {
	switch {
	case !a.Docker:
		return registry, nil
	case strings.Contains(registry, "/"):
		return "", fmt.Errorf("%s: docker's configuration has no entries for paths: log in to the host, or name another file", a.File)
	case registry == "docker.io":
		return "https://index.docker.io/v1/", nil
	}
	return registry, nil
}

// ways returns where credentials are kept, in the order of registries.conf.
func (a *Accounts) ways() ([]string, error) {
	if a.Docker {
		return []string{sysregistriesv2.AuthenticationFileHelper}, nil // docker reads no registries.conf
	}
	ways, err := sysregistriesv2.CredentialHelpers(a.sys)
	if Homeless(err) {
		return []string{sysregistriesv2.AuthenticationFileHelper}, nil
	}
	return ways, err
}

// keepInHelper hands credentials to the program docker-credential-NAME.
func keepInHelper(name, key, user, password string) error {
	if strings.Contains(key, "/") && !strings.Contains(key, "://") {
		return fmt.Errorf("credential helper docker-credential-%s: it keeps nothing for paths, such as %s", name, key)
	}
	program, err := helperProgram(name, "the configuration")
	if err == nil {
		err = client.Store(program, &helpers.Credentials{ServerURL: key, Username: user, Secret: password})
	}
	if err != nil {
		return fmt.Errorf("credential helper docker-credential-%s: %w", name, err)
	}
	return nil
}

// eraseFrom removes credentials from the program docker-credential-NAME, and tells whether it had some.
func eraseFrom(name, key string) (had bool, err error) {
	if strings.Contains(key, "/") && !strings.Contains(key, "://") {
		return false, nil
	}
	program, err := helperProgram(name, "the configuration")
	if err == nil {
		err = client.Erase(program, key)
	}
	switch {
	case err == nil:
		return true, nil
	case helpers.IsErrCredentialsNotFoundMessage(err.Error()):
		return false, nil
	}
	return false, fmt.Errorf("credential helper docker-credential-%s: %w", name, err)
}

// accountsFile is the content of the file while it is changed.
type accountsFile struct {
	all       map[string]json.RawMessage
	auths     map[string]json.RawMessage
	helpers   map[string]string
	unchanged bool
}

// edit changes the file under a lock beside it. With create the directory of the file is made if it does not exist.
func (a *Accounts) edit(ctx context.Context, create bool, change func(*accountsFile) error) error {
	path := a.File
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // the file that a link names is replaced, not the link
	}
	dir := filepath.Dir(path)
	if create {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	} else if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := atomicfs.CheckFile(path); err != nil { // also removes what killed processes have left
		return err
	}
	lock, err := filelock.LockFile(ctx, filepath.Join(dir, "."+filepath.Base(path)+".lock"))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	f, err := readAccounts(ctx, path)
	if err != nil {
		return err
	}
	if err := change(f); err != nil || f.unchanged {
		return err
	}
	text, err := f.text()
	if err != nil {
		return err
	}
	return atomicfs.WriteFile(path, text, 0o600)
}

// readAccounts reads the file to change. What is not a regular file is refused at once.
func readAccounts(ctx context.Context, path string) (*accountsFile, error) {
	f := &accountsFile{all: map[string]json.RawMessage{}, auths: map[string]json.RawMessage{}, helpers: map[string]string{}}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &regularfile.KindError{Path: path, Mode: info.Mode()}
	case filepath.Base(path) == ".dockercfg":
		return nil, fmt.Errorf("%s has docker's old form, which is not written", path)
	}
	text, err := regularfile.ReadMounted(ctx, path)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return f, nil // mktemp made it
	}
	of := &authFile{path: path}
	if err := json.Unmarshal(text, &f.all); err != nil {
		return nil, of.invalid("", err)
	}
	for name, into := range map[string]any{"auths": &f.auths, "credHelpers": &f.helpers} {
		if raw, ok := f.all[name]; ok {
			if err := json.Unmarshal(raw, into); err != nil {
				return nil, of.invalid(name, err)
			}
		}
	}
	if f.all == nil || f.auths == nil { // "null"
		return nil, of.invalid("", errors.New("null where an object belongs"))
	}
	return f, nil
}

// text returns the changed file: members that are not about credentials stay as they are.
func (f *accountsFile) text() ([]byte, error) {
	auths, err := json.Marshal(f.auths)
	if err != nil {
		return nil, err
	}
	f.all["auths"] = auths
	if _, had := f.all["credHelpers"]; had {
		if f.all["credHelpers"], err = json.Marshal(f.helpers); err != nil {
			return nil, err
		}
	}
	text, err := json.MarshalIndent(f.all, "", "\t")
	return append(text, '\n'), err
}
