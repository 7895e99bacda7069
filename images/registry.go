package images

import (
	"github.com/operator-bindery/bindery/internal/registry"
)

// Registry is the configuration for registries. The zero value has the defaults of the containers library, without
// credentials. Most programs call its method Env, which completes it with what podman and docker find on the machine:
//
//   - AuthFile is the only file with credentials; AuthFiles are searched in their order if it is empty;
//   - SkipTLSVerify accepts any certificate; PlainHTTP accepts registries that do not speak TLS;
//   - CertDir has certificates, CertDirs directories HOST[:PORT] of them, and CAFile is one more file of authorities;
//   - RegistriesConf and RegistriesDir replace the system's registries.conf and registries.d;
//   - UserAgent is sent with every request.
type Registry = registry.Config
