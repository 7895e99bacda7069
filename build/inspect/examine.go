package inspect

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
)

// Options configure [Examine]. The zero value is useful.
type Options struct {
	// Temp is the directory for temporary files; empty means the system's default.
	Temp string
	// Limits bound what is read from all layers together.
	Limits images.Limits
	// Jobs is the number of layers that are rebuilt concurrently; zero means one per processor.
	Jobs int
}

// Examine reads every layer of every image of a survey once and compares the layers with their digests, the claims of
// annotations and history with the layers' content, bindery's layers with their rebuilt versions, caches with the
// catalog, and labels, modes and platforms. The differences are in [Report.Proof].
//
// An error means that the comparison could not be finished: the registry failed, a limit was exceeded, the disk is
// full. A layer whose bytes do not match its digest is a difference and not an error.
func Examine(ctx context.Context, s *images.Survey, o Options) (*Report, error) {
	o.Jobs = cmp.Or(max(o.Jobs, 0), runtime.GOMAXPROCS(0))
	e := &examiner{
		o: o, s: s, r: Inspect(s), reader: images.NewLayerReader(o.Limits),
		read: map[digest.Digest]*facts{}, checked: map[string]*facts{}, files: map[string]int{},
	}
	e.r.Proof = &proof{Differences: []difference{}}
	e.roots, e.above = rootsOf(s), map[string]bool{}
	for root := range e.roots {
		for dir := path.Dir(root); dir != "." && !e.above[dir]; dir = path.Dir(dir) {
			e.above[dir] = true
		}
	}
	if err := e.layers(ctx); err != nil {
		return nil, err
	}
	if err := e.images(ctx); err != nil {
		return nil, err
	}
	e.finish()
	return e.r, nil
}

// examiner is the state of one call of [Examine].
type examiner struct {
	o      Options
	s      *images.Survey
	r      *Report
	reader *images.LayerReader
	// roots are the files and directories that are examined with everything below them; above are the directories that
	// lead to them.
	roots, above map[string]bool
	// read has the layers read so far by digest. checked has the verified ones by everything that the result depends
	// on: the diffID, the claims and, for servers, the platform.
	read    map[digest.Digest]*facts
	checked map[string]*facts
	of      [][]*facts // per image, the facts of its layers

	mu    sync.Mutex
	found []difference
	more  int
	notes []string
	files map[string]int // the number of catalog files by the diffID of their layer, or the diffIDs of their image
}

// facts are the findings about one layer.
type facts struct {
	digest   digest.Digest
	declared declared
	// broken is set if the layer could not be read or does not match its digest.
	broken bool
	// entries are those at or below [examiner.roots].
	entries      []entry
	files        int
	uncompressed int64
	packages     []string
	filesOf      map[string][]string // the files by package
	rebuilt      bool
}

// report adds a difference. It is safe for concurrent use.
func (e *examiner) report(d difference) {
	const most = 4000
	d.Message = fault.Clip(d.Message, most)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.found) == 4*maxDifferences {
		e.more++
		return
	}
	e.found = append(e.found, d)
}

func (e *examiner) addNote(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.notes) < 100 && !slices.Contains(e.notes, text) {
		e.notes = append(e.notes, text)
	}
}

// countFiles records how many catalog files were read; content that several images share counts once.
func (e *examiner) countFiles(of string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.files[of] = n
}

// layers reads the layers one after the other; those already read are verified concurrently.
func (e *examiner) layers(ctx context.Context) (err error) {
	g, ctx := guard.WithContext(ctx)
	g.SetLimit(e.o.Jobs)
	defer func() {
		// A failed check cancels the context and with it the reading: the check's error is the cause.
		if failed := g.Wait(); failed != nil {
			err = failed
		}
	}()
	for _, i := range e.s.Images {
		annotations := declaredLayers(i.Image)
		of := make([]*facts, len(i.Layers))
		e.of = append(e.of, of)
		for n := range i.Layers {
			if of[n], err = e.layer(ctx, g, i, n, annotations[n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// layer reads layer n of an image and starts its verification. A layer that was read before is reused.
func (e *examiner) layer(ctx context.Context, g *guard.Group, i images.SurveyedImage, n int,
	s declared) (*facts, error) {
	d, id := i.Layers[n].Digest, i.Config.RootFS.DiffIDs[n]
	key := fmt.Sprint(id, " ", s.kind, " ", s.key, " ", strings.Join(s.packages, ","))
	if s.kind == string(build.LayerServer) {
		key += " " + platformName(i.Platform)
	}
	done := e.checked[key]
	if before := e.read[d]; before != nil && (done != nil || before.broken) {
		return cmp.Or(done, before), nil
	}
	f := &facts{digest: d, declared: s}
	c := newContents(e.o.Temp, done == nil && s.ours())
	var err error
	f.uncompressed, err = e.reader.Read(ctx, i.Image, n, func(name string, h *tar.Header, content io.Reader) error {
		if done != nil || !s.ours() && !e.relevant(name) {
			return nil
		}
		return c.addEntry(ctx, name, h, content)
	})
	e.read[d] = f
	switch {
	case err != nil && (errors.Is(err, images.ErrIntegrity) || errors.Is(err, images.ErrInvalid)) && ctx.Err() == nil:
		f.broken = true
		e.report(difference{About: aboutLayer, Platform: platformName(i.Platform), Layer: d, Message: err.Error()})
		return f, c.close()
	case err != nil:
		return nil, errors.Join(err, c.close())
	case done != nil:
		e.read[d] = done
		return done, c.close()
	}
	e.checked[key] = f
	f.entries, f.files = c.entries, c.files
	if !s.ours() {
		return f, c.close()
	}
	g.Go(func() error {
		err := e.check(ctx, i, f, c)
		// The check needed every entry; the images are compared by the relevant ones only.
		f.entries = slices.DeleteFunc(f.entries, func(x entry) bool { return !e.relevant(x.name) })
		return errors.Join(err, c.close())
	})
	return f, nil
}

// relevant reports whether the name is at, below or above one of the roots. A whiteout counts as the name that it
// removes.
func (e *examiner) relevant(name string) bool {
	if hidden, _, ok := (entry{name: name}).hidden(); ok {
		name = hidden
	}
	if name == "" || e.above[name] {
		return true
	}
	// The name and its parents are looked up in the map: comparing with each root would be slow, as an index can name
	// thousands.
	for ; name != "."; name = path.Dir(name) {
		if e.roots[name] {
			return true
		}
	}
	return false
}

// finish fills the report with the findings.
func (e *examiner) finish() {
	at := map[digest.Digest]int{}
	for n := range e.r.Layers {
		l := &e.r.Layers[n]
		again := at[l.Digest] > 0 // for example a base layer that was stacked again on top
		at[l.Digest] = n + 1
		f := e.read[l.Digest]
		if f == nil || f.broken {
			continue
		}
		e.r.Proof.Layers++
		below := l.Kind == string(build.LayerBase)
		if f.rebuilt && !below {
			e.r.Proof.Rebuilt++
		}
		l.Uncompressed, l.Files = f.uncompressed, f.files
		if !again {
			e.r.Uncompressed += f.uncompressed
		}
		if f.packages != nil && !below {
			l.Packages = f.packages
		}
	}
	if e.r.Built {
		e.r.Packages = packagesOf(e.r.Layers)
	} else {
		for _, p := range e.r.Packages {
			for _, d := range p.Layers {
				l := &e.r.Layers[at[d]-1]
				l.Packages = append(l.Packages, p.Name)
			}
		}
	}
	slices.SortFunc(e.found, func(a, b difference) int {
		return cmp.Or(cmp.Compare(at[a.Layer], at[b.Layer]), strings.Compare(a.Platform, b.Platform),
			strings.Compare(string(a.About), string(b.About)),
			strings.Compare(a.Package, b.Package), strings.Compare(a.File, b.File),
			strings.Compare(a.Message, b.Message))
	})
	e.found = slices.Compact(e.found)
	p := e.r.Proof
	p.Packages, p.More = len(e.r.Packages), e.more
	for _, n := range e.files {
		p.Files += n // images with the same content count once
	}
	if len(e.found) > maxDifferences {
		p.More += len(e.found) - maxDifferences
		e.found = e.found[:maxDifferences]
	}
	p.Differences = append(p.Differences, e.found...)
	p.Same = len(p.Differences) == 0
	slices.Sort(e.notes)
	p.Notes = e.notes
}
