package medium

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// readIndex reads the index.json of an archive in the form of OCI.
func (r *Reader) readIndex(x *indexer) error {
	if x.special.index == nil || x.special.layout == nil {
		return fmt.Errorf("%w: %s is the last segment that is here, and it is not the last of the archive: "+
			"it has no index.json", fault.ErrIntegrity, r.segments[len(r.segments)-1].name)
	}
	text, err := r.readSpan(*x.special.layout, 4096)
	if err != nil {
		return fmt.Errorf("%s: %w", v1.ImageLayoutFile, err)
	}
	var layout v1.ImageLayout
	if err := json.Unmarshal(text, &layout); err != nil || layout.Version != v1.ImageLayoutVersion {
		return fmt.Errorf("%s: %w: unknown version of the image layout", v1.ImageLayoutFile, fault.ErrInvalid)
	}
	if x.special.index.size > maxIndexJSON {
		return fmt.Errorf("%s: %w: %d bytes (limit %d)", v1.ImageIndexFile, fault.ErrLimit, x.special.index.size,
			maxIndexJSON)
	}
	f, err := r.openSpan(*x.special.index)
	if err != nil {
		return err
	}
	if err := errors.Join(parseIndex(bufio.NewReader(f), x.addEntry), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", v1.ImageIndexFile, err)
	}
	return nil
}

// parseIndex reads an image index and calls entry for each descriptor, without holding all of them.
func parseIndex(from io.Reader, entry func(v1.Descriptor) error) error {
	dec := json.NewDecoder(from)
	invalid := func(err error) error { return fmt.Errorf("%w: not an OCI image index: %v", fault.ErrInvalid, err) }
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return invalid(err)
	}
	version, listed := 0, false
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return invalid(err)
		}
		switch name {
		case "schemaVersion":
			err = dec.Decode(&version)
		case "manifests":
			if listed {
				return invalid(errors.New("two lists of manifests"))
			}
			listed = true
			if err := entries(dec, entry); err != nil {
				return err
			}
		default:
			var skipped json.RawMessage
			err = dec.Decode(&skipped)
		}
		if err != nil {
			return invalid(err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return invalid(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return invalid(errors.New("text behind the end"))
	}
	if version != 2 {
		return fmt.Errorf("%w: schemaVersion is not 2", fault.ErrInvalid)
	}
	return nil
}

func entries(dec *json.Decoder, entry func(v1.Descriptor) error) error {
	t, err := dec.Token()
	if err != nil || t != json.Delim('[') && t != nil {
		return fmt.Errorf("%w: manifests is no list (%v)", fault.ErrInvalid, err)
	}
	if t == nil {
		return nil
	}
	for i := 0; dec.More(); i++ {
		var d v1.Descriptor
		if err := dec.Decode(&d); err != nil {
			return fmt.Errorf("%w: manifests[%d]: %v", fault.ErrInvalid, i, err)
		}
		if err := entry(d); err != nil {
			return fmt.Errorf("manifests[%d]: %w", i, err)
		}
	}
	_, err = dec.Token()
	if err != nil {
		return fmt.Errorf("%w: manifests: %v", fault.ErrInvalid, err)
	}
	return nil
}

// addEntry records an entry of index.json: PATH:TAG, or a referrer of a repository. Other entries are ignored.
func (x *indexer) addEntry(d v1.Descriptor) error {
	k, err := keyOf(d.Digest)
	if err != nil {
		return err
	}
	if b, has := x.r.find(k); d.Size < 0 || has && b.size != d.Size {
		return fmt.Errorf("%w: the size of %s is %d, and it has %d bytes", fault.ErrInvalid, d.Digest, d.Size, b.size)
	}
	if at := d.Annotations[annotationRepository]; at != "" {
		subject, err := keyOf(digest.Digest(d.Annotations[annotationSubject]))
		if err != nil {
			return fmt.Errorf("%s: %w", annotationSubject, err)
		}
		r, err := x.repository(at)
		if err != nil {
			return err
		}
		if x.r.revisions++; x.r.revisions > maxRevisions {
			return fmt.Errorf("%w: more than %d referrers", fault.ErrLimit, maxRevisions)
		}
		delete(d.Annotations, annotationRepository)
		delete(d.Annotations, annotationSubject)
		r.referrers[subject] = append(r.referrers[subject], d)
		r.described[k] = plain(d)
		return nil
	}
	at, tag, ok := strings.Cut(d.Annotations[v1.AnnotationRefName], ":")
	if !ok {
		return nil
	}
	r, err := x.repository(at)
	if err != nil {
		return err
	}
	r.described[k] = plain(d)
	return x.tag(r, tag, k)
}

// plain returns what a manifest is, without what a list says of it.
func plain(d v1.Descriptor) v1.Descriptor {
	return v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}
