package render

import (
	"errors"
	"os"
	"runtime"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
)

// prepare returns the options of one call: with an account, and with a client for images. A client that is not the
// caller's is closed by done.
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
		Registry: images.Registry{}.Env(os.Getenv), Retries: defaultRetries,
		Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, AnyPlatform: true,
	})
	if err != nil {
		return nil, nil, err
	}
	return &o, o.Images.Close, nil
}

// closing calls done after something that ended with err.
func closing(err error, done func() error) error {
	if derr := done(); derr != nil {
		return errors.Join(err, derr)
	}
	return err
}

// defaultRetries is how often a request to a registry is repeated where the caller has no client.
const defaultRetries = 3
