package gpgme

//lint:file-ignore SA1019 The containers image library verifies with this package too: one code for both ways to build.

import (
	"bytes"
	"crypto"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/openpgp"
	"golang.org/x/crypto/openpgp/packet"
)

// signedBy returns text signed by a new key, and the public key.
func signedBy(t *testing.T, text string, config *packet.Config) (signed, public []byte, fingerprint string) {
	t.Helper()
	key, err := openpgp.NewEntity("acme", "", "acme@example.com", &packet.Config{RSABits: 2048})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range key.Identities {
		id.SelfSignature.PreferredHash = []uint8{8} // SHA-256
	}
	var message, ring bytes.Buffer
	w, err := openpgp.Sign(&message, key, nil, config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := key.Serialize(&ring); err != nil {
		t.Fatal(err)
	}
	return message.Bytes(), ring.Bytes(), hex(key.PrimaryKey.Fingerprint[:])
}

func TestVerify(t *testing.T) {
	const text = "the digest of an image"
	sha256 := &packet.Config{DefaultHash: crypto.SHA256}
	signed, public, fingerprint := signedBy(t, text, sha256)
	_, other, _ := signedBy(t, text, sha256)
	older, olderKey, _ := signedBy(t, text, &packet.Config{DefaultHash: crypto.SHA256,
		Time: func() time.Time { return time.Now().Add(-time.Hour) }})
	changed := bytes.Replace(signed, []byte("digest"), []byte("dlgest"), 1)
	for _, test := range []struct {
		name           string
		message, key   []byte
		valid, keyless bool
	}{
		{name: "a good signature", message: signed, key: public, valid: true},
		{name: "one made an hour ago", message: older, key: olderKey, valid: true},
		{name: "another key", message: signed, key: other},
		{name: "another text", message: changed, key: public},
		{name: "no keys", message: signed, keyless: true},
		{name: "cut off", message: signed[:len(signed)-20], key: public},
		{name: "text alone", message: []byte(text), key: public},
		{name: "nothing", key: public},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := New()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SetEngineInfo(ProtocolOpenPGP, "", t.TempDir()); err != nil {
				t.Fatal(err)
			}
			if !test.keyless {
				key, _ := NewDataBytes(test.key)
				if _, err := c.Import(key); err != nil {
					t.Fatal(err)
				}
			}
			var plain strings.Builder
			message, _ := NewDataBytes(test.message)
			out, _ := NewDataWriter(&plain)
			_, signatures, err := c.Verify(message, nil, out)
			if !test.valid {
				if err == nil || plain.Len() > 0 || len(signatures) > 0 {
					t.Fatalf("accepted: %v, %q", signatures, plain.String())
				}
				return
			}
			if err != nil || plain.String() != text || len(signatures) != 1 || signatures[0].Status != nil {
				t.Fatalf("refused: %v, %v, %q", err, signatures, plain.String())
			}
			if key, err := c.GetKey(signatures[0].Fingerprint, false); err != nil || key.Fingerprint() == "" {
				t.Fatalf("key: %v, %v", key, err)
			}
			if test.message != nil && bytes.Equal(test.key, public) && signatures[0].Fingerprint != fingerprint {
				t.Errorf("fingerprint %s, want %s", signatures[0].Fingerprint, fingerprint)
			}
		})
	}
}

func TestNothingIsSigned(t *testing.T) {
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetKey("00", true); err == nil {
		t.Error("a secret key")
	}
	if err := c.Sign(nil, nil, nil, SigModeNormal); err == nil {
		t.Error("a signature")
	}
}
