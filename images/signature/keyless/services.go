package keyless

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/tuf"
	"github.com/theupdateframework/go-tuf/v2/metadata/fetcher"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// Services are the services that a signature needs.
type Services struct {
	// Authority is the URL of the certificate authority, a Fulcio.
	Authority string
	// Logs are transparency logs, each of which records every signature.
	Logs []Log
	// SignedTimeLog is the URL of a log of version 1, which promises an entry at a signed time. Signatures in .sig tags
	// need it. Empty if there is none.
	SignedTimeLog string
	// Timestamps are the URLs of timestamp authorities, with their paths.
	Timestamps []string
	// Issuer is the URL of an OpenID Connect issuer where a user can get a token; it may be empty.
	Issuer string
}

// Log is a transparency log, a Rekor with an API of version 1 or 2.
type Log struct {
	URL     string
	Version uint32
}

// ParseServices chooses services from a signing configuration (signing_config.v0.2.json): the present ones of the newest
// versions, as many as it says.
func ParseServices(text []byte) (s Services, err error) {
	message, err := root.NewSigningConfigProtobuf(text)
	if err != nil {
		return s, fmt.Errorf("%w: not a signing configuration (signing_config.v0.2.json): %v", fault.ErrInvalid, err)
	}
	config, err := root.NewSigningConfigFromProtobuf(message)
	if err != nil {
		return s, fmt.Errorf("%w: %v", fault.ErrInvalid, err)
	}
	now := time.Now()
	authority, err := root.SelectService(config.FulcioCertificateAuthorityURLs(), sign.FulcioAPIVersions, now)
	if err != nil {
		return s, fmt.Errorf("%w: signing configuration: caUrls: %v", fault.ErrInvalid, err)
	}
	s.Authority = authority.URL
	choose := func(what string, from []root.Service, configured bool, with func() root.ServiceConfiguration,
		versions []uint32) (chosen []root.Service) {
		switch {
		case len(from) == 0 || err != nil:
		case !configured: // the library expects it
			err = fmt.Errorf("%w: signing configuration: %sConfig is missing", fault.ErrInvalid, what)
		default:
			if chosen, err = root.SelectServices(from, with(), versions, now); err != nil {
				err = fmt.Errorf("%w: signing configuration: %sUrls: %v", fault.ErrInvalid, what, err)
			}
		}
		return chosen
	}
	for _, l := range choose("rekorTlog", config.RekorLogURLs(), message.GetRekorTlogConfig() != nil,
		config.RekorLogURLsConfig, sign.RekorAPIVersions) {
		s.Logs = append(s.Logs, Log{l.URL, l.MajorAPIVersion})
	}
	for _, a := range choose("tsa", config.TimestampAuthorityURLs(), message.GetTsaConfig() != nil,
		config.TimestampAuthorityURLsConfig, sign.TimestampAuthorityAPIVersions) {
		s.Timestamps = append(s.Timestamps, a.URL)
	}
	if err != nil {
		return s, err
	}
	if first, err := root.SelectService(config.RekorLogURLs(), []uint32{1}, now); err == nil {
		s.SignedTimeLog = first.URL
	}
	if issuer, err := root.SelectService(config.OIDCProviderURLs(), []uint32{1}, now); err == nil {
		s.Issuer = issuer.URL
	}
	return s, s.check()
}

// check returns an error for services whose signatures nobody could verify, and for ones that a token would be sent to
// in clear.
func (s Services) check() (err error) {
	safe := func(what, text string) {
		if _, bad := webclient.ParseServiceURL(text); bad != nil && err == nil {
			err = fmt.Errorf("%s: %w", what, bad)
		}
	}
	safe("certificate authority", s.Authority)
	timed := len(s.Timestamps) > 0
	for _, l := range s.Logs {
		safe("transparency log", l.URL)
		timed = timed || l.Version == 1
		if l.Version != 1 && l.Version != 2 {
			return fmt.Errorf("%w: transparency log %s: version %d, expected 1 or 2", fault.ErrInvalid, l.URL, l.Version)
		}
	}
	for _, t := range s.Timestamps {
		safe("timestamp authority", t)
	}
	switch {
	case err != nil:
		return err
	case !timed && len(s.Logs) > 0:
		return fmt.Errorf("%w: a transparency log of version 2 does not prove when a signature was made: a timestamp "+
			"authority is needed too", fault.ErrInvalid)
	case !timed:
		return fmt.Errorf("%w: neither a transparency log nor a timestamp authority: nothing would prove that the "+
			"certificate was valid when it signed", fault.ErrInvalid)
	}
	return nil
}

// ErrNoSignedTime is the error of a signature in a .sig tag without a log that such signatures can name.
var ErrNoSignedTime = fault.New(fault.Input, "a signature in a .sig tag names an entry of a transparency log of version 1 "+
	"(with a signed time), and there is no such log")

// ServiceError is the error of a service that refuses, or that cannot be reached.
type ServiceError struct {
	// Flag is what names the URL of the service in a command: fulcio-url, rekor-url or tsa-url.
	Flag string
	URL  string
	Err  error
}

// Error implements [error].
func (e *ServiceError) Error() string {
	what := map[string]string{"fulcio-url": "certificate authority", "rekor-url": "transparency log",
		"tsa-url": "timestamp authority"}[e.Flag]
	return fmt.Sprintf("the %s %s: %v", what, e.URL, e.Err)
}

// Unwrap returns what the service answers.
func (e *ServiceError) Unwrap() error { return e.Err }

// Public is the public instance of Sigstore, which publishes its trusted root and its signing configuration by The Update
// Framework.
type Public struct {
	// Cache is the directory that keeps what was fetched, which is asked for again once a day; empty keeps nothing.
	Cache string
	// Offline forbids all requests: what is in the cache is used as long as it is valid.
	Offline bool

	url  string // of the repository, in tests
	root []byte // its first root of trust (root.json)
}

// ErrNotCached is the error of what is not in the cache, or not valid any more, when no request is allowed.
var ErrNotCached = fault.New(fault.Input, "the trusted root of Sigstore's public instance is not in the cache, or it has expired")

// TrustedRoot returns the trusted root (trusted_root.json).
func (p Public) TrustedRoot(ctx context.Context) ([]byte, error) {
	return p.target(ctx, "trusted_root.json")
}

// Services returns the services that the instance says to sign with.
func (p Public) Services(ctx context.Context) (Services, error) {
	text, err := p.target(ctx, "signing_config.v0.2.json")
	if err != nil {
		return Services{}, err
	}
	return ParseServices(text)
}

func (p Public) target(ctx context.Context, name string) ([]byte, error) {
	get := fetcher.NewDefaultFetcher()
	get.SetHTTPClient((&webclient.Service{Context: ctx, Most: 64 << 20}).Client()) // it has limits for files
	o := tuf.DefaultOptions().WithCachePath(p.Cache).WithCacheValidity(1).WithFetcher(get)
	if p.Cache == "" {
		o.WithDisableLocalCache()
	}
	if p.Offline {
		o.WithForceCache().WithFetcher(noFetcher{})
	}
	if p.url != "" {
		o.WithRepositoryBaseURL(p.url).WithRoot(p.root)
	}
	var text []byte
	client, err := tuf.New(o)
	if err == nil {
		text, err = client.GetTarget(name)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, ErrNotCached):
		return nil, ErrNotCached
	case err != nil:
		return nil, fmt.Errorf("%s of %s: %w", name, o.RepositoryBaseURL, err)
	}
	return text, nil
}

// noFetcher refuses every request.
type noFetcher struct{}

// DownloadFile implements [fetcher.Fetcher].
func (noFetcher) DownloadFile(string, int64, time.Duration) ([]byte, error) { return nil, ErrNotCached }
