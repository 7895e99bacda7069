// Package gpgme has the part of the API of github.com/proglottis/gpgme with which the containers image library verifies
// signatures, without the C library GPGME. It verifies with golang.org/x/crypto/openpgp, as that library itself does
// when it is built with the tag containers_image_openpgp, and does not sign.
package gpgme

//lint:file-ignore SA1019 The containers image library verifies with this package too: one code for both ways to build.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/openpgp"
)

// ErrUnsupported is returned by what needs the C library.
var ErrUnsupported = errors.New("not supported by a program that is built without the GPGME library")

// Protocol is a protocol of GPGME.
type Protocol int

// ProtocolOpenPGP is the only one.
const ProtocolOpenPGP Protocol = 0

// PinEntryMode says where a passphrase comes from.
type PinEntryMode int

// PinEntryLoopback asks the program.
const PinEntryLoopback PinEntryMode = 4

// SigMode is a form of signatures.
type SigMode int

// SigModeNormal is a signature with its text.
const SigModeNormal SigMode = 0

// Callback answers a question for a passphrase.
type Callback func(uidHint string, prevWasBad bool, f *os.File) error

// Context has the keys that are known.
type Context struct {
	home string
	read bool // whether the keys of home are in keys
	keys openpgp.EntityList
}

// New returns a context whose keys are those of $GNUPGHOME/pubring.gpg.
func New() (*Context, error) {
	home := os.Getenv("GNUPGHOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return &Context{read: true}, nil // no user's keys
		}
		home = filepath.Join(user, ".gnupg")
	}
	return &Context{home: home}, nil
}

// SetProtocol accepts [ProtocolOpenPGP].
func (c *Context) SetProtocol(p Protocol) error {
	if p != ProtocolOpenPGP {
		return ErrUnsupported
	}
	return nil
}

// SetEngineInfo sets the directory of keys.
func (c *Context) SetEngineInfo(_ Protocol, _, home string) error {
	*c = Context{home: home}
	return nil
}

// SetArmor does nothing: no signatures are written.
func (c *Context) SetArmor(bool) {}

// SetTextMode does nothing: no signatures are written.
func (c *Context) SetTextMode(bool) {}

// SetCallback returns [ErrUnsupported]: there are no private keys.
func (c *Context) SetCallback(Callback) error { return ErrUnsupported }

// SetPinEntryMode returns [ErrUnsupported].
func (c *Context) SetPinEntryMode(PinEntryMode) error { return ErrUnsupported }

// Sign returns [ErrUnsupported].
func (c *Context) Sign([]*Key, *Data, *Data, SigMode) error { return ErrUnsupported }

// Key is a public key.
type Key struct{ fingerprint string }

// Fingerprint returns the fingerprint of the primary key, in upper case.
func (k *Key) Fingerprint() string { return k.fingerprint }

// GetKey returns the key that has a fingerprint, also that of a subkey. There are no secret keys.
func (c *Context) GetKey(fingerprint string, secret bool) (*Key, error) {
	if secret {
		return nil, ErrUnsupported
	}
	if err := c.load(); err != nil {
		return nil, err
	}
	for _, e := range c.keys {
		if hex(e.PrimaryKey.Fingerprint[:]) == fingerprint {
			return &Key{fingerprint}, nil
		}
		for _, sub := range e.Subkeys {
			if hex(sub.PublicKey.Fingerprint[:]) == fingerprint {
				return &Key{hex(e.PrimaryKey.Fingerprint[:])}, nil
			}
		}
	}
	return nil, fmt.Errorf("no key %q", fingerprint)
}

// load reads the keys of the directory, once.
func (c *Context) load() error {
	if c.read {
		return nil
	}
	ring, err := os.ReadFile(filepath.Join(c.home, "pubring.gpg"))
	if errors.Is(err, os.ErrNotExist) {
		c.read = true
		return nil
	}
	if err != nil {
		return err
	}
	keys, err := readKeys(ring)
	if err != nil {
		return err
	}
	c.keys, c.read = append(c.keys, keys...), true
	return nil
}

func readKeys(data []byte) (openpgp.EntityList, error) {
	keys, err := openpgp.ReadKeyRing(bytes.NewReader(data))
	if err != nil {
		if armored, e := openpgp.ReadArmoredKeyRing(bytes.NewReader(data)); e == nil {
			return armored, nil
		}
	}
	return keys, err
}

// Data is what an operation reads or writes.
type Data struct {
	r io.Reader
	w io.Writer
}

// NewDataBytes returns data to read.
func NewDataBytes(b []byte) (*Data, error) { return &Data{r: bytes.NewReader(b)}, nil }

// NewDataWriter returns data to write.
func NewDataWriter(w io.Writer) (*Data, error) { return &Data{w: w}, nil }

// ImportResult is the result of [Context.Import].
type ImportResult struct{ Imports []ImportStatus }

// ImportStatus is the result for one key.
type ImportStatus struct {
	Fingerprint string
	Result      error
}

// Import adds keys, armored or not, to the context; they are not kept in a file.
func (c *Context) Import(data *Data) (*ImportResult, error) {
	text, err := io.ReadAll(data.r)
	if err != nil {
		return nil, err
	}
	keys, err := readKeys(text)
	if err != nil {
		return nil, err
	}
	result := &ImportResult{}
	for _, e := range keys {
		result.Imports = append(result.Imports, ImportStatus{Fingerprint: hex(e.PrimaryKey.Fingerprint[:])})
	}
	c.keys = append(c.keys, keys...)
	return result, nil
}

func hex(fingerprint []byte) string { return strings.ToUpper(fmt.Sprintf("%x", fingerprint)) }
