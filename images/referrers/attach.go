package referrers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Artifact is one document that is attached to an image.
type Artifact struct {
	// Type is the artifact type of the manifest.
	Type string
	// MediaType is that of the document; Type if empty.
	MediaType string
	// Content is the document; or Layers, whose blobs the caller has written, if it is not kept in memory.
	Content []byte
	Layers  []v1.Descriptor
	// Annotations are those of the manifest, beside org.opencontainers.image.created.
	Annotations map[string]string
	// Created is the time in the annotation; 1970 if zero. It is no time of the clock, so that the same document gives
	// the same manifest.
	Created time.Time
}

// CheckTaken returns an error of the class [store.ErrNoReferrers] if a place would not list referrers of all subjects. It
// writes nothing.
func CheckTaken(ctx context.Context, w store.Writer, subjects ...v1.Descriptor) error {
	takes := w.Can().TakesReferrers
	if takes == nil {
		return nil
	}
	for _, d := range subjects {
		if err := takes(ctx, d.Digest); err != nil {
			return err
		}
	}
	return nil
}

// Attach writes a document as a referrer of a subject and returns the descriptor of its manifest: an image manifest
// with the empty configuration (image specification, "Guidelines for Artifact Usage"). Nothing is written twice.
func Attach(ctx context.Context, w store.Writer, subject v1.Descriptor, a Artifact) (v1.Descriptor, error) {
	d, text, layers, err := a.manifest(subject)
	if err != nil {
		return v1.Descriptor{}, err
	}
	if there, err := isAttached(ctx, w, subject.Digest, d.Digest); there || err != nil {
		return d, err
	}
	g, gctx := guard.WithContext(ctx)
	g.Go(func() error { return store.WriteBytes(gctx, w, emptyConfig(), []byte("{}")) })
	if a.Layers == nil {
		g.Go(func() error { return store.WriteBytes(gctx, w, layers[0], a.Content) })
	}
	if err := g.Wait(); err != nil {
		return d, err
	}
	return d, w.WriteManifest(ctx, text, v1.MediaTypeImageManifest, store.WriteOptions{})
}

// Descriptor returns the descriptor of the manifest that [Attach] writes.
func (a Artifact) Descriptor(subject v1.Descriptor) (v1.Descriptor, error) {
	d, _, _, err := a.manifest(subject)
	return d, err
}

func emptyConfig() v1.Descriptor {
	empty := v1.DescriptorEmptyJSON
	empty.Data = nil
	return empty
}

func (a Artifact) manifest(subject v1.Descriptor) (d v1.Descriptor, text []byte, layers []v1.Descriptor, err error) {
	created := a.Created
	if created.IsZero() {
		created = time.Unix(0, 0)
	}
	annotations := map[string]string{v1.AnnotationCreated: created.UTC().Format(time.RFC3339)}
	maps.Copy(annotations, a.Annotations)
	if layers = a.Layers; layers == nil {
		layers = []v1.Descriptor{{MediaType: cmp.Or(a.MediaType, a.Type), Digest: digest.FromBytes(a.Content),
			Size: int64(len(a.Content))}}
	}
	to := v1.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	text, err = json.Marshal(v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest, ArtifactType: a.Type, Config: emptyConfig(), Layers: layers, Subject: &to,
		Annotations: annotations})
	return v1.Descriptor{MediaType: v1.MediaTypeImageManifest, ArtifactType: a.Type, Digest: digest.FromBytes(text),
		Size: int64(len(text)), Annotations: annotations}, text, layers, err
}

// isAttached tells whether a manifest is there and listed for a subject.
func isAttached(ctx context.Context, r store.Reader, subject, d digest.Digest) (bool, error) {
	_, _, err := r.Manifest(ctx, d.String())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	listed, err := r.Referrers(ctx, subject, nil)
	return slices.ContainsFunc(listed, func(l v1.Descriptor) bool { return l.Digest == d }), err
}

// AppendLayers adds layers to the image manifest of a tag, or makes it, and writes their contents, of which there are
// none if they are written already. Layers that are there stay, and an equal one is not added again. So the signatures
// of an image are kept by all tools.
func AppendLayers(ctx context.Context, w store.Writer, tag string, layers []v1.Descriptor, contents ...[]byte) error {
	if len(layers) == 0 {
		return nil
	}
	// The change may be made again when the caller's context has ended.
	lasting := context.WithoutCancel(ctx)
	return w.UpdateTag(ctx, tag, func(old []byte) ([]byte, string, error) {
		return withLayers(lasting, w, tag, old, layers, contents...)
	})
}

// withLayers returns the manifest old of a tag, which is nil if there is none, with those layers that it does not have,
// and writes its configuration and the contents of the layers, as for [AppendLayers]. The text is nil if it has all.
// Errors about the manifest are of the class [fault.ErrInvalid].
func withLayers(ctx context.Context, w store.Writer, tag string, old []byte, layers []v1.Descriptor,
	contents ...[]byte) ([]byte, string, error) {
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest}
	if old != nil {
		if err := json.Unmarshal(old, &m); err != nil {
			return nil, "", fmt.Errorf("the manifest of %s: %w: %w", tag, fault.ErrInvalid, err)
		}
		// An index would lose its entries.
		if _, err := verify.ManifestKind(old, v1.MediaTypeImageManifest); err != nil {
			return nil, "", fmt.Errorf("the manifest of %s, to which nothing is added: %w", tag, err)
		}
	}
	changed := false
	for _, l := range layers {
		if !hasLayer(m.Layers, l) {
			m.Layers, changed = append(m.Layers, l), true
		}
	}
	if !changed {
		return nil, "", nil
	}
	if len(m.Layers) > sigblob.MaxCount {
		return nil, "", fmt.Errorf("the manifest of %s: %w: more than %d layers, which verifiers refuse", tag,
			fault.ErrLimit, sigblob.MaxCount)
	}
	config, err := layersConfig(m.Layers)
	if err != nil {
		return nil, "", err
	}
	m.Config = v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: digest.FromBytes(config),
		Size: int64(len(config))}
	blobs := append([]v1.Descriptor{m.Config}, layers...)
	contents = append([][]byte{config}, contents...)
	err = guard.Each(ctx, blobsAtOnce, contents, func(ctx context.Context, i int, content []byte) error {
		return store.WriteBytes(ctx, w, blobs[i], content)
	})
	if err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(m)
	return text, v1.MediaTypeImageManifest, err
}

// blobsAtOnce is how many blobs of one manifest are written concurrently.
const blobsAtOnce = 4

func hasLayer(layers []v1.Descriptor, l v1.Descriptor) bool {
	return slices.ContainsFunc(layers, func(old v1.Descriptor) bool {
		return old.Digest == l.Digest && old.MediaType == l.MediaType && maps.Equal(old.Annotations, l.Annotations)
	})
}

// layersConfig returns the configuration of a manifest of attachments: it lists the layers, as the containers library
// and cosign expect it.
func layersConfig(layers []v1.Descriptor) ([]byte, error) {
	var config v1.Image
	config.RootFS.Type = "layers"
	for _, l := range layers {
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, l.Digest)
	}
	return json.Marshal(config)
}
