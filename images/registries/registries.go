package registries

import (
	"cmp"
	"context"
	"time"

	"github.com/operator-bindery/bindery/images/internal/registry"
)

// Client reads and writes the repositories of registries, as those that images are mirrored to: connections,
// credentials, tokens and limits are shared by all of them. Mirrors of registries.conf are for sources, so that none is
// used here. It is safe for concurrent use. Its method Repository returns the repository HOST[:PORT]/PATH, Repositories
// the paths of all in a registry, Ping asks whether it takes the credentials, and Login whether it takes others.
type Client = registry.Client

// Options say how registries are reached. They configure a [Client], and images.ClientOptions and images.CopyOptions
// embed them. The zero value makes one attempt of each request, without credentials and limits:
//
//   - Registry is the [Config];
//   - Retries is how often a request that failed is repeated, and Backoff the first pause before that (a second);
//   - Stall ends an attempt in which nothing moves (a minute for what is read, two for what is written);
//   - Throttle limits requests and bytes, see [NewThrottle];
//   - Cache keeps what is read by its name; Uploads keeps where uploads continue; Temp is for temporary files;
//   - Events receives retries, warnings and the steps of a copy, from one goroutine at a time.
type Options = registry.Options

// Repository is a repository of a [Client]: a [store.Writer] that also tells whether it has a blob (HasBlob), and
// deletes a manifest with all its tags, or one tag (Delete, Untag: fs.ErrNotExist, ErrNoDelete).
//
// A blob that another repository of the same registry has, as far as this process or its source knows, is mounted
// and not sent; one that is just being sent to another repository is waited for. It is safe for concurrent use.
type Repository = registry.Repository

// New returns a client. It reads the files that the options name, and sends no request. An attempt in which nothing
// moves for two minutes ends, unless the options say otherwise. Close the client after use.
func New(ctx context.Context, o Options) (*Client, error) {
	o.Stall = cmp.Or(o.Stall, 2*time.Minute)
	return registry.New(ctx, o)
}

// Uploads keeps where the uploads of large blobs continue, so that another process goes on with the bytes that the
// registry has; see [NewUploadStore].
type Uploads = registry.Uploads

// Config is the configuration for registries. The zero value has the defaults of the containers library, without
// credentials. Most programs call its method Env, which completes it with what podman and docker find on the machine:
//
//   - AuthFile is the only file with credentials; AuthFiles are searched in their order if it is empty;
//   - SkipTLSVerify accepts any certificate; PlainHTTP accepts registries that do not speak TLS;
//   - CertDir has certificates, CertDirs directories HOST[:PORT] of them, and CAFile is one more file of authorities;
//   - RegistriesConf and RegistriesDir replace the system's registries.conf and registries.d;
//   - UserAgent is sent with every request;
//   - End is what [EndOf] returns for the errors of requests, for a program with a configuration for each end of a copy.
type Config = registry.Config

// Accounts is the file in which credentials are kept, with the credential helpers that are named there; its methods Keep,
// Forget and ForgetAll change it. [Config.Accounts] returns it.
type Accounts = registry.Accounts

// ErrNotLoggedIn is the error of [Accounts.Forget] for a registry without credentials.
var ErrNotLoggedIn = registry.ErrNotLoggedIn

// Throttle limits the requests and bytes of all clients that have it. It is safe for concurrent use; nil limits
// nothing.
type Throttle = registry.Throttle

// NewThrottle returns a throttle of that many requests at once to each host, and of that many bytes per second in all,
// received and sent: an image that goes from one registry to another counts twice. Zero is no limit. A request counts
// until its answer has been read, so that one blob at a time comes from a host with one request.
func NewThrottle(perHost int, bandwidth int64) *Throttle {
	return registry.NewThrottle(perHost, bandwidth)
}

// Errors of registries. All are of the class images.ErrRegistry.
var (
	// ErrPlainHTTP is the error of a registry that does not speak TLS, where plain HTTP is not allowed.
	ErrPlainHTTP = registry.ErrPlainHTTP
	// ErrNoDelete is the error of a registry that deletes no manifests.
	ErrNoDelete = registry.ErrNoDelete
	// ErrNoCatalog is the error of a registry that does not list its repositories, or not for these credentials.
	ErrNoCatalog = registry.ErrNoCatalog
)

// StatusError is an answer of a registry that is no success. Its fields are the Status, and the Codes of the errors in
// the answer (distribution specification, "Error codes").
type StatusError = registry.StatusError

// RefusedError is the error of a registry that takes something else than most: Why is [RefusedSize], [RefusedName] or
// [RefusedRepository], and the Repository, Digest and Size are those of what was written.
type RefusedError = registry.RefusedError

// The reasons of a [RefusedError].
const (
	// RefusedSize is a blob or manifest that is too large, for the registry or for a proxy before it.
	RefusedSize = registry.RefusedSize
	// RefusedName is the name of a repository, such as one with too many components.
	RefusedName = registry.RefusedName
	// RefusedRepository is a repository that does not exist and that the registry does not make.
	RefusedRepository = registry.RefusedRepository
)

// EndOf returns the End of the configuration of the client whose request failed; empty if it has none.
func EndOf(err error) string { return registry.EndOf(err) }

// IsUnauthorized tells whether an error is a registry's refusal of the credentials, or of a request without any.
func IsUnauthorized(err error) bool { return registry.IsUnauthorized(err) }
