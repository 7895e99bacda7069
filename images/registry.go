package images

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.podman.io/image/v5/types"
)

// Registry says how to talk to registries. The zero value is the library's defaults.
type Registry struct {
	// AuthFile is a file with credentials, as REGISTRY_AUTH_FILE names it.
	AuthFile string
	// SkipTLSVerify accepts any certificate; nil leaves it to registries.conf.
	SkipTLSVerify *bool
	// PlainHTTP accepts, with SkipTLSVerify, registries that do not speak TLS.
	PlainHTTP bool
	// CertDir holds *.crt (authorities), *.cert and *.key (the client's certificate) files.
	CertDir string
	// CAFile is one more file of certificate authorities.
	CAFile string
	// RegistriesConf replaces the system's registries.conf.
	RegistriesConf string
	// UserAgent is sent with every request.
	UserAgent string
}

// Env fills what is not set from the environment variables that the containers tools know: REGISTRY_AUTH_FILE and
// CONTAINERS_REGISTRIES_CONF.
func (r Registry) Env(getenv func(string) string) Registry {
	if r.AuthFile == "" {
		r.AuthFile = getenv("REGISTRY_AUTH_FILE")
	}
	if r.RegistriesConf == "" {
		r.RegistriesConf = getenv("CONTAINERS_REGISTRIES_CONF")
	}
	return r
}

// System is the library's form of the options. What must be on the disk for it is made in scratch, a private directory
// that must exist as long as the result is used.
func (r Registry) System(scratch string) (*types.SystemContext, error) {
	for what, path := range map[string]string{"authfile": r.AuthFile, "registries.conf": r.RegistriesConf, "CA file": r.CAFile, "certificate directory": r.CertDir} {
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	sys := &types.SystemContext{
		AuthFilePath:             r.AuthFile,
		SystemRegistriesConfPath: r.RegistriesConf,
		DockerCertPath:           r.CertDir,
		DockerRegistryUserAgent:  r.UserAgent,
		// The library would otherwise make directories in HOME for a cache that works with cgo only.
		BlobInfoCacheDir:     filepath.Join(scratch, "blob-info"),
		BigFilesTemporaryDir: scratch,
	}
	if r.SkipTLSVerify != nil {
		sys.DockerInsecureSkipTLSVerify = types.NewOptionalBool(*r.SkipTLSVerify)
	}
	if r.CAFile != "" {
		dir, err := r.certificates(scratch)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		sys.DockerCertPath = dir
	}
	return sys, nil
}

// certificates is a directory of the form that the library wants, with CAFile and the files of CertDir.
func (r Registry) certificates(scratch string) (string, error) {
	dir, err := os.MkdirTemp(scratch, "certs-")
	if err != nil {
		return "", err
	}
	add := func(from, name string) error {
		content, err := readRegular(from, maxManifest)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), content, 0o600)
	}
	resolved, err := filepath.EvalSymlinks(r.CAFile) // mounted secrets are links
	if err != nil {
		return "", err
	}
	if err := add(resolved, "bindery-ca-file.crt"); err != nil {
		return "", err
	}
	if r.CertDir == "" {
		return dir, nil
	}
	names, err := os.ReadDir(r.CertDir)
	if err != nil {
		return "", err
	}
	for _, n := range names {
		switch ext := filepath.Ext(n.Name()); strings.ToLower(ext) {
		case ".crt", ".cert", ".key":
			from, err := filepath.EvalSymlinks(filepath.Join(r.CertDir, n.Name()))
			if err != nil {
				return "", err
			}
			if err := add(from, n.Name()); err != nil {
				return "", err
			}
		}
	}
	return dir, nil
}
