package signed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/webclient"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// DefaultURL is where the vendor publishes signatures.
const DefaultURL = "https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release/"

// maxSignatures is how many signatures of a release are read of a server, and how many that are stored.
const maxSignatures = 10

// Options say where signatures are looked up and which are good. Keys is required.
type Options struct {
	Keys *Keys
	// URL is where signatures are published, [DefaultURL] if empty: URL/sha256=HEX/signature-1, -2 and so on.
	URL string
	// Client, unless nil, asks the server at URL for what is not stored.
	Client *webclient.Client
	// Stored, unless nil, has signatures in files named like [Signature.FileName], each of which is verified like one of
	// a server. It may be a directory that does not exist.
	Stored fs.FS
	// Now is the time that decides what has expired; that of the clock if zero.
	Now time.Time
	// AllowExpired accepts signatures that have expired, and those of keys that have.
	AllowExpired bool
	// Sources are further repositories that signatures may name in place of the release's own and the vendor's.
	Sources []imageset.Target
}

// Signature is a signature that was verified, with what it says.
type Signature struct {
	// Reference is the name that is signed for the image: it has a tag, the digest of the image, or both, and decides the
	// tag at a destination.
	Reference imageset.Ref
	// Digest is that of the image.
	Digest digest.Digest
	// Text is the message as it was found.
	Text []byte
	// Key is the fingerprint of the key that has signed, in upper case.
	Key string
	// Expired is when the signature or its key expired; zero if neither has, as always without AllowExpired.
	Expired time.Time
	// Passed says of each file and URL that was tried before why it is no good signature.
	Passed []error
}

// FileName returns the name under which the signature is stored, TAG-sha256-HEX; the tag is empty for a reference
// without one.
func (s *Signature) FileName() string { return s.Reference.Tag + stored(s.Digest) }

// Tag returns the tag of the release at a destination: that of the reference, else the HEX of the digest.
func (s *Signature) Tag() string { return cmp.Or(s.Reference.Tag, s.Digest.Encoded()) }

// stored is the end of the names of the files of an image.
func stored(d digest.Digest) string { return "-" + d.Algorithm().String() + "-" + d.Encoded() }

// Error is the error about a release without a good signature. Its class is [fault.Integrity] if there is one that is
// not good, [fault.Input] if there is none, and [fault.Network] if the server did not answer.
type Error struct {
	Image imageset.Ref
	// Reasons say of each file or URL why it is no good signature; never empty.
	Reasons []error
}

// Error returns the reasons, one per line.
func (e *Error) Error() string {
	text := fmt.Sprintf("release %s: no good signature", e.Image.Name())
	for _, r := range e.Reasons {
		text += "\n  " + r.Error()
	}
	return text
}

// Unwrap returns the reasons.
func (e *Error) Unwrap() []error { return e.Reasons }

// errUnsigned is the class of reasons about what is not there.
var errUnsigned = fault.New(fault.Input, "no signature")

// Find returns a good signature of an image, which has a digest: the first one that is stored, else the first one that
// the server has. The error is an [*Error], or about the options.
func (o Options) Find(ctx context.Context, image imageset.Ref) (*Signature, error) {
	if err := image.Digest.Validate(); err != nil {
		return nil, fmt.Errorf("%w: release %s: signatures are for digests: %w", fault.ErrInvalid,
			fault.Quote(image.Name()), err)
	}
	f := &search{o: o, image: image}
	s, err := f.inFiles()
	if s == nil && err == nil && o.Client != nil {
		s, err = f.atServer(ctx)
	}
	if s != nil {
		s.Passed = f.reasons
	}
	if s != nil || err != nil {
		return s, err
	}
	if len(f.reasons) == 0 {
		f.reasons = []error{fmt.Errorf("%w is stored: no file TAG%s", errUnsigned, stored(image.Digest))}
	}
	return nil, &Error{image, f.reasons}
}

// search is the search for a good signature of an image.
type search struct {
	o       Options
	image   imageset.Ref
	reasons []error
}

// not keeps why there is no good signature at a place.
func (f *search) not(at string, err error) {
	f.reasons = append(f.reasons, fmt.Errorf("%s: %w", at, err))
}

// inFiles returns a good signature that is stored, if there is one.
func (f *search) inFiles() (*Signature, error) {
	if f.o.Stored == nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(f.o.Stored, ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("stored signatures: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, stored(f.image.Digest)) || !e.Type().IsRegular() ||
			len(f.reasons) == maxSignatures {
			continue
		}
		s, err := f.read(name)
		if err == nil && s.FileName() == name {
			return s, nil
		}
		if err == nil {
			err = fmt.Errorf("%w: it is the signature of %s", fault.ErrIntegrity, s.FileName())
		}
		f.not("signatures/"+name, err)
	}
	return nil, nil
}

// read reads and verifies a file.
func (f *search) read(name string) (*Signature, error) {
	r, err := f.o.Stored.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxMessage+1))
	if err != nil {
		return nil, err
	}
	return f.o.Verify(text, f.image)
}

// atServer returns the first good signature that the server has, if there is one: it gets signature-1 and so on, until
// one is good or not there.
func (f *search) atServer(ctx context.Context) (*Signature, error) {
	base, err := webclient.ParseURL(cmp.Or(f.o.URL, DefaultURL))
	if err != nil {
		return nil, fmt.Errorf("signatures of releases: %w", err)
	}
	of := f.image.Digest
	for n := 1; n <= maxSignatures; n++ {
		at := base.JoinPath(fmt.Sprintf("%s=%s/signature-%d", of.Algorithm(), of.Encoded(), n)).String()
		shown := redact.Text(at)
		answer, err := f.o.Client.Get(ctx, at, "", maxMessage)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil: // it names the URL
			if f.reasons = append(f.reasons, err); !errors.Is(err, fault.ErrLimit) {
				return nil, nil
			}
			continue
		case answer.Status == http.StatusNotFound:
			if n == 1 {
				f.not(shown, fmt.Errorf("%w (status 404): --ignore-release-signature takes a release that is set by"+
					" platform.release without one", errUnsigned))
			}
			return nil, nil
		case answer.Status != http.StatusOK:
			f.not(shown, fmt.Errorf("%w: %s", fault.ErrServer, answer))
			return nil, nil
		}
		s, err := f.o.Verify(answer.Body, f.image)
		if err == nil {
			return s, nil
		}
		f.not(shown, err)
	}
	return nil, nil
}

// Verify returns a signature if a message is a good one of an image: one of the keys has signed it, it has not expired,
// and it is about the digest of the image and a repository that may be named. Errors are of the class
// [fault.Integrity].
func (o Options) Verify(text []byte, image imageset.Ref) (*Signature, error) {
	m, err := o.Keys.open(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fault.ErrIntegrity, err)
	}
	s := &Signature{Digest: image.Digest, Text: text, Key: m.key}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if m.made.After(o.Now) {
		return nil, fmt.Errorf("%w: its signature is dated %s, which is in the future: the clock of this machine is wrong, or the"+
			" signature is", fault.ErrIntegrity, m.made.UTC().Format(time.DateTime))
	}
	if !m.ends.IsZero() && o.Now.After(m.ends) {
		if s.Expired = m.ends; !o.AllowExpired {
			return nil, fmt.Errorf("%w: its signature or key %s has expired on %s: accept that with"+
				" --allow-expired-release-signature", fault.ErrIntegrity, m.key, m.ends.UTC().Format(time.DateOnly))
		}
	}
	if s.Reference, err = o.check(m.text, image); err != nil {
		return nil, fmt.Errorf("%w: %w", fault.ErrIntegrity, err)
	}
	return s, nil
}
