package images

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
)

// candidate is a name whose index or manifest has been read. It is not exported, and what callers get is made of it: by
// [candidate.accept] and [candidate.choose] when the policy has accepted it, or as an [Unverified] for those who look at what
// is attached to it.
type candidate struct {
	reader store.Reader
	place  *transport.Place
	given  string
	asked  transport.Source
	// top is the descriptor of the index or manifest, text its text, and digest what the name stands for: that of top,
	// but for an image of a store.
	top        v1.Descriptor
	text       []byte
	digest     digest.Digest
	repository string

	client    *Client // nil if it was opened by its place alone
	noted     func(v1.Manifest)
	deadline  time.Time
	admission *admission // nil accepts everything
	verdict   verdict    // about top
}

// openTop reads the index or manifest of a place. The place is closed after an error.
func openTop(ctx context.Context, p *transport.Place) (*candidate, error) {
	o := &candidate{reader: p.Reader, place: p, top: p.Top}
	if err := o.readTop(ctx); err != nil {
		return nil, errors.Join(err, closePlace(p))
	}
	o.digest = cmp.Or(p.Digest, o.top.Digest)
	return o, nil
}

func (o *candidate) readTop(ctx context.Context) (err error) {
	if err := verify.Digest(o.top.Digest); err != nil {
		return err
	}
	var kind string
	if o.text, kind, err = o.reader.Manifest(ctx, o.top.Digest.String()); err != nil {
		return ofManifest(err)
	}
	if err := checkManifest(o.text, o.top); err != nil {
		return err
	}
	o.top.MediaType, err = verify.ManifestKind(o.text, kind)
	return err
}

// ask asks the policy of the client about the index or manifest.
func (o *candidate) ask(ctx context.Context) (err error) {
	if o.client != nil {
		o.admission = o.client.admission(o.asked, o.given, o.place)
	}
	o.verdict, err = o.admission.admit(ctx, verdict{}, o.text, o.top.MediaType)
	return err
}

// accept returns the image if the policy accepts it: itself, or of an index every entry that is selected for the
// platforms ([store.Select]; none are all), whatever it is for, since others may choose an entry that this package does
// not. An index that is not accepted itself needs an entry that is: of one without entries nothing says who made it. A
// sparse index may lack entries, which are not judged.
func (o *candidate) accept(ctx context.Context, platforms []v1.Platform, sparse bool) (*Source, error) {
	if err := o.ask(ctx); err != nil {
		return nil, err
	}
	s := &Source{Reader: o.reader, Given: o.given, Top: o.top, Digest: o.digest, OpenedAt: o.place.OpenedAt,
		Repository: o.repository, opened: o}
	if !o.verdict.accepted {
		var err error
		if s.texts, err = o.judgeEntries(ctx, platforms, sparse); err != nil {
			return nil, err
		}
	}
	return s, o.record()
}

// keptTexts bounds the manifests, in bytes, that were read to be judged and are not read again.
const keptTexts = 16 << 20

// judgeEntries asks the policy about what is in an index that it does not accept itself, and returns what it has read.
func (o *candidate) judgeEntries(ctx context.Context, platforms []v1.Platform, sparse bool) (map[digest.Digest]*store.Node, error) {
	texts, kept := map[digest.Digest]*store.Node{}, 0
	verdicts, vouched := map[*store.Node]verdict{}, map[digest.Digest]bool{}
	err := store.Walk(ctx, store.Node{Descriptor: o.top, Text: o.text, Kind: o.top.MediaType}, store.WalkOptions{
		// An image beside an index that covers it is named by one that does not.
		AtOnce: judgedAtOnce, Repeats: true,
		Read: func(ctx context.Context, n *store.Node) error {
			err := o.readEntry(ctx, n)
			if sparse && errors.Is(err, fs.ErrNotExist) {
				n.Text, err = nil, nil
			}
			return err
		},
		Visit: func(ctx context.Context, n *store.Node) (err error) {
			verdicts[n] = o.verdict
			if n.Text == nil {
				return nil // it is not there
			}
			if n.Above != nil {
				if verdicts[n], err = o.admission.admit(ctx, verdicts[n.Above], n.Text, n.Kind); err != nil {
					return err
				}
				if kept += len(n.Text); kept <= keptTexts {
					texts[n.Digest] = &store.Node{Text: n.Text, Kind: n.Kind}
				}
			}
			vouched[n.Digest] = verdicts[n].accepted
			n.Entries, _ = store.Select(n.Entries, platforms)
			return nil
		},
		Leave: func(_ context.Context, n *store.Node) error {
			for _, e := range n.Entries {
				vouched[n.Digest] = vouched[n.Digest] || vouched[e.Digest]
			}
			switch {
			case n.Text == nil || vouched[n.Digest]:
				return nil
			case n.Above != nil && len(n.Entries) == 0 && len(n.Parts.Manifests) > 0:
				return nil // none of it is selected, and it is left out as a whole
			}
			return nothingVouches(n, verdicts[n])
		},
	})
	return texts, err
}

// judgedAtOnce is how many entries of an index are read concurrently to be judged.
const judgedAtOnce = 4

// Chooser chooses the image of an index. It sees what the index says of its entries, and nothing of them.
type Chooser func(entries []v1.Descriptor) (v1.Descriptor, error)

// image opens the image for a platform.
func (o *candidate) image(ctx context.Context, p v1.Platform) (*Image, error) {
	orAny := false
	if o.client != nil && p.OS == "" && p.Architecture == "" {
		p, orAny = o.client.o.Platform, o.client.o.AnyPlatform
	}
	p = platform.Complete(p)
	return o.choose(ctx, func(entries []v1.Descriptor) (v1.Descriptor, error) {
		return store.Choose(entries, p, orAny)
	})
}

// choose opens an image if the policy accepts it, or an index that it is in.
func (o *candidate) choose(ctx context.Context, choose Chooser) (_ *Image, err error) {
	defer func() { err = o.about(err) }()
	ctx, cancel := o.withTimeout(ctx)
	defer cancel()
	if err := o.ask(ctx); err != nil {
		return nil, err
	}
	img, admitted := o.newImage(), o.verdict
	var text []byte
	// What is below a manifest is chosen, and not read of it.
	unread := &store.Parts{}
	top := store.Node{Descriptor: o.top, Text: o.text, Kind: o.top.MediaType, Parts: unread}
	err = store.Walk(ctx, top, store.WalkOptions{
		Read: func(ctx context.Context, n *store.Node) error {
			n.Parts = unread
			return o.readEntry(ctx, n)
		},
		Visit: func(ctx context.Context, n *store.Node) (err error) {
			if n.Above != nil {
				if admitted, err = o.admission.admit(ctx, admitted, n.Text, n.Kind); err != nil {
					return err
				}
				img.Digest = n.Digest
			}
			if img.MediaType, text = n.Kind, n.Text; !manifest.MIMETypeIsMultiImage(n.Kind) {
				return nil
			}
			entries, err := store.IndexEntries(n.Text)
			if err != nil {
				return err
			}
			n.Entries = make([]v1.Descriptor, 1)
			n.Entries[0], err = choose(entries)
			return err
		},
	})
	if err == nil {
		err = img.readManifest(ctx, text)
	}
	if err == nil {
		err = o.record()
	}
	if err != nil {
		return nil, err
	}
	return img, nil
}

// newImage returns an image of which nothing has been read.
func (o *candidate) newImage() *Image {
	return &Image{Name: o.given, Source: o.place.OpenedAt, Top: o.digest, Digest: o.digest, Repository: o.repository,
		opened: o}
}

// readEntry reads the manifest of an entry of an index, and does not ask the policy.
func (o *candidate) readEntry(ctx context.Context, n *store.Node) (err error) {
	if n.Text, n.Kind, err = o.reader.Manifest(ctx, n.Digest.String()); err != nil {
		return ofManifest(err)
	}
	if err := checkManifest(n.Text, n.Descriptor); err != nil {
		return err
	}
	o.showManifest(n.Text)
	n.Kind, err = verify.ManifestKind(n.Text, n.Kind)
	return err
}

// record notes what the name was opened by.
func (o *candidate) record() error {
	if o.client == nil {
		return nil
	}
	return o.client.record(o.given, o.digest)
}

// withTimeout returns the context with what is left of the client's Timeout.
func (o *candidate) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.client == nil {
		return ctx, func() {}
	}
	return withDeadline(ctx, o.deadline, o.client.o.Timeout)
}

// about adds the name to an error.
func (o *candidate) about(err error) error {
	if o.given == "" {
		return redact.Error(err)
	}
	return pullError(o.given, err)
}

// showManifest passes a manifest that was read to the client's checks, which warn of unusual ones.
func (o *candidate) showManifest(text []byte) {
	var m v1.Manifest
	if o.noted != nil && json.Unmarshal(text, &m) == nil { // an error is reported where more of it is read
		o.noted(m)
	}
}

func (o *candidate) inRegistry() bool {
	return o.asked.Transport == transport.Docker && o.repository != ""
}

func (o *candidate) named() string {
	if named := o.asked.Named(); named != nil {
		return named.String()
	}
	return ""
}
