package signed

//lint:file-ignore SA1019 See keys.go.

import (
	"bytes"
	"cmp"
	"compress/bzip2"
	"compress/flate"
	"compress/zlib"
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
	// made is when the signature was made, as it says.
	made time.Time
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
	if _, ok := first.(*packet.Compressed); ok {
		plain, err := unpack(message)
		if err != nil {
			return nil, err
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

// unpack returns what is compressed in a message that is one packet and nothing else. The library's reader does not say
// where the packet ends, nor where what is compressed ends within it.
func unpack(message []byte) ([]byte, error) {
	content, rest, err := firstPacket(message)
	if err != nil || len(content) == 0 {
		return nil, fmt.Errorf("it cannot be unpacked: %w", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	if len(rest) > 0 {
		return nil, errors.New("something follows what is compressed in it")
	}
	r := bytes.NewReader(content[1:]) // it is read byte by byte, and not beyond the end
	var plain io.Reader
	switch content[0] {
	case 1:
		plain = flate.NewReader(r)
	case 2:
		plain, err = zlib.NewReader(r)
	case 3:
		plain = bzip2.NewReader(r)
	default:
		err = fmt.Errorf("it is compressed by the unknown algorithm %d", content[0])
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(plain, maxMessage+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("it cannot be unpacked: %w", err)
	case len(text) > maxMessage:
		return nil, fmt.Errorf("it unpacks to more than %d bytes", maxMessage)
	case r.Len() > 0:
		return nil, errors.New("something follows what is compressed in it")
	}
	return text, nil
}

// firstPacket returns the content of the first packet of a message, and what follows it (RFC 4880, 4.2).
func firstPacket(message []byte) (content, rest []byte, err error) {
	cut := func(n int) (of []byte) {
		if n < 0 || n > len(message) {
			err = io.ErrUnexpectedEOF
			n = len(message)
		}
		of, message = message[:n], message[n:]
		return of
	}
	number := func(n int) int {
		length := 0
		for _, b := range cut(n) {
			length = length<<8 | int(b)
		}
		return length
	}
	tag := number(1)
	if tag&0x40 == 0 { // the old format
		if tag&3 == 3 { // to the end
			return message, nil, nil
		}
		content = cut(number(1 << (tag & 3)))
		return content, message, err
	}
	for err == nil {
		switch n := number(1); {
		case n < 192:
			content = append(content, cut(n)...)
			return content, message, err
		case n < 224:
			content = append(content, cut((n-192)<<8+number(1)+192)...)
			return content, message, err
		case n == 255:
			content = append(content, cut(number(4))...)
			return content, message, err
		default: // a part
			content = append(content, cut(1<<(n&31))...)
		}
	}
	return nil, nil, err
}

// sign takes the signature of a message. That of the vendor is of version 3.
func (m *parsed) sign(p packet.Packet) error {
	var kind packet.SignatureType
	switch s := p.(type) {
	case *packet.Signature:
		kind, m.hash, m.made = s.SigType, s.Hash, s.CreationTime
		m.verify = func(k *packet.PublicKey, h hash.Hash) error { return k.VerifySignature(h, s) }
		m.ends = expiry(s.CreationTime, s.SigLifetimeSecs)
	case *packet.SignatureV3:
		kind, m.hash, m.made = s.SigType, s.Hash, s.CreationTime
		m.verify = func(k *packet.PublicKey, h hash.Hash) error { return k.VerifySignatureV3(h, s) }
	default:
		return errors.New("something other than a signature follows its content")
	}
	if kind != packet.SigTypeBinary {
		return fmt.Errorf("its signature is of type %#02x, not one of a binary document", uint8(kind))
	}
	return nil
}
