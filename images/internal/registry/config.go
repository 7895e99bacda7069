package registry

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/userns"
)

// Config is the configuration for registries: registries.Config. The zero value has the defaults of the containers
// library, without credentials. Most programs call [Config.Env].
type Config struct {
	// AuthFile is the only file with credentials, as REGISTRY_AUTH_FILE names it.
	AuthFile string
	// AuthFiles are searched in their order if AuthFile is empty; files that do not exist are skipped.
	AuthFiles []string
	// SkipTLSVerify accepts any certificate; nil leaves it to registries.conf.
	SkipTLSVerify *bool
	// PlainHTTP accepts registries that do not speak TLS. The certificates of those that do are verified all the same,
	// unless SkipTLSVerify says otherwise.
	PlainHTTP bool
	// CertDir holds *.crt (authorities), *.cert and *.key (the client's certificate) files.
	CertDir string
	// CertDirs hold directories named HOST[:PORT] like CertDir; they are searched before those of the system.
	CertDirs []string
	// CAFile is one more file of certificate authorities.
	CAFile string
	// RegistriesConf replaces the system's registries.conf.
	RegistriesConf string
	// RegistriesDir replaces the directories of registries.d, which say where signatures are.
	RegistriesDir string
	// UserAgent is sent with every request.
	UserAgent string
	// End names what the configuration is for where a program has one for each end of a copy, such as "source". [EndOf]
	// returns it for the errors of requests.
	End string
}

// Env fills what is not set from the environment, as podman and docker do:
//
//   - AuthFile from REGISTRY_AUTH_FILE;
//   - AuthFiles with $DOCKER_CONFIG/config.json, $XDG_RUNTIME_DIR/containers/auth.json (on Linux
//     /run/containers/UID/auth.json without that variable), $XDG_CONFIG_HOME/containers/auth.json or
//     $HOME/.config/containers/auth.json, without DOCKER_CONFIG $HOME/.docker/config.json, and $HOME/.dockercfg;
//   - CertDirs with $XDG_CONFIG_HOME/containers/certs.d or $HOME/.config/containers/certs.d;
//   - RegistriesConf from CONTAINERS_REGISTRIES_CONF.
//
// Places that need a variable which is not set are left out.
func (r Config) Env(getenv func(string) string) Config {
	if r.AuthFile == "" {
		r.AuthFile = getenv("REGISTRY_AUTH_FILE")
	}
	if r.RegistriesConf == "" {
		r.RegistriesConf = getenv("CONTAINERS_REGISTRIES_CONF")
	}
	home, config, dockerConfig, run := getenv("HOME"), getenv("XDG_CONFIG_HOME"), getenv("DOCKER_CONFIG"),
		getenv("XDG_RUNTIME_DIR")
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	var dotDocker string
	if dockerConfig == "" && home != "" {
		dotDocker = filepath.Join(home, ".docker")
	}
	if run != "" {
		run = filepath.Join(run, "containers")
	} else if runtime.GOOS == "linux" {
		run = fmt.Sprintf("/run/containers/%d", userns.UID())
	}
	if r.AuthFiles == nil {
		for _, place := range [][2]string{{dockerConfig, "config.json"}, {run, "auth.json"},
			{config, "containers/auth.json"}, {dotDocker, "config.json"}, {home, ".dockercfg"}} {
			if place[0] != "" {
				r.AuthFiles = append(r.AuthFiles, filepath.Join(place[0], filepath.FromSlash(place[1])))
			}
		}
	}
	if r.CertDirs == nil && config != "" {
		r.CertDirs = []string{filepath.Join(config, "containers", "certs.d")}
	}
	return r
}

// System returns the configuration in the form of the containers library. Files that it needs are written to scratch, a
// private directory that must exist as long as the result is used.
//
// Where a file is no regular file, the library gets a copy: it may read it several times.
func (r Config) System(ctx context.Context, scratch string) (*types.SystemContext, error) {
	for what, path := range map[string]string{"authfile": r.AuthFile, "registries.conf": r.RegistriesConf,
		"CA file": r.CAFile, "certificate directory": r.CertDir, "registries.d": r.RegistriesDir} {
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	old, err := r.oldConf(ctx)
	if err != nil {
		return nil, err
	}
	sys := &types.SystemContext{
		// By default the library makes directories in HOME, for a cache that works only with cgo.
		BlobInfoCacheDir:     filepath.Join(scratch, "blob-info"),
		BigFilesTemporaryDir: scratch,
	}
	if old != nil {
		sys.SystemRegistriesConfPath = filepath.Join(scratch, "registries.conf")
		if err := os.WriteFile(sys.SystemRegistriesConfPath, old.text, 0o600); err != nil {
			return nil, err
		}
	} else if sys.SystemRegistriesConfPath, err = copied(ctx, r.RegistriesConf, scratch, "registries.conf"); err != nil {
		return nil, fmt.Errorf("registries.conf: %w", err)
	}
	if sys.AuthFilePath, err = copied(ctx, r.AuthFile, scratch, authCopy); err != nil {
		return nil, fmt.Errorf("authfile: %w", err)
	}
	_, err = r.authorities(ctx)
	return sys, err
}

// copied returns the path of a file for the library, which reads it several times: that of a copy in scratch, unless it
// is a regular file.
func copied(ctx context.Context, path, scratch, name string) (string, error) {
	if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
		return path, nil // an empty path is none
	}
	content, err := regularfile.ReadNamed(ctx, path, maxConf)
	if err != nil {
		return "", err
	}
	if name == authCopy && regularfile.IsNull(path) {
		content = []byte("{}") // the library takes no empty file
	}
	path = filepath.Join(scratch, name)
	return path, os.WriteFile(path, content, 0o600)
}

// authCopy is the name of a copy of AuthFile.
const authCopy = "auth.json"

// authorities returns the content of CAFile; nil without one.
func (r Config) authorities(ctx context.Context) ([]byte, error) {
	if r.CAFile == "" {
		return nil, nil
	}
	content, err := regularfile.ReadMounted(ctx, r.CAFile)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(content) {
		err = fmt.Errorf("%w: no certificate in %s", fault.ErrInvalid, r.CAFile)
	}
	if err != nil {
		return nil, fmt.Errorf("CA file: %w", err)
	}
	return content, nil
}
