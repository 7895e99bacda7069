package configmap

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/fault"
)

// The annotations of the ConfigMap in addition to the bundle's, and the value for the encoding.
const (
	annotationSourceImage = "olm.sourceImage"
	annotationEncoding    = "olm.contentEncoding"
	encodingGzip          = "gzip+base64"
)

// DefaultLimit is the maximum number of bytes of encoded data in a ConfigMap: 1 MiB, the limit of Kubernetes.
const DefaultLimit = 1 << 20

// annotationLimit is Kubernetes' limit for the annotations of one object in bytes, keys and values together.
const annotationLimit = 262144

// ErrLimit is the class of errors about a bundle that does not fit into a ConfigMap.
var ErrLimit = fault.ErrLimit

// tooLarge is an [ErrLimit] with opm's message, which needs no prefix.
type tooLarge string

func (e tooLarge) Error() string { return string(e) }
func (e tooLarge) Unwrap() error { return ErrLimit }

// ConfigMap is the content of a ConfigMap. Without gzip the files are in Data. With gzip they are in BinaryData:
// compressed and base64-encoded, which Kubernetes' JSON encodes with base64 once more.
type ConfigMap struct {
	Data       map[string]string
	BinaryData map[string][]byte
	// Annotations are the annotations to set.
	Annotations map[string]string
	// Reset means that the bundle has an annotations.yaml: other annotations of the ConfigMap are then removed.
	Reset bool
}

// Options configure writing.
type Options struct {
	// Gzip compresses the files.
	Gzip bool
	// Limit is the maximum number of bytes of encoded data; [DefaultLimit] if zero, none if negative.
	Limit int64
	// SourceImage is the image of the bundle, which is recorded unless empty.
	SourceImage string
}

// Write reads the directories "manifests" and "metadata" of a bundle, which must both exist and be flat, and returns
// the content of its ConfigMap. Every file becomes an entry under its name, with "-" for every character that a
// ConfigMap's key cannot contain. annotations.yaml is not an entry; it gives the six annotations of a bundle, empty if
// missing.
//
// The error is an [ErrLimit] if the encoded files have more than o.Limit bytes in total.
func Write(ctx context.Context, fsys fs.FS, o Options) (*ConfigMap, error) {
	w := writer{o: o, from: map[string]string{},
		cm: &ConfigMap{Data: map[string]string{}, BinaryData: map[string][]byte{}, Annotations: map[string]string{}}}
	if o.Limit == 0 {
		w.o.Limit = DefaultLimit
	}
	for _, dir := range []string{"manifests", "metadata"} {
		entries, err := bundlefs.Entries(fsys, dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			if err := w.add(fsys, path.Join(dir, e.Name())); err != nil {
				return nil, err
			}
		}
	}
	if o.SourceImage != "" {
		w.cm.Annotations[annotationSourceImage] = o.SourceImage
	}
	if o.Gzip {
		w.cm.Annotations[annotationEncoding] = encodingGzip
	}
	return w.cm, checkAnnotations(w.cm.Annotations)
}

// writer is the state of one [Write].
type writer struct {
	o    Options
	cm   *ConfigMap
	size int64
	from map[string]string // the file of each key
}

func (w *writer) add(fsys fs.FS, name string) error {
	content, err := bundlefs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	if path.Base(name) == "annotations.yaml" {
		w.cm.Reset = true
		w.cm.Annotations, err = bundleAnnotations(content)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	key, err := keyFor(path.Base(name))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if other, taken := w.from[key]; taken {
		return fmt.Errorf("%s and %s would both be the key %q: one of them would be lost", other, name, key)
	}
	w.from[key] = name
	if w.o.Gzip {
		if content, err = encode(content); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		w.cm.BinaryData[key] = content
	} else {
		if !utf8.Valid(content) {
			return fmt.Errorf("%s: is not UTF-8 text, which only compressed data can hold", name)
		}
		w.cm.Data[key] = string(content)
	}
	if w.size += int64(len(content)); w.o.Limit > 0 && w.size > w.o.Limit {
		return tooLarge(fmt.Sprintf("%s: bundle files exceeded %d bytes limit", name, w.o.Limit))
	}
	return nil
}

// bundleAnnotations returns the six annotations of a bundle from the text of annotations.yaml.
func bundleAnnotations(text []byte) (map[string]string, error) {
	file, err := bundlefs.Annotations(text)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, key := range []string{bundle.AnnotationMediaType, bundle.AnnotationManifests, bundle.AnnotationMetadata,
		bundle.AnnotationPackage, bundle.AnnotationChannels, bundle.AnnotationDefaultChannel} {
		out[key] = file[key]
	}
	return out, nil
}

// checkAnnotations refuses annotations that Kubernetes would refuse.
func checkAnnotations(annotations map[string]string) error {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	if size > annotationLimit {
		return fmt.Errorf("the annotations have %d bytes: %w: %d", size, ErrLimit, annotationLimit)
	}
	return nil
}

// maxKey is the maximum length of a ConfigMap's key.
const maxKey = 253

// keyFor returns the key under which a file is stored.
func keyFor(name string) (string, error) {
	key := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_.", r):
			return r
		}
		return '-'
	}, name)
	switch {
	case key == "" || key == "." || strings.HasPrefix(key, ".."):
		return "", fmt.Errorf("%q cannot be the key of a ConfigMap", name)
	case len(key) > maxKey:
		return "", fmt.Errorf("%.80q... cannot be the key of a ConfigMap: longer than %d characters", name, maxKey)
	}
	return key, nil
}

// encode compresses and encodes with base64. The gzip header has neither name nor time, so the bytes depend only on the
// content.
func encode(content []byte) ([]byte, error) {
	var out bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &out)
	z := gzip.NewWriter(text)
	_, err := z.Write(content)
	if err := errors.Join(err, z.Close(), text.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Over returns the new annotations of a ConfigMap that has the given ones.
func (c *ConfigMap) Over(existing map[string]string) map[string]string {
	out := map[string]string{}
	if !c.Reset {
		maps.Copy(out, existing)
	}
	maps.Copy(out, c.Annotations)
	return out
}
