package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/verify"
)

// node is a manifest or index that is copied.
type node struct {
	v1.Descriptor
	text     []byte // empty for a manifest that the destination has, unless it refers
	refers   bool   // it has a subject, as far as the text is known
	parts    *Parts
	children []*node         // the entries that are copied, in their order
	leftOut  []v1.Descriptor // the other entries
	present  bool            // the destination has it
	written  bool            // written, or not needed
	withTag  bool            // the top manifest is written with its first tag, after all else
	whole    digest.Digest   // of the index at the source, if it was replaced by a smaller one
}

func (n *node) isIndex() bool { return manifest.MIMETypeIsMultiImage(n.MediaType) }

// list lists the manifest and what is copied below it, each once and an index before its entries.
func (n *node) list() []*node {
	all := []*node{}
	seen := map[*node]bool{}
	var add func(n *node)
	add = func(n *node) {
		if !seen[n] {
			seen[n] = true
			all = append(all, n)
			for _, child := range n.children {
				add(child)
			}
		}
	}
	add(n)
	return all
}

// complete tells whether the destination had it with everything that is wanted of it.
func (n *node) complete() bool {
	return !slices.ContainsFunc(n.list(), func(c *node) bool { return !c.present })
}

// plan finds out what is to be copied of an image: it asks the destination for each manifest, and reads what that does
// not have. A manifest that is in several indexes has one node.
func (c *imageCopy) plan(ctx context.Context, top v1.Descriptor) (*node, error) {
	read := func(ctx context.Context, at *Node) error {
		n := &node{Descriptor: at.Descriptor}
		c.mu.Lock()
		c.nodes[n.Digest] = n
		withText := at.Above != nil && !c.nodes[at.Above.Digest].present && !n.isIndex()
		c.mu.Unlock()
		if err := c.ask(ctx, n, withText); err != nil {
			return err
		}
		if n.present && n.MediaType != "" && !n.isIndex() && !c.o.Whole {
			return nil
		}
		err := c.read(ctx, n)
		at.Parts = n.parts
		return err
	}
	visit := func(_ context.Context, at *Node) error {
		at.Entries, _ = Select(at.Entries, c.o.Platforms)
		return nil
	}
	leave := func(_ context.Context, at *Node) error {
		if at.Parts == nil {
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		n := c.nodes[at.Digest]
		for _, e := range Once(at.Parts.Manifests) {
			child, wanted := c.nodes[e.Digest], hasDigest(at.Entries, e.Digest)
			if wanted && child.text != nil && e.Size != child.Size {
				// Of a manifest that the destination has the size may not be known.
				return fmt.Errorf("%w: the index names %s with %d bytes, and it has %d", fault.ErrInvalid, e.Digest,
					e.Size, child.Size)
			}
			// A nested index without wanted entries is left out as a whole.
			if !wanted || child.isIndex() && len(child.children) == 0 && len(child.leftOut) > 0 {
				n.leftOut = append(n.leftOut, e)
			} else {
				n.children = append(n.children, child)
			}
		}
		return nil
	}
	err := Walk(ctx, Node{Descriptor: top},
		WalkOptions{Read: read, Visit: visit, Leave: leave, AtOnce: manifestsAtOnce})
	return c.nodes[top.Digest], err
}

// referenceDigest is the annotation of an entry that describes another entry, as attestations of buildkit do.
const referenceDigest = "vnd.docker.reference.digest"

// Select divides the entries of indexes into those that are wanted for the platforms, as [CopyOptions] says, and the
// others; without platforms all are wanted. Each digest is returned once: if several entries have it, it is wanted if
// one of them is.
func Select(entries []v1.Descriptor, platforms []v1.Platform) (wanted, others []v1.Descriptor) {
	chosen := make([]bool, len(entries))
	kept := map[digest.Digest]bool{}
	for i, e := range entries {
		_, describes := e.Annotations[referenceDigest]
		chosen[i] = len(platforms) == 0 || !describes && (e.Platform == nil || platform.Matches(*e.Platform, platforms...) ||
			manifest.MIMETypeIsMultiImage(e.MediaType))
		kept[e.Digest] = kept[e.Digest] || chosen[i]
	}
	for i, e := range entries {
		of, describes := e.Annotations[referenceDigest]
		if chosen[i] || describes && kept[digest.Digest(of)] {
			wanted = append(wanted, e)
		} else {
			others = append(others, e)
		}
	}
	wanted = Once(wanted)
	return wanted, slices.DeleteFunc(Once(others), func(e v1.Descriptor) bool { return hasDigest(wanted, e.Digest) })
}

func hasDigest(all []v1.Descriptor, d digest.Digest) bool {
	return slices.ContainsFunc(all, func(e v1.Descriptor) bool { return e.Digest == d })
}

// ask asks the destination for a manifest, or for its text, which tells whether it has a subject: see manifests.
func (c *imageCopy) ask(ctx context.Context, n *node, withText bool) error {
	if c.o.Absent || !c.trust || !c.to.Can().Complete {
		return nil
	}
	var is v1.Descriptor
	var text []byte
	var err error
	if !withText {
		is, err = c.to.Head(ctx, n.Digest.String())
	} else if text, is.MediaType, err = c.to.Manifest(ctx, n.Digest.String()); err == nil {
		is.Digest, is.Size = digest.FromBytes(text), int64(len(text))
	} else if errors.Is(err, ErrDenied) || errors.Is(err, fault.ErrIntegrity) {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNoManifest) {
		return nil // if the target has other content there, writing or reading back finds out
	}
	if err != nil {
		return err
	}
	if is.Digest != n.Digest {
		return nil
	}
	if parts, err := PartsOf(text); withText && err == nil && parts.Subject != nil {
		n.text, n.refers = text, true
	}
	n.present, n.written = true, true
	// What the entry says is compared with the text when that is read.
	n.MediaType = cmp.Or(n.MediaType, is.MediaType)
	n.Size = is.Size
	return nil
}

func (c *imageCopy) read(ctx context.Context, n *node) error {
	text, mediaType, err := c.from.Manifest(ctx, n.Digest.String())
	if err != nil {
		return &SourceError{Err: err}
	}
	if err := verify.Manifest(text, n.Digest); err != nil {
		return &SourceError{Err: err}
	}
	if err := c.budget.TakeManifest(len(text)); err != nil {
		return err
	}
	kind, err := verify.ManifestKind(text, mediaType)
	if err != nil {
		return fmt.Errorf("manifest %s: %w", n.Digest, err)
	}
	if n.parts, err = PartsOf(text); err != nil {
		return fmt.Errorf("manifest %s: %w", n.Digest, err)
	}
	n.text, n.MediaType, n.Size, n.refers = text, kind, int64(len(text)), n.parts.Subject != nil
	return nil
}

// collect adds an image to the account.
func (c *imageCopy) collect(root *node) {
	left := []v1.Descriptor{}
	copied := map[digest.Digest]bool{}
	for _, n := range root.list() {
		copied[n.Digest] = true
		c.account.Manifests++
		c.account.Bytes += n.Size
		left = append(left, n.leftOut...)
		if n.parts == nil {
			continue
		}
		for _, e := range n.parts.Manifests {
			if e.Platform == nil {
				continue
			}
			c.matched = c.matched || platform.Matches(*e.Platform, c.o.Platforms...)
			c.platforms = platform.AppendNew(c.platforms, *e.Platform)
		}
	}
	c.account.LeftOut = slices.DeleteFunc(Once(left), func(d v1.Descriptor) bool { return copied[d.Digest] })
}

// PlatformError is the error of an index that has none of the platforms.
type PlatformError struct {
	// Wanted are the requested platforms, and There those of the index.
	Wanted, There []v1.Platform
}

func (e *PlatformError) Error() string {
	return fmt.Sprintf("%v: the index has no image for %s: it has those for %s", fault.ErrInvalid,
		platformTexts(e.Wanted), platformTexts(e.There))
}

func (e *PlatformError) Unwrap() error { return fault.ErrInvalid }

// platformTexts lists platforms; the texts are from outside.
func platformTexts(all []v1.Platform) string {
	const most = 40
	texts := []string{}
	for _, p := range all[:min(len(all), most)] {
		texts = append(texts, fmt.Sprintf("%.60q", platform.Name(p)))
	}
	if len(all) > most {
		texts = append(texts, "...")
	}
	if len(texts) == 0 {
		return "no platform"
	}
	return strings.ReplaceAll(strings.Join(texts, ", "), `"`, "")
}
