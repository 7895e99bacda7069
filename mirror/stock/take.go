package stock

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/verify"
)

// TakeOptions configure [Take].
type TakeOptions struct {
	// Registry is HOST[:PORT], and Path what the names of all repositories begin with; empty for none.
	Registry, Path string
	// Repositories are the names below Path. Those that do not exist are left out.
	Repositories []string
	// Plain writes JSON, and not JSON in gzip.
	Plain bool
	// Jobs is how many repositories are looked into at once; 8 if it is zero.
	Jobs int
	// Done, unless nil, is called after each repository, with how many there are in all.
	Done func(done, of int)
	// Warn, unless nil, receives what is listed and cannot be read, which is left out.
	Warn func(repository string, err error)
}

// Taken counts what is in an inventory.
type Taken struct {
	Repositories int `json:"repositories"`
	Tags         int `json:"tags"`
	Manifests    int `json:"manifests"`
	Blobs        int `json:"blobs"`
	// Bytes is the size of the blobs, each counted once in each repository.
	Bytes int64 `json:"bytes"`
	// LeftOut is how much is listed and cannot be read.
	LeftOut int `json:"leftOut,omitempty"`
	// ByRepository is the size of the blobs of each repository.
	ByRepository map[string]int64 `json:"-"`
}

// Take writes an inventory: of every repository the tags with their digests, and all manifests and blobs that the tags
// lead to. The blobs are those that the manifests name, and are not asked for: [Check] does that. What is attached to
// images by the referrers API alone is not in it, so that it would be sent again.
//
// The bytes depend only on what is there. A manifest that cannot be read is left out with a warning; errors of whole
// repositories are errors. A repository at a time is in memory, and the limits are those of [Read].
func Take(ctx context.Context, open func(name string) (store.Reader, error), w io.Writer,
	o TakeOptions) (Taken, error) {
	if o.Jobs <= 0 {
		o.Jobs = 8
	}
	t := &taker{o: o, open: open, taken: Taken{ByRepository: map[string]int64{}}}
	names := slices.Compact(slices.Sorted(slices.Values(o.Repositories)))
	if len(names) > maxRepositories {
		return t.taken, fmt.Errorf("%w: more than %d repositories", fault.ErrLimit, maxRepositories)
	}
	buffered := bufio.NewWriterSize(w, 64<<10)
	out := io.Writer(buffered)
	var packed *gzip.Writer
	if !o.Plain {
		packed = gzip.NewWriter(buffered)
		out = packed
	}
	if err := t.write(ctx, out, names); err != nil {
		return t.taken, err
	}
	if packed != nil {
		if err := packed.Close(); err != nil {
			return t.taken, err
		}
	}
	return t.taken, buffered.Flush()
}

// taker is one run of [Take].
type taker struct {
	o     TakeOptions
	open  func(name string) (store.Reader, error)
	taken Taken
}

// one is the result of reading a repository.
type one struct {
	found  *repository
	failed []error // why images of it are left out of the inventory
	err    error
}

// write writes the inventory. Repositories are looked into ahead of the one that is written, as many as jobs.
func (t *taker) write(ctx context.Context, w io.Writer, names []string) error {
	head, err := json.Marshal(header{Kind: inventoryKind, Version: inventoryVersion, Registry: t.o.Registry,
		Path: t.o.Path})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s,\"repositories\":[", head[:len(head)-1]); err != nil {
		return err
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var waiting []chan one
	next, written, size := 0, 0, int64(0)
	for i := range names {
		for ; next < len(names) && next < i+t.o.Jobs; next++ {
			answer := make(chan one, 1)
			waiting = append(waiting, answer)
			name := names[next]
			running.Go(func() {
				var got one
				if err := guard.Call(func() error { got = t.repository(ctx, name); return nil }); err != nil {
					got = one{err: err}
				}
				answer <- got
			})
		}
		got := <-waiting[0]
		waiting = waiting[1:]
		if got.err != nil {
			return got.err
		}
		for _, err := range got.failed {
			t.taken.LeftOut++
			if t.o.Warn != nil {
				t.o.Warn(names[i], redact.Error(err))
			}
		}
		if got.found != nil {
			text, err := json.Marshal(got.found)
			if err != nil {
				return err
			}
			separator := ",\n"
			if written == 0 {
				separator = "\n"
			}
			n, err := fmt.Fprintf(w, "%s%s", separator, text)
			if err != nil {
				return err
			}
			written++
			t.count(got.found)
			if size += int64(n); size > maxText-maxRepository || len(text) > maxRepository-2 ||
				len(got.found.Name) > maxName || !fits(t.taken.Repositories, t.taken.Manifests+t.taken.Blobs, t.taken.Tags) {
				return fmt.Errorf("repository %.200q: %w: the inventory is larger than what is read of one: take those of "+
					"parts of the registry, REGISTRY/PATH", got.found.Name, fault.ErrLimit)
			}
		}
		if t.o.Done != nil {
			t.o.Done(i+1, len(names))
		}
	}
	_, err = io.WriteString(w, "\n]}\n")
	return err
}

func (t *taker) count(r *repository) {
	t.taken.Repositories++
	t.taken.Tags += len(r.Tags)
	t.taken.Manifests += len(r.Manifests)
	t.taken.Blobs += len(r.Blobs)
	for _, b := range r.Blobs {
		t.taken.Bytes += b.Size
		t.taken.ByRepository[r.Name] += b.Size
	}
}

// repository looks into one repository. Nothing is found if it does not exist.
func (t *taker) repository(ctx context.Context, name string) (o one) {
	full := t.o.Registry + "/" + name
	if t.o.Path != "" {
		full = t.o.Registry + "/" + t.o.Path + "/" + name
	}
	at, err := t.open(full)
	if err != nil {
		return one{err: err}
	}
	tags, _, err := at.Tags(ctx, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return one{}
	}
	if err != nil {
		return one{err: err}
	}
	s := &survey{at: at, tags: map[string]digest.Digest{}, claimed: map[digest.Digest]bool{},
		manifests: map[digest.Digest]*store.Parts{}}
	failed := guard.TryEach(ctx, tagsAtOnce, 0, tags, func(ctx context.Context, _ int, tag string) error {
		if err := s.tag(ctx, tag); err != nil {
			return fmt.Errorf("tag %.140q: %w", tag, err)
		}
		return nil
	})
	if ctx.Err() != nil {
		return one{err: context.Cause(ctx)}
	}
	o.failed = slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	o.found, o.err = s.result(name)
	return o
}

// tagsAtOnce is how many tags of a repository are read concurrently.
const tagsAtOnce = 4

// survey is what is found in one repository.
type survey struct {
	at store.Reader

	mu        sync.Mutex
	tags      map[string]digest.Digest
	claimed   map[digest.Digest]bool // manifests that a goroutine reads or has read
	manifests map[digest.Digest]*store.Parts
}

// tag reads what a tag leads to. An image whose digest is in the tag may be there although the tag is the list of its
// referrers.
func (s *survey) tag(ctx context.Context, tag string) error {
	m, err := read(ctx, s.at, tag)
	if err != nil {
		return err
	}
	s.claim(m.digest)
	top := v1.Descriptor{Digest: m.digest}
	if err := s.add(ctx, store.Node{Descriptor: top, Parts: m.parts}); err != nil {
		return err
	}
	s.mu.Lock()
	s.tags[tag] = m.digest
	s.mu.Unlock()
	named := digest.Digest(strings.Replace(tag, "-", ":", 1))
	if !reflist.Belongs(tag) || named == m.digest || verify.Digest(named) != nil {
		return nil
	}
	return s.add(ctx, store.Node{Descriptor: v1.Descriptor{Digest: named}})
}

// claim tells whether a manifest is met for the first time.
func (s *survey) claim(d digest.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.claimed[d]
	s.claimed[d] = true
	return !before
}

// add adds a manifest and the entries of an index, unless they were met before. Those that are not there are left out:
// indexes may be sparse.
func (s *survey) add(ctx context.Context, top store.Node) error {
	read := func(ctx context.Context, n *store.Node) error {
		if !s.claim(n.Digest) {
			return nil
		}
		m, err := read(ctx, s.at, n.Digest.String())
		if n.Parts = m.parts; errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	visit := func(_ context.Context, n *store.Node) error {
		if n.Parts == nil {
			return nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.manifests[n.Digest] = n.Parts; len(s.manifests) > maxManifests {
			return fmt.Errorf("%w: more than %d manifests", fault.ErrLimit, maxManifests)
		}
		return nil
	}
	return store.Walk(ctx, top, store.WalkOptions{Read: read, Visit: visit})
}

// result returns what was found, sorted; nil if there is nothing.
func (s *survey) result(name string) (*repository, error) {
	if len(s.manifests) == 0 {
		return nil, nil
	}
	r := &repository{Name: name, Tags: s.tags, Manifests: slices.Sorted(maps.Keys(s.manifests))}
	blobs := map[digest.Digest]int64{}
	for _, parts := range s.manifests {
		for _, b := range parts.Blobs {
			blobs[b.Digest] = b.Size
		}
	}
	if len(blobs) > maxBlobs {
		return nil, fmt.Errorf("repository %s: %w: more than %d blobs", name, fault.ErrLimit, maxBlobs)
	}
	for _, d := range slices.Sorted(maps.Keys(blobs)) {
		r.Blobs = append(r.Blobs, blob{d, blobs[d]})
	}
	return r, nil
}
