package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Memory is a repository in memory. What is written is seen at once. It is safe for concurrent use; the fields are for
// a test that uses it alone.
type Memory struct {
	// Manifests are the texts by digests and tags, Kinds their media types, where a text does not have its own.
	Manifests map[string][]byte
	Kinds     map[string]string
	Blobs     map[digest.Digest][]byte
	// Lists are what is listed for subjects, whatever the manifests say.
	Lists map[digest.Digest][]v1.Descriptor
	// Refuse, unless nil, is called with the digest or the tag of all that is read, or of the subject whose referrers
	// are; its error is the answer.
	Refuse func(name string) error
	// Abilities replaces what the place can do.
	Abilities *store.Abilities
	// Writes counts what was written.
	Writes int

	mu   sync.Mutex
	tags sync.Mutex // is held while a tag is changed
}

var _ store.Writer = (*Memory)(nil)

// NewMemory returns an empty repository.
func NewMemory() *Memory {
	return &Memory{Manifests: map[string][]byte{}, Kinds: map[string]string{}, Blobs: map[digest.Digest][]byte{},
		Lists: map[digest.Digest][]v1.Descriptor{}}
}

func (m *Memory) refused(name string) error {
	if m.Refuse == nil {
		return nil
	}
	return m.Refuse(name)
}

// Name returns "memory".
func (*Memory) Name() string { return "memory" }

func (m *Memory) Can() store.Abilities {
	if m.Abilities != nil {
		return *m.Abilities
	}
	return store.Abilities{Tags: true, Attachments: true, Conditions: true}
}

func (m *Memory) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	return store.HeadOf(ctx, m.Manifest, name)
}

func (m *Memory) Manifest(ctx context.Context, name string) (text []byte, mediaType string, err error) {
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	if err := m.refused(name); err != nil {
		return nil, "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.Manifests[name]
	if !ok {
		return nil, "", fmt.Errorf("%w: no manifest %.140q", fs.ErrNotExist, name)
	}
	if d := digest.Digest(name); d.Validate() == nil {
		if err := verify.Manifest(text, d); err != nil {
			return nil, "", err
		}
	}
	mediaType = m.Kinds[name]
	if mediaType == "" {
		mediaType = manifest.GuessMIMEType(text)
	}
	return bytes.Clone(text), mediaType, nil
}

func (m *Memory) HasBlob(_ context.Context, d v1.Descriptor) (bool, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.Blobs[d.Digest]
	return ok && int64(len(content)) == d.Size, nil
}

func (m *Memory) Blob(_ context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, err
	}
	if err := m.refused(d.Digest.String()); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	content, ok := m.Blobs[d.Digest]
	if !ok {
		return nil, fmt.Errorf("%w: no blob %s", fs.ErrNotExist, d.Digest)
	}
	if err := verify.Size(d, int64(len(content))); err != nil {
		return nil, err
	}
	return store.Skip(func() (io.ReadCloser, error) {
		return io.NopCloser(verify.NewReader(bytes.NewReader(content), d.Digest, d.Size)), nil
	}, from)
}

func (m *Memory) Tags(context.Context, int) (tags []string, all bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.Manifests {
		if digest.Digest(name).Validate() != nil {
			tags = append(tags, name)
		}
	}
	slices.Sort(tags)
	return tags, true, nil
}

func (m *Memory) Referrers(_ context.Context, subject digest.Digest, _ func(string) bool) ([]v1.Descriptor, error) {
	if err := m.refused("referrers of " + subject.String()); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.Lists[subject]), nil
}

func (m *Memory) WriteBlob(ctx context.Context, d v1.Descriptor, c store.Content) (from string, err error) {
	if there, err := m.HasBlob(ctx, d); there || err != nil {
		return "", err
	}
	if d.Size < 0 {
		return "", fmt.Errorf("%w: %s has the size %d", fault.ErrInvalid, d.Digest, d.Size)
	}
	r, err := c.Open(ctx, 0)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(verify.NewReader(ctxio.Reader{Ctx: ctx, R: r}, d.Digest, d.Size))
	if err = errors.Join(err, r.Close()); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Blobs[d.Digest] = content
	m.Writes++
	return "", nil
}

func (m *Memory) WriteManifest(ctx context.Context, text []byte, mediaType string, o store.WriteOptions) error {
	if o.Tag != "" {
		return m.UpdateTag(ctx, o.Tag, func(old []byte) ([]byte, string, error) {
			is := store.IfNone
			if old != nil {
				is = digest.FromBytes(old).String()
			}
			if o.If != "" && o.If != is {
				return nil, "", fmt.Errorf("tag %s: %w", o.Tag, store.ErrChanged)
			}
			return text, mediaType, nil
		})
	}
	d, subject, err := reflist.Describe(text, mediaType)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Writes++
	m.Manifests[d.Digest.String()], m.Kinds[d.Digest.String()] = bytes.Clone(text), mediaType
	listed := func(l v1.Descriptor) bool { return l.Digest == d.Digest }
	if subject != nil && !slices.ContainsFunc(m.Lists[subject.Digest], listed) {
		m.Lists[subject.Digest] = append(m.Lists[subject.Digest], d)
	}
	return nil
}

func (m *Memory) UpdateTag(ctx context.Context, tag string,
	change func(old []byte) (text []byte, mediaType string, err error)) error {
	if digest.Digest(tag).Validate() == nil {
		return fmt.Errorf("%w: %s is no tag", fault.ErrInvalid, tag)
	}
	m.tags.Lock()
	defer m.tags.Unlock()
	m.mu.Lock()
	old := bytes.Clone(m.Manifests[tag])
	m.mu.Unlock()
	text, mediaType, err := change(old)
	if err != nil || text == nil {
		return err
	}
	if err := m.WriteManifest(ctx, text, mediaType, store.WriteOptions{}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Manifests[tag], m.Kinds[tag] = bytes.Clone(text), mediaType
	return nil
}

// Commit does nothing: what is written is seen at once.
func (*Memory) Commit(context.Context) error { return nil }

// Discard does nothing.
func (*Memory) Discard() error { return nil }

// Digests returns the digests of the manifests in order.
func (m *Memory) Digests() (all []digest.Digest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.Manifests)) {
		if digest.Digest(name).Validate() == nil {
			all = append(all, digest.Digest(name))
		}
	}
	return all
}
