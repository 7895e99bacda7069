package medium

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Reader reads an archive without unpacking it. It is safe for concurrent use.
type Reader struct {
	roots    []*os.Root
	segments []segmentFile
	blobs    blobIndex
	unpacked map[key]indexed // blobs among the files, see unpackedBlob: no more than files
	repos    map[string]*repositoryIndex
	files    map[string]span // of the last archive
	contents *Contents       // of the last archive; see join
	earlier  []*Contents     // of those before it
	parts    []*Contents
	form     Form // of the last archive

	tags, revisions int // how many there are
}

// segmentFile is a file of an archive.
type segmentFile struct {
	root *os.Root
	at   string // the name of the file
	name string
	size int64
}

// Open reads the headers of the segments in a directory: mirror_000001.tar and on, written by a [Writer] or by
// oc-mirror v2. They may be of several archives, of which the later ones follow the earlier. A directory without
// segments whose directories have some is that of several runs, in the order of their names. What the directories of
// earlier archives have, the oldest first, counts as well; of a tag that several have, the last one's holds.
//
// Blobs are neither read nor checked before they are requested. The caller must close the reader. Errors are of
// the class [fault.ErrIntegrity] if a segment is missing, cut off, or not of this archive; of [fault.ErrInvalid] and
// [fault.ErrLimit] for archives that break a rule: at most 1,000,000 blobs, 8,000,000 members, 500,000 tags.
func Open(ctx context.Context, dir string, earlier ...string) (_ *Reader, err error) {
	r := &Reader{repos: map[string]*repositoryIndex{}, unpacked: map[key]indexed{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	dirs, err := archiveDirs(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range append(slices.Clone(earlier), dirs...) {
		if err := r.indexArchives(ctx, d); err != nil {
			return nil, fmt.Errorf("archive in %s: %w", d, err)
		}
	}
	r.join()
	return r, nil
}

// archiveDirs returns the directory itself, or those in it that have segments if it has none.
func archiveDirs(dir string) ([]string, error) {
	own, err := hasSegments(dir)
	if err != nil || own {
		return []string{dir}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		d := filepath.Join(dir, e.Name())
		if own, err := hasSegments(d); err == nil && own {
			dirs = append(dirs, d)
		}
	}
	if len(dirs) == 0 {
		text := "no mirror_000001.tar"
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "mirror_000001.tar.") {
				text += ", but " + e.Name() + ": decompress all segments"
			}
		}
		return nil, fmt.Errorf("archive in %s: %w: %s", dir, fs.ErrNotExist, text)
	}
	return dirs, nil
}

func hasSegments(dir string) (bool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	names, err := segmentNames(root)
	if err == nil && len(names) == 0 {
		if _, perr := root.Lstat(commitFile); perr == nil {
			names = append(names, commitFile)
		}
	}
	return len(names) > 0, errors.Join(err, root.Close())
}

// Close closes the archive.
func (r *Reader) Close() error {
	var errs []error
	for _, root := range r.roots {
		errs = append(errs, root.Close())
	}
	r.roots = nil
	return errors.Join(errs...)
}

// addIndex adds the index of an archive, after what it says of itself has been read.
func (r *Reader) addIndex(x *indexer, segments []segmentFile) error {
	about := x.about
	if about != nil {
		if err := checkSegments(about, segments); err != nil {
			return err
		}
	}
	if x.form == OCI || x.form == "" {
		if err := r.readIndex(x); err != nil {
			return err
		}
	}
	if about != nil && about.Part != "" {
		r.parts = append(r.parts, about)
		if r.files == nil {
			r.files = x.files
		}
	} else {
		if r.contents != nil {
			r.earlier = append(r.earlier, r.contents)
		}
		r.contents, r.files = about, x.files
	}
	r.form = x.form
	for path, one := range x.repos {
		r.merge(path, one)
	}
	return nil
}

// checkSegments compares the files with the list that the last one has.
func checkSegments(c *Contents, segments []segmentFile) error {
	for i, s := range c.Segments {
		if !slices.ContainsFunc(segments, func(f segmentFile) bool { return f.name == s.Name }) {
			return fmt.Errorf("%w: %s is missing", fault.ErrIntegrity, s.Name)
		}
		if s.Bytes > 0 && s.Bytes != segments[i].size {
			return fmt.Errorf("%w: %s has %d bytes and not %d: it is of another archive, or was not copied whole",
				fault.ErrIntegrity, s.Name, segments[i].size, s.Bytes)
		}
	}
	return nil
}

// merge adds the repository of a later archive.
func (r *Reader) merge(path string, later *repositoryIndex) {
	have := r.repos[path]
	if have == nil {
		r.repos[path] = later
		return
	}
	maps.Copy(have.tags, later.tags)
	maps.Copy(have.described, later.described)
	for subject, list := range later.referrers {
		for _, d := range list {
			same := func(h v1.Descriptor) bool { return h.Digest == d.Digest }
			if !slices.ContainsFunc(have.referrers[subject], same) {
				have.referrers[subject] = append(have.referrers[subject], d)
			}
		}
	}
	have.revisions = append(have.revisions, later.revisions...)
}

// Form returns the form of the archive; of several, of the last.
func (r *Reader) Form() Form { return r.form }

// Contents returns the description of the archive; nil if it is one of oc-mirror. Of several archives it is that of the
// last one that is not a part, with the catalogs and images of earlier archives that are still complete, and with the
// content of the parts. A blob that one archive leaves out and another one has does not count as left out.
func (r *Reader) Contents() *Contents { return r.contents }

// Repositories returns the paths of the repositories in order.
func (r *Reader) Repositories() []string { return slices.Sorted(maps.Keys(r.repos)) }

// Tags returns what the tags of a repository stand for; nothing if there is no such repository.
func (r *Reader) Tags(path string) map[string]digest.Digest {
	tags := map[string]digest.Digest{}
	if one := r.repos[path]; one != nil {
		for t, k := range one.tags {
			tags[t] = k.digest()
		}
	}
	return tags
}

// Tag returns what a tag of a repository stands for; empty if there is no such tag.
func (r *Reader) Tag(path, tag string) digest.Digest {
	if one := r.repos[path]; one != nil {
		if k, ok := one.tags[tag]; ok {
			return k.digest()
		}
	}
	return ""
}

// Segments returns the files with their sizes, without sums.
func (r *Reader) Segments() []Segment {
	var list []Segment
	for _, s := range r.segments {
		list = append(list, Segment{Name: s.name, Bytes: s.size})
	}
	return list
}

// Has tells whether the archive has a blob or manifest.
func (r *Reader) Has(d digest.Digest) bool {
	k, err := keyOf(d)
	if err != nil {
		return false
	}
	_, has := r.find(k)
	return has
}

func (r *Reader) find(k key) (indexed, bool) {
	if found, ok := r.blobs.find(k); ok {
		return found, true
	}
	found, ok := r.unpacked[k]
	return found, ok
}

// openSpan opens a part of a segment.
func (r *Reader) openSpan(s span) (section, error) {
	file := r.segments[s.segment]
	f, err := file.root.Open(file.at)
	if err != nil {
		return section{}, err
	}
	return section{io.NewSectionReader(f, s.at, s.size), f}, nil
}

// readSpan reads a small part of a segment.
func (r *Reader) readSpan(s span, limit int64) ([]byte, error) {
	if s.size > limit {
		return nil, fmt.Errorf("%w: %d bytes (limit %d)", fault.ErrLimit, s.size, limit)
	}
	f, err := r.openSpan(s)
	if err != nil {
		return nil, err
	}
	text := make([]byte, s.size)
	_, err = io.ReadFull(f, text)
	return text, errors.Join(err, f.Close())
}
