package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/operator-bindery/bindery/internal/regularfile"
)

// maxCertificateFile is the maximum size of a certificate or key file.
const maxCertificateFile = 1 << 20

// certificate is the server's certificate from its files. [certificate.refresh] checks them again; an unusable pair
// does not replace the previous one.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]
	seen              fingerprint // of the files when they were last read; used by one goroutine
	failures          atomic.Uint64
}

// openCertificate reads the pair; nil if none is requested.
func openCertificate(ctx context.Context, o Options) (*certificate, error) {
	switch {
	case o.TLSCert == "" && o.TLSKey == "":
		return nil, nil
	case o.TLSCert == "" || o.TLSKey == "":
		return nil, ErrTLSFlags
	}
	c := &certificate{certFile: o.TLSCert, keyFile: o.TLSKey, log: o.Log}
	c.seen = lookAt(c.certFile, c.keyFile)
	return c, c.read(ctx)
}

func (c *certificate) read(ctx context.Context) error {
	certPEM, err := regularfile.ReadNamed(ctx, c.certFile, maxCertificateFile)
	if err != nil {
		return fmt.Errorf("TLS certificate: %w", err)
	}
	keyPEM, err := regularfile.ReadNamed(ctx, c.keyFile, maxCertificateFile)
	if err != nil {
		return fmt.Errorf("TLS key: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("%s, %s: %w", c.certFile, c.keyFile, err)
	}
	c.current.Store(&pair)
	return nil
}

// refresh reads the files again if they have changed, or always if must is set. It may be called on nil.
func (c *certificate) refresh(ctx context.Context, must bool) {
	if c == nil {
		return
	}
	// Taken before reading: a change during reading is detected at the next look.
	now := lookAt(c.certFile, c.keyFile)
	if !must && now.same(c.seen) {
		return
	}
	c.seen = now
	if now.unsettled() > 0 {
		c.seen = fingerprint{}
	}
	if err := c.read(ctx); err != nil {
		c.failures.Add(1)
		c.log.Error("the TLS certificate cannot be loaded: the one before is used", "error", err)
		return
	}
	c.log.Info("TLS certificate loaded", "until", c.notAfter().UTC().Format(time.RFC3339))
}

func (c *certificate) notAfter() time.Time {
	if leaf := c.current.Load().Leaf; leaf != nil {
		return leaf.NotAfter
	}
	return time.Time{}
}

// config returns a listener's configuration: each connection gets the current certificate. It may be called on nil.
func (c *certificate) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}
