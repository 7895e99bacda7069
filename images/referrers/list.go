package referrers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/verify"
)

// manifestsAtOnce is how many manifests are fetched concurrently.
const manifestsAtOnce = 8

// Referrer is a manifest that has the image as its subject. Its digest has been computed.
type Referrer struct {
	// Descriptor has what the manifest says of itself: its artifact type, or the media type of its configuration, and
	// its annotations. They are not signed.
	v1.Descriptor
	// Text is the text of the manifest.
	Text []byte `json:"-"`
	// Subject is the subject in the manifest.
	Subject v1.Descriptor `json:"-"`
	// Layers are those of the manifest.
	Layers []v1.Descriptor `json:"-"`
}

// Problem is something in a list that is not what it is listed as, and which is passed over.
type Problem struct {
	// Digest is the text in the list, which need not be a digest.
	Digest digest.Digest
	// Subject is the image that it is listed for.
	Subject digest.Digest
	Err     error
}

func (p *Problem) Error() string {
	return fmt.Sprintf("%.140q, listed for %s: %v", string(p.Digest), p.Subject, p.Err)
}

func (p *Problem) Unwrap() error { return p.Err }

// List returns the referrers of a subject in the order of the list, each once: every manifest that is listed is fetched
// by its digest, and its subject is compared. What is listed wrongly, or is missing, is among the problems. Errors are
// those of the registry, and of the budget.
func List(ctx context.Context, r store.Reader, subject digest.Digest,
	budget *store.Budget) ([]Referrer, []*Problem, error) {
	listed, err := r.Referrers(ctx, subject, nil)
	if err != nil {
		return nil, nil, err
	}
	once := store.Once(listed)
	if err := budget.TakeCount(len(once)); err != nil {
		return nil, nil, fmt.Errorf("referrers of %s: %w", subject, err)
	}
	found := make([]*Referrer, len(once))
	wrong := make([]error, len(once))
	err = guard.Each(ctx, manifestsAtOnce, once, func(ctx context.Context, i int, d v1.Descriptor) error {
		one, err := referrerOf(ctx, r, subject, d, budget)
		if isProblem(err) {
			wrong[i] = err
			return nil
		}
		found[i] = one
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("referrers of %s: %w", subject, err)
	}
	var good []Referrer
	var problems []*Problem
	for i := range once {
		if wrong[i] != nil {
			problems = append(problems, &Problem{Digest: once[i].Digest, Subject: subject, Err: wrong[i]})
		} else {
			good = append(good, *found[i])
		}
	}
	return good, problems, nil
}

// errBudget is an error about all that is read, and not about one manifest.
type errBudget struct{ error }

func (e errBudget) Unwrap() error { return e.error }

// isProblem tells whether an error is about what is listed, and not about the place or the sum of all.
func isProblem(err error) bool {
	var all errBudget
	if errors.As(err, &all) {
		return false
	}
	for _, class := range []error{fs.ErrNotExist, fault.ErrInvalid, fault.ErrIntegrity, fault.ErrLimit} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}

// referrerOf reads one manifest that is listed for a subject.
func referrerOf(ctx context.Context, r store.Reader, subject digest.Digest, d v1.Descriptor,
	budget *store.Budget) (*Referrer, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, err
	}
	if d.Size > limit.MaxManifest {
		return nil, fmt.Errorf("%w: %d bytes (limit %d)", fault.ErrLimit, d.Size, limit.MaxManifest)
	}
	text, mediaType, err := r.Manifest(ctx, d.Digest.String())
	if err != nil {
		return nil, err
	}
	if got := digest.FromBytes(text); got != d.Digest {
		return nil, fmt.Errorf("%w: digest mismatch: %s", fault.ErrIntegrity, got)
	}
	found, of, err := describe(text, mediaType, budget)
	if err != nil {
		return nil, err
	}
	if of == nil || of.Digest != subject {
		return nil, fmt.Errorf("%w: its subject is another", fault.ErrInvalid)
	}
	found.Subject = *of
	return found, nil
}

// describe reads and counts a manifest that is attached to an image, and returns its subject; nil if it has none.
func describe(text []byte, mediaType string, budget *store.Budget) (*Referrer, *v1.Descriptor, error) {
	if err := budget.TakeManifest(len(text)); err != nil {
		return nil, nil, errBudget{err}
	}
	is, of, err := reflist.Describe(text, mediaType)
	if err != nil {
		return nil, nil, err
	}
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, nil, fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	return &Referrer{Descriptor: is, Text: text, Layers: m.Layers}, of, nil
}
