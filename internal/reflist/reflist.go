// Package reflist has the form of lists of referrers (distribution specification, "Listing Referrers"): the descriptor
// by which a list names a manifest, the tag of the list where a registry has no API for it, and its text.
package reflist

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// MaxReferrers is how many referrers of one subject are read.
const MaxReferrers = 10_000

// ErrNotList is the error of a fallback tag whose manifest is no OCI index. Readers take it for an empty list; writers
// must leave it.
var ErrNotList = errors.New("not an OCI index")

// Tag returns the fallback tag of a subject: the algorithm and the encoded digest, cut to 32 and 64 characters
// (distribution specification, "Referrers Tag Schema"). The digest must be valid.
func Tag(subject digest.Digest) string {
	algorithm, encoded := subject.Algorithm().String(), subject.Encoded()
	return other().ReplaceAllString(algorithm[:min(len(algorithm), 32)], "-") + "-" +
		other().ReplaceAllString(encoded[:min(len(encoded), 64)], "-")
}

var (
	other     = lazyregexp.New(`[^A-Za-z0-9._-]`)
	belonging = lazyregexp.New(`^sha256-[0-9a-f]{64}(\.(sig|att|sbom))?$`)
)

// Belongs tells whether a tag is derived from the digest of an image: the fallback tag, or a tag of cosign (.sig, .att,
// .sbom).
func Belongs(tag string) bool { return belonging().MatchString(tag) }

// Describe returns the descriptor of a manifest in a list of referrers, and the subject of the manifest; nil if it has
// none. The artifact type is that of the manifest, else the media type of its configuration.
func Describe(text []byte, mediaType string) (d v1.Descriptor, subject *v1.Descriptor, err error) {
	var m struct {
		MediaType    string            `json:"mediaType"`
		ArtifactType string            `json:"artifactType"`
		Config       *v1.Descriptor    `json:"config"`
		Subject      *v1.Descriptor    `json:"subject"`
		Annotations  map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return d, nil, fmt.Errorf("%w: manifest: %v", fault.ErrInvalid, err)
	}
	mediaType = cmp.Or(mediaType, m.MediaType)
	if m.ArtifactType == "" && m.Config != nil {
		m.ArtifactType = m.Config.MediaType
	}
	if m.Subject != nil {
		if err := verify.Digest(m.Subject.Digest); err != nil {
			return d, nil, fmt.Errorf("subject: %w", err)
		}
	}
	return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text)),
		ArtifactType: m.ArtifactType, Annotations: m.Annotations}, m.Subject, nil
}

// list is a list of referrers whose unknown members are kept.
type list struct {
	fields  map[string]json.RawMessage
	entries []json.RawMessage
}

// parse reads the text of a list. The error is [ErrNotList] for another kind of manifest.
func parse(text []byte) (*list, []v1.Descriptor, error) {
	l := &list{}
	var mediaType string
	var version int
	if len(text) > limit.MaxManifest {
		return nil, nil, fmt.Errorf("list of referrers: %w: %d bytes (limit %d)", fault.ErrLimit, len(text),
			limit.MaxManifest)
	}
	if json.Unmarshal(text, &l.fields) != nil || json.Unmarshal(l.fields["schemaVersion"], &version) != nil {
		return nil, nil, ErrNotList
	}
	if raw, ok := l.fields["mediaType"]; ok && json.Unmarshal(raw, &mediaType) != nil {
		return nil, nil, ErrNotList
	}
	raw, ok := l.fields["manifests"]
	if version != 2 || !ok || mediaType != "" && mediaType != v1.MediaTypeImageIndex {
		return nil, nil, ErrNotList
	}
	if err := json.Unmarshal(raw, &l.entries); err != nil {
		return nil, nil, ErrNotList
	}
	if len(l.entries) > MaxReferrers {
		return nil, nil, fmt.Errorf("list of referrers: %w: %d entries (limit %d)", fault.ErrLimit, len(l.entries),
			MaxReferrers)
	}
	found := make([]v1.Descriptor, len(l.entries))
	for i, e := range l.entries {
		if err := json.Unmarshal(e, &found[i]); err != nil {
			return nil, nil, fmt.Errorf("list of referrers: %w: manifests[%d]: %v", fault.ErrInvalid, i, err)
		}
	}
	return l, found, nil
}

// Parse returns the descriptors of a list, in their order and unchecked. The error is [ErrNotList] for another kind of
// manifest, and of the class [fault.ErrLimit] for more than [MaxReferrers].
func Parse(text []byte) ([]v1.Descriptor, error) {
	_, found, err := parse(text)
	return found, err
}

// Add returns the list old, which is nil if there is none, with a descriptor at its end. The order, and members that
// are not known here, are kept. The text is nil if the list has the digest already. The error is [ErrNotList] if old is
// another kind of manifest.
func Add(old []byte, d v1.Descriptor) ([]byte, error) {
	if old == nil {
		return json.Marshal(v1.Index{Versioned: versioned, MediaType: v1.MediaTypeImageIndex,
			Manifests: []v1.Descriptor{d}})
	}
	l, have, err := parse(old)
	if err != nil {
		return nil, err
	}
	for _, h := range have {
		if h.Digest == d.Digest {
			return nil, nil
		}
	}
	entry, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	if l.fields["manifests"], err = json.Marshal(append(l.entries, entry)); err != nil {
		return nil, err
	}
	text, err := MarshalInOrder(old, l.fields)
	if err == nil && len(text) > limit.MaxManifest {
		err = fmt.Errorf("list of referrers: %w: %d bytes (limit %d)", fault.ErrLimit, len(text), limit.MaxManifest)
	}
	return text, err
}

// ParseTag is like [Parse], for the manifest of the fallback tag of a subject. The tag may stand for the subject
// itself, as mirrors name images by their digests: that is no list, also if the image is an index.
func ParseTag(text []byte, subject digest.Digest) ([]v1.Descriptor, error) {
	if digest.FromBytes(text) == subject {
		return nil, ErrNotList
	}
	return Parse(text)
}

// AddTag is like [Add], for the manifest of the fallback tag of a subject. The error is [ErrNotList], and of the class
// [fault.ErrInvalid], if the tag stands for the subject itself, which an addition would replace.
func AddTag(old []byte, subject digest.Digest, d v1.Descriptor) ([]byte, error) {
	if old != nil && digest.FromBytes(old) == subject {
		return nil, fmt.Errorf("%w: %w: the tag %s, which would have the list, stands for the image itself",
			fault.ErrInvalid, ErrNotList, Tag(subject))
	}
	return Add(old, d)
}
