package diff

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
)

// maxValue is the size in bytes up to which values are kept and shown. Of larger values only the digest is.
const maxValue = 512

// sides is a set of catalogs: old, new or both.
type sides uint8

const (
	isOld sides = 1 << iota
	isNew
)

// side is one of the catalogs, read package by package and reduced to what is compared. Repeated items get distinct
// keys.
type side struct {
	next func() (declcfg.Blob, error, bool)
	stop func()
	blob declcfg.Blob // returned by peek and not consumed

	pkg    *pkg             // the current package; nil before its first blob
	others map[blobKey]bool // of no package
	counts Counts

	images  map[string]sides // of both sides
	is      sides
	scratch []byte
}

type pkg struct {
	there        bool // has an olm.package blob
	fields       map[string]string
	properties   []property
	channels     map[string]*channel
	bundles      map[string]*bundle
	deprecations map[declcfg.Reference]string
	others       map[blobKey]bool

	channelNames, bundleNames repeated
}

type channel struct {
	heads      string
	properties []property
	entries    map[string]edge
}

type bundle struct {
	version    string
	image      string
	properties []property
	related    map[declcfg.RelatedImage]bool
}

type property struct {
	typ   string
	value value
}

// blobKey is a blob of an unknown schema, or an unknown field of a blob, with its value.
type blobKey struct {
	schema, name, field string
	value               value
}

// value is a JSON value in canonical form: its text if it is small, otherwise its digest and size.
type value string

func (v value) json() json.RawMessage {
	if v == "" {
		return nil
	}
	return json.RawMessage(v)
}

func newSide(blobs iter.Seq2[declcfg.Blob, error], images map[string]sides, is sides) *side {
	s := &side{others: map[blobKey]bool{}, images: images, is: is}
	s.next, s.stop = iter.Pull2(blobs)
	return s
}

// peek returns the package of the next blob.
func (s *side) peek() (pkg string, more bool, err error) {
	if s.blob == nil {
		if s.blob, err, more = s.next(); err != nil || !more {
			return "", false, err
		}
	}
	return s.blob.BlobPackage(), true, nil
}

// readPackage reads a package if it is next. Its error is that of the stream, or reports a value that is not JSON.
func (s *side) readPackage(name string) (*pkg, error) {
	s.pkg = nil
	for {
		next, more, err := s.peek()
		if err != nil {
			return nil, err
		}
		if !more || comparePackages(next, name) > 0 {
			return s.pkg, nil
		}
		if next != name {
			return nil, fmt.Errorf("package %q comes after package %q: the blobs are not in the order of packages",
				next, name)
		}
		blob := s.blob
		s.blob = nil
		if err := s.add(blob); err != nil {
			return nil, fmt.Errorf("%s %q: %w", blob.BlobSchema(), blob.BlobName(), err)
		}
	}
}

// errorOr reads the rest of the stream and returns its error, or else err.
func (s *side) errorOr(err error) error {
	for {
		if _, more, mine := s.peek(); mine != nil {
			return mine
		} else if !more {
			return err
		}
		s.blob = nil
	}
}

func (s *side) add(blob declcfg.Blob) error {
	switch b := blob.(type) {
	case *declcfg.Package:
		return s.addPackage(b)
	case *declcfg.Channel:
		return s.addChannel(b)
	case *declcfg.Bundle:
		return s.addBundle(b)
	case *declcfg.Deprecations:
		p := s.current()
		for _, e := range b.Entries {
			p.deprecations[e.Reference] = e.Message
		}
		return s.addFields(p, b, b.Unknown)
	default:
		text, err := blob.MarshalJSON()
		if err != nil {
			return err
		}
		v, err := s.value(text, false)
		if err != nil {
			return err
		}
		others := s.others
		if blob.BlobPackage() != "" {
			others = s.current().others
		}
		others[blobKey{schema: blob.BlobSchema(), name: blob.BlobName(), value: v}] = true
		return nil
	}
}

// current returns the current package.
func (s *side) current() *pkg {
	if s.pkg == nil {
		s.pkg = &pkg{fields: map[string]string{}, channels: map[string]*channel{}, bundles: map[string]*bundle{},
			deprecations: map[declcfg.Reference]string{}, others: map[blobKey]bool{}, channelNames: repeated{},
			bundleNames: repeated{}}
	}
	return s.pkg
}

// use records that the catalog uses an image.
func (s *side) use(image string) {
	if image != "" {
		s.images[image] |= s.is
	}
}

func (s *side) addPackage(b *declcfg.Package) (err error) {
	p := s.current()
	if !p.there {
		s.counts.Packages++
	}
	p.there = true
	p.fields["defaultChannel"], p.fields["description"] = b.DefaultChannel, b.Description
	if b.Icon != nil {
		p.fields["icon"] = fmt.Sprintf("%s sha256:%x", b.Icon.MediaType, sha256.Sum256(b.Icon.Data))
	}
	if p.properties, err = s.properties(b.Properties); err != nil {
		return err
	}
	return s.addFields(p, b, b.Unknown)
}

func (s *side) addChannel(b *declcfg.Channel) (err error) {
	p := s.current()
	s.counts.Channels++
	c := &channel{entries: make(map[string]edge, len(b.Entries))}
	names := repeated{}
	for i := range b.Entries {
		e := &b.Entries[i]
		skips := slices.Clone(e.Skips)
		slices.Sort(skips)
		c.entries[free(c.entries, names, e.Name)] = edge{Replaces: e.Replaces, Skips: slices.Compact(skips),
			SkipRange: e.SkipRange}
	}
	c.heads = strings.Join(slices.Sorted(slices.Values(b.Heads())), ",")
	if c.properties, err = s.properties(b.Properties); err != nil {
		return err
	}
	p.channels[free(p.channels, p.channelNames, b.Name)] = c
	return s.addFields(p, b, b.Unknown)
}

func (s *side) addBundle(b *declcfg.Bundle) error {
	p := s.current()
	s.counts.Bundles++
	out := &bundle{image: b.Image, related: make(map[declcfg.RelatedImage]bool, len(b.RelatedImages))}
	if property, err := b.PackageProperty(); err == nil {
		out.version = property.Version
		if property.Release != "" {
			out.version += "-" + property.Release
		}
	}
	for _, r := range b.RelatedImages {
		out.related[r] = true
		s.use(r.Image)
	}
	s.use(b.Image)
	var err error
	if out.properties, err = s.properties(b.Properties); err != nil {
		return err
	}
	p.bundles[free(p.bundles, p.bundleNames, b.Name)] = out
	return s.addFields(p, b, b.Unknown)
}

// addFields adds the fields of a blob that its schema does not define.
func (s *side) addFields(p *pkg, b declcfg.Blob, fields []declcfg.Field) error {
	for _, f := range fields {
		v, err := s.value(f.Value, false)
		if err != nil {
			return fmt.Errorf("field %q: %w", f.Name, err)
		}
		p.others[blobKey{b.BlobSchema(), b.BlobName(), f.Name, v}] = true
	}
	return nil
}

func (s *side) properties(all []declcfg.Property) ([]property, error) {
	out := make([]property, len(all))
	for i, p := range all {
		v, err := s.value(p.Value, p.Type == declcfg.PropertyBundleObject)
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", p.Type, err)
		}
		out[i] = property{p.Type, v}
	}
	return out, nil
}

// value converts a value to canonical form. A manifest is an object with one key and already canonical.
func (s *side) value(v json.RawMessage, manifest bool) (value, error) {
	if len(v) == 0 {
		return "", nil
	}
	if !manifest {
		var err error
		if s.scratch, err = canon.AppendJSON(s.scratch[:0], v, canon.Limits{}, nil); err != nil {
			return "", err
		}
		v = s.scratch
	}
	if len(v) > maxValue {
		return value(fmt.Sprintf(`{"digest":"sha256:%x","size":%d}`, sha256.Sum256(v), len(v))), nil
	}
	return value(strings.TrimSuffix(string(v), "\n")), nil
}

// repeated has the last number used for each repeated name.
type repeated map[string]int

// free returns an unused key for a name: the name itself, or the name with a number if the catalog repeats it.
func free[V any](m map[string]V, r repeated, name string) string {
	key := name
	for n := max(2, r[name]+1); ; n++ {
		if _, taken := m[key]; !taken {
			return key
		}
		key = fmt.Sprintf("%s (%d)", name, n)
		r[name] = n
	}
}
