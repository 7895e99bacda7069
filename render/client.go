package render

import (
	"errors"
	"os"
	"runtime"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
)

// prepare returns the options of one call with an account and an image client. done closes the client if it is not the
// caller's.
func (o Options) prepare() (_ *Options, done func() error, err error) {
	if o.account == nil {
		if o.account = o.Account; o.account == nil {
			o.account = &Account{}
		}
	}
	if o.Images != nil {
		return &o, nothing, nil
	}
	o.Images, err = images.NewClient(images.ClientOptions{
		Policy:     policy.Read,
		Transports: transports(),
		Options:    registries.Options{Registry: registries.Config{}.Env(os.Getenv), Retries: defaultRetries},
		Platform:   v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, AnyPlatform: true,
	})
	if err != nil {
		return nil, nil, err
	}
	return &o, o.Images.Close, nil
}

// transports are those of the default client.
func transports() transport.Table { return library.Transports(images.BuiltIn()) }

// closing calls done and joins its error to err.
func closing(err error, done func() error) error {
	if derr := done(); derr != nil {
		return errors.Join(err, derr)
	}
	return err
}

// defaultRetries is how often a registry request is repeated if the caller passes no client.
const defaultRetries = 3
