package stock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Wanted is an image that should be there.
type Wanted struct {
	// Repository is HOST/PATH, and Name the tag or digest.
	Repository string
	Name       string
	// Digest, unless empty, is what Name should stand for.
	Digest digest.Digest
	// Platforms, unless empty, are those whose images of an index should be there; the index itself in any case.
	Platforms []v1.Platform
}

// Kind is what is wrong.
type Kind string

// The kinds of a [Problem].
const (
	// AbsentManifest is a manifest or index that is not there, and AbsentBlob a blob.
	AbsentManifest Kind = "absent-manifest"
	AbsentBlob     Kind = "absent-blob"
	// WrongDigest is a tag that stands for another image, or a text with another digest than it was asked for by.
	WrongDigest Kind = "wrong-digest"
	// Invalid is a manifest that cannot be understood.
	Invalid Kind = "invalid"
	// Failed is an answer of the registry that says nothing about the image.
	Failed Kind = "failed"
)

// Problem is what is wrong with an image.
type Problem struct {
	Kind Kind `json:"kind"`
	// Digest is that of the manifest or blob, Size that in bytes of a blob, and Platform that of the entry of an index.
	Digest   digest.Digest `json:"digest,omitempty"`
	Size     int64         `json:"size,omitempty"`
	Platform string        `json:"platform,omitempty"`
	// Got is what the tag stands for.
	Got digest.Digest `json:"got,omitempty"`
	// Err is the error of a manifest or of the registry, without credentials.
	Err error `json:"-"`
}

func (p Problem) Error() string {
	switch p.Kind {
	case AbsentManifest:
		if p.Digest == "" {
			return "there is no such tag"
		}
		return fmt.Sprintf("the manifest %s is not there", p.Digest)
	case AbsentBlob:
		return fmt.Sprintf("the blob %s of %d bytes is not there", p.Digest, p.Size)
	case WrongDigest:
		if p.Err != nil {
			return p.Err.Error()
		}
		return fmt.Sprintf("it is %s and not %s", p.Got, p.Digest)
	}
	return p.Err.Error()
}

// Unwrap returns the error of a manifest or of the registry; nil if there is none.
func (p Problem) Unwrap() error { return p.Err }

// Finding is what is known about an image.
type Finding struct {
	Wanted
	// Found is what the name stands for; empty if there is nothing.
	Found    digest.Digest
	Problems []Problem
}

// CheckOptions configure [Check]. The zero value looks for everything.
type CheckOptions struct {
	// ManifestsOnly leaves out the blobs, and reads only indexes: a registry that looks for the blobs of a manifest
	// when that is written has them.
	ManifestsOnly bool
	// Sizes asks for no blob, but reads every manifest, for the sizes of what would be checked.
	Sizes bool
	// Jobs is how many images are checked at once; 16 if it is zero.
	Jobs int
	// Done, unless nil, receives each image with what is wrong, if anything is. It is called by one goroutine at a
	// time, in any order.
	Done func(Finding)
}

// Summary counts what was checked.
type Summary struct {
	Images    int `json:"images"`
	Manifests int `json:"manifests"`
	Blobs     int `json:"blobs"`
	// Wrong is how many images have problems, and Problems how many they have.
	Wrong    int `json:"wrong"`
	Problems int `json:"problems"`
	// Bytes is the size of the blobs by repository, each counted once in a repository; nothing with ManifestsOnly.
	Bytes map[string]int64 `json:"-"`
}

// Check looks for images with everything that they refer to. A manifest is read, and a blob asked for, once in each
// repository, however many images have it. What is wrong with an image is in its [Finding]; the error is that of the
// context, or of a name that cannot be parsed. Open returns the repository with a name HOST/PATH, and is called
// concurrently. The memory is about 100 bytes for each manifest and blob.
func Check(ctx context.Context, open func(name string) (store.Reader, error), images iter.Seq[Wanted],
	o CheckOptions) (Summary, error) {
	if o.Jobs <= 0 {
		o.Jobs = 16
	}
	c := &checker{o: o, open: open, asked: map[askedKey]*asked{}, sizes: map[digest.Digest]int64{},
		summary: Summary{Bytes: map[string]int64{}}}
	err := guard.EachOf(ctx, o.Jobs, images, func(ctx context.Context, w Wanted) error {
		f, err := c.image(ctx, w)
		if err != nil {
			return err
		}
		c.done(f)
		return context.Cause(ctx)
	})
	return c.summary, err
}

// checker is one run of [Check].
type checker struct {
	o    CheckOptions
	open func(name string) (store.Reader, error)

	mu      sync.Mutex
	asked   map[askedKey]*asked
	sizes   map[digest.Digest]int64 // of the manifests that were read
	summary Summary
}

// askedKey is a manifest or blob in a repository.
type askedKey struct {
	repository string
	digest     [sha256.Size]byte
	size       int64 // of a blob
	blob       bool
}

// asked is the answer about a manifest or blob, once done is closed. The problems of a manifest are its own, of its
// blobs, and of its entries if it is an index.
type asked struct {
	done     chan struct{}
	problems []Problem
}

func (c *checker) done(f Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.summary.Images++
	if len(f.Problems) > 0 {
		c.summary.Wrong++
		c.summary.Problems += len(f.Problems)
	}
	if c.o.Done != nil {
		c.o.Done(f)
	}
}

func (c *checker) image(ctx context.Context, w Wanted) (Finding, error) {
	f := Finding{Wanted: w}
	at, err := c.open(w.Repository)
	if err != nil {
		return f, err
	}
	of := &imageCheck{checker: c, at: at, wanted: w}
	top, err := of.top(ctx)
	if ctx.Err() != nil {
		return f, context.Cause(ctx)
	}
	if err != nil {
		f.Problems = []Problem{problemOf(v1.Descriptor{Digest: w.Digest}, err)}
		return f, nil
	}
	if w.Digest != "" && top.Digest != w.Digest {
		f.Found = top.Digest
		f.Problems = append(f.Problems, Problem{Kind: WrongDigest, Digest: w.Digest, Got: top.Digest})
		top = v1.Descriptor{Digest: w.Digest} // what was wanted may be there without the tag
	}
	problems, err := of.walk(ctx, top)
	f.Problems = append(f.Problems, problems...)
	if f.Found == "" && (len(problems) == 0 || problems[0].Kind != AbsentManifest || problems[0].Digest != top.Digest) {
		f.Found = top.Digest
	}
	return f, err
}

// problemOf is the problem of a request for a manifest that failed.
func problemOf(of v1.Descriptor, err error) Problem {
	p := Problem{Kind: Failed, Digest: of.Digest, Err: redact.Error(err)}
	if of.Platform != nil {
		p.Platform = of.Platform.OS + "/" + of.Platform.Architecture
	}
	switch {
	case errors.Is(err, store.ErrDenied): // it is not known what the registry has
	case errors.Is(err, fs.ErrNotExist):
		p.Kind = AbsentManifest
	case errors.Is(err, fault.ErrIntegrity):
		p.Kind = WrongDigest
	case errors.Is(err, fault.ErrInvalid), errors.Is(err, fault.ErrLimit):
		p.Kind = Invalid
	}
	return p
}

// imageCheck checks what is below one image.
type imageCheck struct {
	*checker
	at     store.Reader
	wanted Wanted
	read   *parsed // the manifest that was read under the tag; nil if there is none
}

// top finds out what the name of the image stands for.
func (c *imageCheck) top(ctx context.Context) (v1.Descriptor, error) {
	name := c.wanted.Name
	switch {
	case c.o.ManifestsOnly:
		is, err := c.at.Head(ctx, name)
		return v1.Descriptor{Digest: is.Digest, MediaType: is.MediaType}, err
	case verify.Digest(digest.Digest(name)) == nil:
		return v1.Descriptor{Digest: digest.Digest(name)}, nil
	}
	m, err := read(ctx, c.at, name)
	if err != nil {
		return v1.Descriptor{}, err
	}
	c.read = &m
	return v1.Descriptor{Digest: m.digest}, nil
}

// claim returns the answer about a digest of a repository. The first caller has to find the answer; for others claim
// waits until it is known.
func (c *imageCheck) claim(ctx context.Context, d v1.Descriptor, blob bool) (a *asked, first bool, err error) {
	key := askedKey{repository: c.wanted.Repository, blob: blob}
	if blob {
		key.size = d.Size // another size is another question
	}
	if _, err := hex.Decode(key.digest[:], []byte(d.Digest.Encoded())); err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	a, known := c.asked[key]
	if !known {
		a = &asked{done: make(chan struct{})}
		c.asked[key] = a
		if blob {
			c.summary.Blobs++
		} else {
			c.summary.Manifests++
		}
	}
	c.mu.Unlock()
	if !known {
		return a, true, nil
	}
	select {
	case <-a.done:
		return a, false, nil
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
}

// measured adds the size of a blob.
func (c *checker) measured(repository string, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.summary.Bytes[repository] += size
}

// looked is a manifest that is looked at, with what is wrong with it and below it.
type looked struct {
	problems []Problem
	asked    *asked // the request that this answers; nil if there is none
}

func (l *looked) answer() {
	if l.asked != nil {
		l.asked.problems = l.problems
		close(l.asked.done)
	}
}

// walk checks a manifest and what it refers to. What is asked once for a repository are manifests with what is below
// them, except that of some platforms only.
func (c *imageCheck) walk(ctx context.Context, top v1.Descriptor) ([]Problem, error) {
	var open []*looked // the manifest that the walk is at, and those above it
	read := func(ctx context.Context, n *store.Node) error {
		l := &looked{}
		open = append(open, l)
		if len(c.wanted.Platforms) == 0 || n.Above != nil && !manifest.MIMETypeIsMultiImage(n.MediaType) {
			a, first, err := c.claim(ctx, n.Descriptor, false)
			if err != nil {
				return err
			}
			if !first {
				l.problems = slices.Clone(a.problems)
				return nil
			}
			l.asked = a
		}
		if err := c.look(ctx, n); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if err != nil {
			l.problems = []Problem{problemOf(n.Descriptor, err)}
		}
		return nil
	}
	visit := func(_ context.Context, n *store.Node) error {
		n.Entries, _ = store.Select(n.Entries, c.wanted.Platforms)
		return nil
	}
	var all []Problem
	leave := func(ctx context.Context, n *store.Node) error {
		l := open[len(open)-1]
		if n.Parts != nil && !c.o.ManifestsOnly {
			for _, b := range n.Parts.Blobs {
				more, err := c.blob(ctx, b)
				if err != nil {
					return err
				}
				l.problems = append(l.problems, more...)
			}
		}
		open = open[:len(open)-1]
		l.answer()
		if all = l.problems; n.Above != nil {
			above := open[len(open)-1]
			above.problems = append(append(above.problems, l.problems...), c.missized(n.Descriptor)...)
		}
		return nil
	}
	err := store.Walk(ctx, store.Node{Descriptor: top}, store.WalkOptions{Read: read, Visit: visit, Leave: leave})
	if ctx.Err() == nil && err != nil { // the image exceeds a limit of the walk
		all, err = []Problem{problemOf(top, err)}, nil
	}
	for _, l := range slices.Backward(open) { // manifests that an error has left open
		l.problems = append(l.problems, all...)
		all = l.problems
		l.answer()
	}
	return all, err
}

// look asks for a manifest, or reads it.
func (c *imageCheck) look(ctx context.Context, n *store.Node) (err error) {
	var m parsed
	switch {
	case c.read != nil && c.read.digest == n.Digest:
		m = *c.read
	case !c.o.ManifestsOnly || n.MediaType == "" || manifest.MIMETypeIsMultiImage(n.MediaType):
		if m, err = read(ctx, c.at, n.Digest.String()); err != nil {
			return err
		}
	case n.Above != nil: // the outermost was asked for
		_, err = c.at.Head(ctx, n.Digest.String())
		return err
	default:
		return nil
	}
	n.Parts = m.parts
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sizes[m.digest] = m.size
	return nil
}

// missized is the problem of an entry of an index that names a manifest with another size than it has, where it was
// read.
func (c *checker) missized(e v1.Descriptor) []Problem {
	c.mu.Lock()
	defer c.mu.Unlock()
	if size, read := c.sizes[e.Digest]; !read || size == e.Size {
		return nil
	}
	return []Problem{{Kind: Invalid, Digest: e.Digest, Err: fmt.Errorf("%w: the index names %s with %d bytes, and it has "+
		"%d", fault.ErrInvalid, e.Digest, e.Size, c.sizes[e.Digest])}}
}

// blob asks for a blob. Layers that only other servers have may be missing.
func (c *imageCheck) blob(ctx context.Context, d v1.Descriptor) ([]Problem, error) {
	a, first, err := c.claim(ctx, d, true)
	if err != nil {
		return nil, err
	}
	if first {
		defer close(a.done)
		a.problems, err = c.lookForBlob(ctx, d)
	}
	return a.problems, err
}

func (c *imageCheck) lookForBlob(ctx context.Context, d v1.Descriptor) ([]Problem, error) {
	if c.measured(c.wanted.Repository, d.Size); c.o.Sizes {
		return nil, nil
	}
	there, err := c.at.HasBlob(ctx, d)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return []Problem{{Kind: Failed, Digest: d.Digest, Size: d.Size, Err: redact.Error(err)}}, nil
	case !there && !store.IsForeign(d):
		return []Problem{{Kind: AbsentBlob, Digest: d.Digest, Size: d.Size}}, nil
	}
	return nil, nil
}

// read reads a manifest by its tag or digest.
func read(ctx context.Context, at store.Reader, name string) (parsed, error) {
	text, kind, err := at.Manifest(ctx, name)
	if err != nil {
		return parsed{}, err
	}
	d := digest.FromBytes(text)
	if want := digest.Digest(name); verify.Digest(want) == nil && d != want {
		return parsed{}, verify.Manifest(text, want)
	}
	if _, err = verify.ManifestKind(text, kind); err != nil {
		return parsed{}, fmt.Errorf("manifest %s: %w", d, err)
	}
	parts, err := store.PartsOf(text)
	if err != nil {
		return parsed{}, fmt.Errorf("manifest %s: %w", d, err)
	}
	if len(parts.Manifests) > limit.MaxIndexEntries {
		return parsed{}, fmt.Errorf("index %s: %w: %d entries", d, fault.ErrLimit, len(parts.Manifests))
	}
	return parsed{d, int64(len(text)), parts}, nil
}
