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

// ErrTLSFlags is returned for a certificate without a key, or a key without a certificate.
var ErrTLSFlags = errors.New("--tls-cert and --tls-key go together")

// openCertificate reads the pair; nil if none is requested.
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

// readSmall reads a regular file; other kinds might never end.
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
	// Taken before reading: a change during reading is detected at the next look.
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
