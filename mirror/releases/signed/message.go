package signed

//lint:file-ignore SA1019 See keys.go.

import (
	"bytes"
	"cmp"
	"crypto"
	_ "crypto/sha256" // the hashes of signatures
	_ "crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/openpgp/packet"
)

// maxMessage is the size in bytes of the largest message, as it comes and unpacked. Those of the vendor have about a
// thousand. It also bounds how deep signatures within signatures are read.
const maxMessage = 16 << 10

// The hashes of signatures that are accepted: no collisions of them are known.
var hashes = []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512}

// open reads a message to its end and verifies its signature with one of the keys. Whether it has expired is left to
// the caller.
func (k *Keys) open(message []byte) (*parsed, error) {
	m, err := parse(message)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(hashes, m.hash) {
		return nil, fmt.Errorf("its signature uses the hash %s, which is no longer safe", m.hash)
	}
	err = fmt.Errorf("it is signed with the key %016X, which is none of those that may sign releases (%s): name its"+
		" file with --release-key if you trust it", m.signer, strings.Join(k.Fingerprints(), ", "))
	for _, key := range k.entities.KeysById(m.signer) {
		var ends time.Time
		if ends, err = checkUse(key); err != nil {
			continue
		}
		h := m.hash.New()
		h.Write(m.text)
		if err = m.verify(key.PublicKey, h); err == nil {
			m.key, m.ends = fingerprint(key.Entity), earlier(ends, m.ends)
			return m, nil
		}
		err = fmt.Errorf("its signature is damaged, or not that of its content (%w)", err)
	}
	return nil, err
}

// parsed are the parts of a message.
type parsed struct {
	signer uint64 // the ID of a key
	text   []byte
	hash   crypto.Hash
	// verify compares the signature with the hash of the text.
	verify func(*packet.PublicKey, hash.Hash) error
	// ends is when the signature expires, after open the key too, the earlier of both; zero if none does.
	ends time.Time
	// key is the fingerprint of the key that has signed; empty before open.
	key string
}

// parse takes a message apart. The library's own reader of messages also takes nested and encrypted ones, and ignores
// what follows a signature.
func parse(message []byte) (*parsed, error) {
	if len(message) > maxMessage {
		return nil, fmt.Errorf("it has more than %d bytes", maxMessage)
	}
	packets := bytes.NewReader(message)
	first, err := packet.Read(packets)
	if err != nil {
		return nil, fmt.Errorf("it is no OpenPGP message: %w", err)
	}
	if c, ok := first.(*packet.Compressed); ok {
		plain, err := io.ReadAll(io.LimitReader(c.Body, maxMessage+1))
		if err != nil {
			return nil, fmt.Errorf("it cannot be unpacked: %w", err)
		}
		if len(plain) > maxMessage {
			return nil, fmt.Errorf("it unpacks to more than %d bytes", maxMessage)
		}
		// A packet in parts ends with one of zero bytes, which is not read.
		if rest := message[len(message)-packets.Len():]; strings.Trim(string(rest), "\x00") != "" {
			return nil, errors.New("something follows what is compressed in it")
		}
		packets = bytes.NewReader(plain)
		if first, err = packet.Read(packets); err != nil {
			return nil, fmt.Errorf("there is no OpenPGP message compressed in it: %w", err)
		}
	}
	head, ok := first.(*packet.OnePassSignature)
	if !ok || !head.IsLast {
		return nil, errors.New("it is not an OpenPGP message with one signature")
	}
	second, err := packet.Read(packets)
	literal, ok := second.(*packet.LiteralData)
	if err != nil || !ok {
		return nil, fmt.Errorf("it has no content that is signed (%w)", cmp.Or(err, errors.New("something else follows")))
	}
	m := &parsed{signer: head.KeyId}
	if m.text, err = io.ReadAll(literal.Body); err != nil {
		return nil, fmt.Errorf("it was cut off: %w", err)
	}
	third, err := packet.Read(packets)
	if err != nil {
		return nil, fmt.Errorf("it ends before its signature, or that is damaged: %w", err)
	}
	if _, err := packet.Read(packets); err != io.EOF {
		return nil, errors.New("something follows its signature")
	}
	return m, m.sign(third)
}

// sign takes the signature of a message. That of the vendor is of version 3.
func (m *parsed) sign(p packet.Packet) error {
	var kind packet.SignatureType
	switch s := p.(type) {
	case *packet.Signature:
		kind, m.hash = s.SigType, s.Hash
		m.verify = func(k *packet.PublicKey, h hash.Hash) error { return k.VerifySignature(h, s) }
		m.ends = expiry(s.CreationTime, s.SigLifetimeSecs)
	case *packet.SignatureV3:
		kind, m.hash = s.SigType, s.Hash
		m.verify = func(k *packet.PublicKey, h hash.Hash) error { return k.VerifySignatureV3(h, s) }
	default:
		return errors.New("something other than a signature follows its content")
	}
	if kind != packet.SigTypeBinary {
		return fmt.Errorf("its signature is of type %#02x, not one of a binary document", uint8(kind))
	}
	return nil
}
