package images

import (
	"context"

	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/registry"
)

// Registry is the configuration for registries. The zero value has the defaults of the containers library, without
// credentials. Most programs call [Registry.Env].
type Registry struct {
	// AuthFile is the only file with credentials, as REGISTRY_AUTH_FILE names it.
	AuthFile string
	// AuthFiles are searched in their order if AuthFile is empty. Files that do not exist are skipped.
	AuthFiles []string
	// SkipTLSVerify accepts any certificate; nil leaves it to registries.conf.
	SkipTLSVerify *bool
	// PlainHTTP accepts registries that do not speak TLS. The certificates of those that do are verified all the same,
	// unless SkipTLSVerify says otherwise.
	PlainHTTP bool
	// CertDir holds *.crt (authorities), *.cert and *.key (the client's certificate) files.
	CertDir string
	// CertDirs hold directories named HOST[:PORT] like CertDir. They are searched before those of the system.
	CertDirs []string
	// CAFile is one more file of certificate authorities.
	CAFile string
	// RegistriesConf replaces the system's registries.conf.
	RegistriesConf string
	// RegistriesDir replaces the directories of registries.d, which say where signatures are.
	RegistriesDir string
	// UserAgent is sent with every request.
	UserAgent string
}

// Env fills what is not set from the environment, as podman and docker do:
//
//   - AuthFile from REGISTRY_AUTH_FILE;
//   - AuthFiles with $XDG_RUNTIME_DIR/containers/auth.json (on Linux /run/containers/UID/auth.json without that
//     variable), $XDG_CONFIG_HOME/containers/auth.json or $HOME/.config/containers/auth.json, $DOCKER_CONFIG/config.json or
//     $HOME/.docker/config.json, and $HOME/.dockercfg;
//   - CertDirs with $XDG_CONFIG_HOME/containers/certs.d or $HOME/.config/containers/certs.d;
//   - RegistriesConf from CONTAINERS_REGISTRIES_CONF.
//
// Places that need a variable which is not set are left out.
func (r Registry) Env(getenv func(string) string) Registry {
	return Registry(registry.Config(r).Env(getenv))
}

// System returns the options in the form of the containers library. Files that it needs are written to scratch, a
// private directory that must exist as long as the result is used.
func (r Registry) System(ctx context.Context, scratch string) (*types.SystemContext, error) {
	return registry.Config(r).System(ctx, scratch)
}
