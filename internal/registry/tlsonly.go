package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/types"
)

// ErrPlainHTTP is the error for a registry without TLS if plain HTTP is not allowed.
var ErrPlainHTTP = errors.New("does not speak TLS, and plain HTTP was not asked for")

// RequireTLS returns [ErrPlainHTTP] for a registry without TLS if certificates are not verified and plain HTTP is not
// allowed. The library would then send the credentials over plain HTTP.
func (r Config) RequireTLS(ctx context.Context, ref types.ImageReference) error {
	if r.SkipTLSVerify == nil || !*r.SkipTLSVerify || r.PlainHTTP || ref.DockerReference() == nil {
		return nil
	}
	host := reference.Domain(ref.DockerReference())
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/v2/", nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		Proxy:             http.ProxyFromEnvironment,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // an option of the user; nothing secret is sent
		DisableKeepAlives: true,
	}
	client := http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var record tls.RecordHeaderError
		if errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch) {
			return fmt.Errorf("registry %s %w", host, ErrPlainHTTP)
		}
		return fmt.Errorf("registry %s: %w", host, err)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4096) // any answer will do
	return resp.Body.Close()
}
