package medium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// Limits of what an index holds in memory.
const (
	maxIndexed      = 1_000_000 // blobs
	maxTags         = 500_000
	maxFiles        = 200_000
	maxRepositories = 100_000
	maxRevisions    = 2_000_000
	// maxIndexJSON is the limit of an index.json in bytes.
	maxIndexJSON = 128 << 20
)

// span is where a file is.
type span struct {
	segment  uint32
	at, size int64
}

// repositoryIndex is what the archive says of a repository.
type repositoryIndex struct {
	tags map[string]key
	// revisions are the manifests of a repository, in the form of oc-mirror.
	revisions []key
	// described are the descriptors of tagged manifests, and referrers those by subject, in the form of OCI.
	described map[key]v1.Descriptor
	referrers map[key][]v1.Descriptor
}

// special are the members that are read as soon as all segments of an archive are known.
type special struct{ layout, index, contents *span }

// indexer collects the index of one segment, and then that of an archive ([indexer.join]).
type indexer struct {
	r       *Reader
	segment uint32
	special special
	form    Form
	files   map[string]span
	repos   map[string]*repositoryIndex
	about   *Contents // nil if no segment has it
}

// add records a member.
func (x *indexer) add(name string, at, size int64, content io.Reader) error {
	here := span{x.segment, at, size}
	for _, form := range []Form{OCI, OCMirror} {
		if k, ok := form.blobKey(name); ok {
			x.form = form
			return x.r.blobs.add(indexed{k, x.segment, at, size})
		}
	}
	var to **span
	switch rest, link := strings.CutPrefix(name, repositoriesDir); {
	case link:
		x.form = OCMirror
		return x.link(rest, size, content)
	case name == v1.ImageLayoutFile:
		to = &x.special.layout
	case name == v1.ImageIndexFile:
		to = &x.special.index
	case name == contentsFile, name == workingDir+contentsFile:
		to = &x.special.contents
	case checkFileName(name) == nil:
		if m := unpackedBlob().FindStringSubmatch(name); m != nil {
			if k, err := keyOf(digest.Digest("sha256:" + m[1])); err == nil {
				x.r.unpacked[k] = indexed{k, x.segment, at, size}
			}
		}
		return x.file(name, here)
	default:
		return nil // of no use here
	}
	if *to != nil {
		return fmt.Errorf("%w: %.200q appears twice", fault.ErrInvalid, name)
	}
	*to = &here
	return nil
}

// unpackedBlob matches the members with blobs of catalogs in oc-mirror's own layouts. An archive that leaves out what an
// earlier one had has them there alone.
var unpackedBlob = lazyregexp.New(`^working-dir/operator-catalogs/.+/blobs/sha256/([0-9a-f]{64})$`)

func (x *indexer) file(name string, here span) error {
	if _, twice := x.files[name]; twice {
		return fmt.Errorf("%w: %.200q appears twice", fault.ErrInvalid, name)
	}
	if len(x.files) >= maxFiles {
		return fmt.Errorf("%w: more than %d files", fault.ErrLimit, maxFiles)
	}
	x.files[name] = here
	return nil
}

// repository returns the index of a repository, new if it is met for the first time.
func (x *indexer) repository(at string) (*repositoryIndex, error) {
	if r := x.repos[at]; r != nil {
		return r, nil
	}
	if err := checkPath(at); err != nil {
		return nil, err
	}
	if len(x.repos) >= maxRepositories {
		return nil, fmt.Errorf("%w: more than %d repositories", fault.ErrLimit, maxRepositories)
	}
	r := &repositoryIndex{tags: map[string]key{}, described: map[key]v1.Descriptor{},
		referrers: map[key][]v1.Descriptor{}}
	x.repos[at] = r
	return r, nil
}

// tag records what a tag stands for.
func (x *indexer) tag(r *repositoryIndex, tag string, k key) error {
	if !tagName().MatchString(tag) {
		return fmt.Errorf("%w: %.140q is no tag", fault.ErrInvalid, tag)
	}
	if had, twice := r.tags[tag]; twice && had != k {
		return fmt.Errorf("%w: the tag %.140q appears twice", fault.ErrInvalid, tag)
	}
	if x.r.tags++; x.r.tags > maxTags {
		return fmt.Errorf("%w: more than %d tags", fault.ErrLimit, maxTags)
	}
	r.tags[tag] = k
	return nil
}

// link reads a link in the form of oc-mirror: those of tags and manifests. The name is that below the repositories.
func (x *indexer) link(name string, size int64, content io.Reader) error {
	// A component of a path does not begin with an underscore.
	at, rest, ok := strings.Cut(name, "/_manifests/")
	if !ok {
		return nil // layers need no link here
	}
	if hex, ok := strings.CutPrefix(rest, "revisions/sha256/"); ok {
		k, err := keyOf(digest.Digest("sha256:" + strings.TrimSuffix(hex, "/link")))
		if err != nil || path.Base(hex) != "link" {
			return nil
		}
		r, err := x.repository(at)
		if err != nil {
			return err
		}
		if x.r.revisions++; x.r.revisions > maxRevisions {
			return fmt.Errorf("%w: more than %d manifests", fault.ErrLimit, maxRevisions)
		}
		r.revisions = append(r.revisions, k)
		return nil
	}
	tag, ok := strings.CutPrefix(rest, "tags/")
	if !ok {
		return nil
	}
	if tag, ok = strings.CutSuffix(tag, "/current/link"); !ok {
		return nil // an earlier manifest of the tag
	}
	if size > 256 {
		return fmt.Errorf("%w: the link of the tag %.140q has %d bytes", fault.ErrInvalid, tag, size)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	k, err := keyOf(digest.Digest(bytes.TrimSpace(text)))
	if err != nil {
		return fmt.Errorf("tag %.140q: %w", tag, err)
	}
	r, err := x.repository(at)
	if err != nil {
		return err
	}
	return x.tag(r, tag, k)
}

// errNoSegments is the error of a directory without an archive.
var errNoSegments = fmt.Errorf("%w: no mirror_000001.tar", fault.ErrInvalid)

// indexArchives reads the headers of the segments in a directory and adds what they have to the reader. They may be of
// several archives: the last segment of each describes it.
func (r *Reader) indexArchives(ctx context.Context, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	r.roots = append(r.roots, root)
	files, err := segmentFiles(root)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errNoSegments
	}
	a := archives{r: r}
	members := 0
	for _, file := range files {
		x := &indexer{r: r, segment: uint32(len(r.segments)), files: map[string]span{},
			repos: map[string]*repositoryIndex{}}
		f, size, err := openRegular(root, file.at)
		if err == nil {
			r.segments = append(r.segments, segmentFile{root, file.at, file.name, size})
			err = errors.Join(scanSegment(ctx, f, size, &members, x.add), f.Close())
		}
		if err == nil {
			err = a.add(x)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file.at, err)
		}
	}
	if err := r.blobs.seal(); err != nil {
		return err
	}
	return a.finish()
}

// archives divides the segments of a directory into archives.
type archives struct {
	r *Reader
	// open are the segments whose archive has not ended, whole the archives that have.
	open  []*indexer
	whole [][]*indexer
}

// add adds the index of the next segment.
func (a *archives) add(x *indexer) error {
	a.open = append(a.open, x)
	if x.special.contents == nil {
		return nil
	}
	text, err := a.r.readSpan(*x.special.contents, maxContents)
	if err != nil {
		return fmt.Errorf("%s: %w", contentsFile, err)
	}
	if x.about, err = parseContents(text); err != nil {
		return err
	}
	// What is before the segments that it lists is of an archive without a description: one of oc-mirror.
	n := max(len(a.open)-len(x.about.Segments), 0)
	if n > 0 {
		a.whole = append(a.whole, a.open[:n])
	}
	a.whole, a.open = append(a.whole, a.open[n:]), nil
	return nil
}

// finish takes the archives, in their order.
func (a *archives) finish() error {
	if len(a.open) > 0 {
		if last := len(a.whole) - 1; last >= 0 {
			about := a.whole[last][len(a.whole[last])-1].about
			return fmt.Errorf("%w: %s is not of this archive, which has %d segments, and the last segment of its own is "+
				"missing", fault.ErrIntegrity, a.r.segments[a.open[0].segment].name, len(about.Segments))
		}
		a.whole = append(a.whole, a.open)
	}
	for n, segments := range a.whole {
		first := segments[0].segment
		files := a.r.segments[first : int(first)+len(segments)]
		x := segments[0]
		for _, next := range segments[1:] {
			if err := x.join(next); err != nil {
				return err
			}
		}
		if n == 0 && x.about == nil && files[0].name != segmentName(1) {
			return fmt.Errorf("%w: %s is missing", fault.ErrIntegrity, segmentName(1))
		}
		if err := x.checkFiles(); err != nil {
			return err
		}
		if err := a.r.addIndex(x, files); err != nil {
			return err
		}
	}
	return nil
}

// join adds the index of the next segment of an archive.
func (x *indexer) join(next *indexer) error {
	for _, s := range []struct {
		name string
		to   **span
		from *span
	}{{v1.ImageLayoutFile, &x.special.layout, next.special.layout},
		{v1.ImageIndexFile, &x.special.index, next.special.index},
		{contentsFile, &x.special.contents, next.special.contents}} {
		if s.from == nil {
			continue
		}
		if *s.to != nil {
			return fmt.Errorf("%w: %.200q appears twice", fault.ErrInvalid, s.name)
		}
		*s.to = s.from
	}
	x.about = next.about
	if next.form != "" {
		x.form = next.form
	}
	for name, at := range next.files {
		if err := x.file(name, at); err != nil {
			return err
		}
	}
	for path, of := range next.repos {
		have, err := x.repository(path)
		if err != nil {
			return err
		}
		for tag, k := range of.tags {
			if had, twice := have.tags[tag]; twice && had != k {
				return fmt.Errorf("%w: the tag %.140q appears twice", fault.ErrInvalid, tag)
			}
			have.tags[tag] = k
		}
		have.revisions = append(have.revisions, of.revisions...)
	}
	return nil
}

// checkFiles returns an error for a file below another one.
func (x *indexer) checkFiles() error {
	for name := range x.files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, file := x.files[dir]; file {
				return fmt.Errorf("%w: %.200q is below the file %.200q", fault.ErrInvalid, name, dir)
			}
		}
	}
	return nil
}

// namedFile is a segment: its name, and that of the file that has it now.
type namedFile struct{ name, at string }

// segmentFiles returns the segments in a directory in order. While an interrupted run had begun to give segments their
// names, they are those of its list.
func segmentFiles(root *os.Root) (files []namedFile, err error) {
	p, err := pendingCommit(root)
	if err != nil {
		return nil, err
	}
	var names []string
	if p != nil {
		names = p.Kept
	} else if names, err = segmentNames(root); err != nil {
		return nil, err
	}
	for _, name := range names {
		files = append(files, namedFile{name, name})
	}
	if p == nil {
		return files, checkNames(names)
	}
	for i, s := range p.Segments {
		f := namedFile{s.Name, s.Name}
		if _, err := root.Lstat(partial(i + 1)); err == nil {
			f.at = partial(i + 1)
		}
		files = append(files, f)
	}
	return files, nil
}
