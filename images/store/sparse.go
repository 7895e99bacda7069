package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
)

// Sparse decides how an index is written if some of its images are not copied.
type Sparse string

// The ways to write such an index.
const (
	// SparseKeep, the default, writes the index as it is. Registries that look for its images refuse it.
	SparseKeep Sparse = "keep"
	// SparseRefuse returns an error before anything is copied.
	SparseRefuse Sparse = "error"
	// SparseTrim writes a new index that lists only the images that are copied, under the same tag, so that the tag
	// gets another digest. An index that is named by its digest is written as it is.
	SparseTrim Sparse = "trim"
)

// SparseError is the error of an index that cannot be written without the images that are left out.
type SparseError struct {
	// Place is the name of the repository; empty if it has none.
	Place string
	// Absent are the entries that are left out.
	Absent []v1.Descriptor
	// ByDigest tells that the index cannot be replaced, since its digest is named.
	ByDigest bool
	// Err is the answer of the registry; nil if it was not asked.
	Err error
}

func (e *SparseError) Error() string {
	var platforms []v1.Platform
	for _, d := range e.Absent {
		if d.Platform != nil {
			platforms = append(platforms, *d.Platform)
		}
	}
	text := fmt.Sprintf("%s takes no index whose images are not all there, and those for %s are left out", e.Place,
		platformTexts(platforms))
	if e.Place == "" {
		text = fmt.Sprintf("an index without its images for %s", platformTexts(platforms))
	}
	if e.ByDigest {
		text += "; others name it by its digest, so that no smaller index can stand for it"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *SparseError) Unwrap() error { return e.Err }

// ErrorClass returns [fault.Network] if the registry has refused the index, and [fault.Input] if the options do.
func (e *SparseError) ErrorClass() fault.Class {
	if e.Err != nil {
		return fault.Network
	}
	return fault.Input
}

func (c *imageCopy) sparseError(absent []v1.Descriptor, err error) error {
	return &SparseError{Place: c.to.Name(), Absent: absent, ByDigest: c.o.ByDigest, Err: err}
}

// checkSparse decides how an index is written if some of its images are not copied, as [CopyOptions].Sparse says: not
// at all, without their entries, or as it is.
func (c *imageCopy) checkSparse(ctx context.Context, root *node) error {
	switch {
	case len(c.account.LeftOut) == 0:
		return nil
	case c.o.Sparse == SparseRefuse:
		return c.sparseError(c.account.LeftOut, nil)
	case c.o.Sparse == SparseTrim && !c.o.ByDigest:
		if err := c.trim(ctx, root); err != nil {
			return err
		}
		c.account.Trimmed = true
	default:
		if err := c.to.Can().NoSparse; err != nil && !root.present {
			return c.sparseError(c.account.LeftOut, err)
		}
	}
	return nil
}

// trim replaces an index, and those in it, by one without the entries that are left out. All other members stay, in
// their order.
func (c *imageCopy) trim(ctx context.Context, n *node) error {
	if !n.isIndex() || n.whole != "" {
		return nil
	}
	changed := map[digest.Digest]*node{}
	for _, child := range n.children {
		if err := c.trim(ctx, child); err != nil {
			return err
		}
		if child.whole != "" {
			changed[child.whole] = child
		}
	}
	if len(n.leftOut) == 0 && len(changed) == 0 {
		return nil
	}
	left := map[digest.Digest]bool{}
	for _, d := range n.leftOut {
		left[d.Digest] = true
	}
	n.leftOut, n.whole = nil, n.Digest
	text, err := trimmed(n.text, left, changed)
	if err != nil {
		return fmt.Errorf("index %s: %w: %w", n.Digest, fault.ErrInvalid, err)
	}
	n.text, n.Digest, n.Size = text, digest.FromBytes(text), int64(len(text))
	n.present, n.written = false, false
	return c.ask(ctx, n, false)
}

// trimmed returns the text of an index without some entries, and with others replaced.
func trimmed(text []byte, left map[digest.Digest]bool, changed map[digest.Digest]*node) ([]byte, error) {
	var fields map[string]json.RawMessage
	var entries []json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(fields["manifests"], &entries); err != nil {
		return nil, err
	}
	kept := []json.RawMessage{}
	for _, raw := range entries {
		var d v1.Descriptor
		if err := json.Unmarshal(raw, &d); err != nil {
			return nil, err
		}
		if left[d.Digest] {
			continue
		}
		if by, ok := changed[d.Digest]; ok {
			var members map[string]json.RawMessage
			if err := json.Unmarshal(raw, &members); err != nil {
				return nil, err
			}
			members["digest"] = json.RawMessage(fmt.Sprintf("%q", by.Digest))
			members["size"] = json.RawMessage(fmt.Sprint(by.Size))
			var err error
			if raw, err = reflist.MarshalInOrder(raw, members); err != nil {
				return nil, err
			}
		}
		kept = append(kept, raw)
	}
	list, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	fields["manifests"] = list
	return reflist.MarshalInOrder(text, fields)
}
