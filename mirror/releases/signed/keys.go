package signed

//lint:file-ignore SA1019 The containers image library verifies with this package too, which still reads signatures of
// version 3: those of the vendor are.

import (
	"bytes"
	"crypto/dsa" //nolint:staticcheck // to refuse it
	"crypto/fips140"
	_ "embed" // the vendor's keys
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/openpgp"
	"golang.org/x/crypto/openpgp/armor"
	"golang.org/x/crypto/openpgp/packet"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The vendor's keys are the files verifier-public-key-redhat-release and verifier-public-key-redhat-beta-2 in the
// directory keys of github.com/openshift/cluster-update-keys at commit 3b5c59c, byte for byte. Clusters verify releases
// with the same two:
//
//	release key 2  567E347AD0044ADE55BA8A5F199E2F91FD431D51
//	beta key 2     B08B659EE86AF623BC90E8DB938A80CAF21541EB
var (
	//go:embed keys/redhat-release-2.asc
	releaseKey2 []byte
	//go:embed keys/redhat-beta-2.asc
	betaKey2 []byte
)

// Keys are the public keys that may sign releases.
type Keys struct{ entities openpgp.EntityList }

// VendorKeys returns the keys that sign OpenShift's releases.
func VendorKeys() (*Keys, error) { return ReadKeys(slices.Concat(releaseKey2, betaKey2)) }

// The lines around armored public keys.
const (
	beginKeys = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	endKeys   = "-----END PGP PUBLIC KEY BLOCK-----"
)

// ReadKeys reads armored public keys, of which there may be several in one block or in several. Keys of kinds that are
// not supported, such as Ed25519, are left out. The error is of the class [fault.ErrInvalid] if no key is left, and if
// a block is damaged. The text is one that is trusted: it has no limits.
func ReadKeys(text []byte) (*Keys, error) {
	k := &Keys{}
	unread := errors.New("expected " + beginKeys)
	for block := range bytes.SplitAfterSeq(text, []byte(endKeys)) {
		begin := bytes.Index(block, []byte(beginKeys))
		if begin < 0 {
			continue
		}
		b, err := armor.Decode(bytes.NewReader(block[begin:]))
		if err != nil {
			return nil, fmt.Errorf("%w: OpenPGP keys: %w", fault.ErrInvalid, err)
		}
		var list openpgp.EntityList
		// The fingerprint that names a key is a SHA-1, and so are signatures with which old keys say what they are for, which
		// FIPS 140 does not allow. The file of keys is trusted as it is, and releases are signed with other hashes.
		fips140.WithoutEnforcement(func() { list, err = openpgp.ReadKeyRing(b.Body) })
		if err != nil {
			unread = err
		}
		k.entities = append(k.entities, list...)
	}
	if len(k.entities) == 0 {
		return nil, fmt.Errorf("%w: no armored OpenPGP public key that can be used: %w", fault.ErrInvalid, unread)
	}
	return k, nil
}

// Fingerprints returns the fingerprints of the keys, in upper case, in the order in which they were read.
func (k *Keys) Fingerprints() []string {
	all := make([]string, len(k.entities))
	for i, e := range k.entities {
		all[i] = fingerprint(e)
	}
	return all
}

func fingerprint(e *openpgp.Entity) string { return fmt.Sprintf("%X", e.PrimaryKey.Fingerprint) }

// checkUse returns when a key, or a subkey of one, expires, the zero time if it does not, unless it may not sign.
func checkUse(key openpgp.Key) (ends time.Time, _ error) {
	primary, self := key.Entity.PrimaryKey, selfSignature(key.Entity)
	ends = expiry(primary.CreationTime, self.KeyLifetimeSecs)
	may := !self.FlagsValid || self.FlagSign
	if sub := key.SelfSignature; key.PublicKey != primary {
		ends = earlier(ends, expiry(key.PublicKey.CreationTime, sub.KeyLifetimeSecs))
		may = sub.SigType == packet.SigTypeSubkeyBinding && sub.FlagSign
	}
	if _, is := key.PublicKey.PublicKey.(*dsa.PublicKey); is && fips140.Enforced() {
		return ends, fmt.Errorf("the key %s, with which it is signed, is a key of DSA, which the FIPS mode (GODEBUG=fips140=only) forbids",
			key.PublicKey.KeyIdString())
	}
	if len(key.Entity.Revocations) > 0 || !may {
		return ends, fmt.Errorf("the key %s, with which it is signed, is revoked, or not for signing",
			key.PublicKey.KeyIdString())
	}
	return ends, nil
}

// selfSignature returns the newest of the signatures with which a key says what it is for.
func selfSignature(e *openpgp.Entity) *packet.Signature {
	var newest *packet.Signature
	for _, i := range e.Identities {
		if newest == nil || i.SelfSignature.CreationTime.After(newest.CreationTime) {
			newest = i.SelfSignature
		}
	}
	return newest
}

// expiry returns the end of a lifetime, the zero time if it has none.
func expiry(from time.Time, seconds *uint32) time.Time {
	if seconds == nil || *seconds == 0 {
		return time.Time{}
	}
	return from.Add(time.Duration(*seconds) * time.Second)
}

// earlier returns the earlier of two ends, of which the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
