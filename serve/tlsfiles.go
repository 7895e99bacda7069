package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// maxCertificateFile bounds what is read of a certificate or key.
const maxCertificateFile = 1 << 20

// certificate is the server's certificate as its files have it. They are looked at again by [certificate.refresh]; a pair
// that cannot be used leaves the one before.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	current           atomic.Pointer[tls.Certificate]
	seen              fingerprint // of the files when they were last read; used by one goroutine
	failures          atomic.Uint64
}

// ErrTLSFlags reports a certificate without a key or a key without a certificate.
var ErrTLSFlags = errors.New("--tls-cert and --tls-key go together")

// openCertificate reads the pair; nil where none is asked for.
func openCertificate(o Options) (*certificate, error) {
	switch {
	case o.TLSCert == "" && o.TLSKey == "":
		return nil, nil
	case o.TLSCert == "" || o.TLSKey == "":
		return nil, ErrTLSFlags
	}
	c := &certificate{certFile: o.TLSCert, keyFile: o.TLSKey, log: o.Log}
	c.seen = lookAt(c.certFile, c.keyFile)
	return c, c.read()
}

func (c *certificate) read() error {
	certPEM, err := readSmall(c.certFile)
	if err != nil {
		return fmt.Errorf("TLS certificate: %w", err)
	}
	keyPEM, err := readSmall(c.keyFile)
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

// readSmall reads a regular file; anything else might never end.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCertificateFile+1))
	if err == nil && len(data) > maxCertificateFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxCertificateFile)
	}
	return data, err
}

// refresh reads the files again if they have changed, or always if must is set. It may be called on nil.
func (c *certificate) refresh(must bool) {
	if c == nil {
		return
	}
	// Taken before reading: what is changed while it is read is read once more at the next look.
	now := lookAt(c.certFile, c.keyFile)
	if !must && now.same(c.seen) {
		return
	}
	c.seen = now
	if now.unsettled() > 0 {
		c.seen = fingerprint{}
	}
	if err := c.read(); err != nil {
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

// config is that of a listener: each connection gets the certificate of its time. It may be called on nil.
func (c *certificate) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil },
	}
}
