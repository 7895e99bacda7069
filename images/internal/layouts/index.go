package layouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// layoutIndex is the index.json of an OCI image layout. Unknown fields are preserved.
type layoutIndex struct {
	Fields  map[string]json.RawMessage
	Entries []indexEntry
}

// indexEntry is the descriptor of an image, and its text.
type indexEntry struct {
	v1.Descriptor
	Text json.RawMessage
}

// ReadIndex reads the index.json of a layout; nil if there is none.
func ReadIndex(dir string) (*layoutIndex, error) {
	path := filepath.Join(dir, indexFile)
	content, err := regularfile.Read(path, limit.MaxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	x := &layoutIndex{}
	if err := x.parse(content); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// find returns the image with a tag, or with "@" and its number in the index. Without a name there must be only one
// image: entries for which refers returns true (signatures, attestations), and those whose tag is derived from a
// digest, do not count. Errors list the tags, and the numbers of images without a tag.
func (x *layoutIndex) find(dir, tag string, refers func(v1.Descriptor) bool) (v1.Descriptor, error) {
	if at, numbered := strings.CutPrefix(tag, "@"); numbered {
		i, err := strconv.Atoi(at)
		if err != nil || i < 0 || i >= len(x.Entries) {
			return v1.Descriptor{}, fmt.Errorf("%w: %s has no image %.40q: it holds %d images", fault.ErrInvalid, dir,
				tag, len(x.Entries))
		}
		return x.Entries[i].Descriptor, nil
	}
	if tag == "" {
		return x.findOnly(dir, refers)
	}
	var tags []string
	for _, d := range x.Entries {
		name, ok := d.Annotations[v1.AnnotationRefName]
		if ok && name == tag {
			return d.Descriptor, nil
		}
		if ok && len(tags) < maxTagsShown {
			tags = append(tags, fmt.Sprintf("%.100q", name))
		}
	}
	have := "it has no tagged image"
	if len(tags) > 0 {
		have = "its tags are " + strings.Join(tags, ", ")
	}
	return v1.Descriptor{}, fmt.Errorf("%w: %s has no image with the tag %q: %s", fault.ErrInvalid, dir, tag, have)
}

// findOnly returns the only image of the layout.
func (x *layoutIndex) findOnly(dir string, refers func(v1.Descriptor) bool) (v1.Descriptor, error) {
	if len(x.Entries) == 1 {
		return x.Entries[0].Descriptor, nil
	}
	var found []v1.Descriptor
	var names []string
	images := 0
	for i, d := range x.Entries {
		if reflist.Belongs(d.Annotations[v1.AnnotationRefName]) || refers(d.Descriptor) {
			continue
		}
		images++
		same := func(other v1.Descriptor) bool { return other.Digest == d.Digest }
		if len(found) < 2 && !slices.ContainsFunc(found, same) {
			found = append(found, d.Descriptor)
		}
		if len(names) == maxTagsShown {
			continue
		}
		if name, ok := d.Annotations[v1.AnnotationRefName]; ok {
			names = append(names, fmt.Sprintf("%.100q", name))
		} else {
			names = append(names, fmt.Sprintf("@%d", i))
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if images == 0 {
		return v1.Descriptor{}, fmt.Errorf("%w: %s holds no image", fault.ErrInvalid, dir)
	}
	if images > len(names) {
		names = append(names, "...")
	}
	const text = "%w: %s holds %d images, and none is chosen by a tag, or by @ and its number if it has none: %s"
	return v1.Descriptor{}, fmt.Errorf(text, fault.ErrInvalid, dir, images, strings.Join(names, ", "))
}

// maxEntries is how many entries the index.json of a layout may have: images, and what is attached to them.
const maxEntries = 10_000

// maxTagsShown is how many images of a layout an error lists.
const maxTagsShown = 10

func (x *layoutIndex) parse(content []byte) error {
	if err := json.Unmarshal(content, &x.Fields); err != nil {
		return fmt.Errorf("%w: not an OCI image index: %v", fault.ErrInvalid, err)
	}
	var version int
	if err := json.Unmarshal(x.Fields["schemaVersion"], &version); err != nil || version != 2 {
		return fmt.Errorf("%w: schemaVersion is not 2", fault.ErrInvalid)
	}
	var entries []json.RawMessage
	if raw, ok := x.Fields["manifests"]; ok {
		if err := json.Unmarshal(raw, &entries); err != nil {
			return fmt.Errorf("%w: manifests: %v", fault.ErrInvalid, err)
		}
	}
	if len(entries) > maxEntries {
		return fmt.Errorf("%w: %d entries (limit %d)", fault.ErrLimit, len(entries), maxEntries)
	}
	for i, text := range entries {
		e := indexEntry{Text: text}
		if err := json.Unmarshal(text, &e.Descriptor); err != nil {
			return fmt.Errorf("%w: manifests[%d]: %v", fault.ErrInvalid, i, err)
		}
		x.Entries = append(x.Entries, e)
	}
	return nil
}

// merge returns the index with the entries of another one added. An added entry replaces the entry with the same tag.
// An entry without a tag replaces only the same image, since others may be signatures or attestations.
func (x *layoutIndex) merge(added *layoutIndex) ([]byte, error) {
	if x == nil {
		x = &layoutIndex{Fields: added.Fields}
	}
	var out []json.RawMessage
	placed := make([]bool, len(added.Entries))
	for _, old := range x.Entries {
		keep := true
		for j, d := range added.Entries {
			tag := d.Annotations[v1.AnnotationRefName]
			if tag != old.Annotations[v1.AnnotationRefName] || tag == "" && d.Digest != old.Digest {
				continue
			}
			keep = false
			if !placed[j] {
				placed[j] = true
				out = append(out, d.Text)
			}
		}
		if keep {
			out = append(out, old.Text)
		}
	}
	for j, d := range added.Entries {
		if !placed[j] {
			out = append(out, d.Text)
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	fields := maps.Clone(x.Fields)
	fields["manifests"] = raw
	text, err := json.Marshal(fields)
	if err == nil && (len(out) > maxEntries || len(text) > limit.MaxManifest) {
		err = fmt.Errorf("index.json: %w: %d entries of %d bytes (limits %d and %d): take another layout", fault.ErrLimit,
			len(out), len(text), maxEntries, limit.MaxManifest)
	}
	return text, err
}
