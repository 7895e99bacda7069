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
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Options say how an image is examined. The zero value is useful.
type Options struct {
	// Temp is where temporary files go; empty means the system's place for them.
	Temp string
	// Limits bound what is read of all layers together.
	Limits images.Limits
	// Jobs is how many layers are built again at a time; one per processor if zero.
	Jobs int
}

// Examine reads all layers of all images of a survey, each once, and compares: layers with their digests; what the image
// says of its layers with what is in them; the layers that this module built, as the image says, with what it would make of
// their content; caches with the catalog; labels, modes and platforms. What is different is in the report's proof.
//
// An error says that it could not be found out: the registry, a limit, the machine. A layer that is not what its digest says
// is a difference.
func Examine(ctx context.Context, s *images.Survey, o Options) (*Report, error) {
	if o.Jobs <= 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	e := &examiner{
		o: o, s: s, r: Inspect(s), reader: images.NewLayerReader(o.Limits),
		read: map[digest.Digest]*facts{}, checked: map[string]*facts{}, files: map[string]int{},
	}
	e.r.Proof = &Proof{Differences: []Difference{}}
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

// examiner is one run of [Examine].
type examiner struct {
	o      Options
	s      *images.Survey
	r      *Report
	reader *images.LayerReader
	// roots are the names of which everything matters, and above are the directories that lead to them.
	roots, above map[string]bool
	// read are the layers that have been read, by digest, and checked those that were checked, by all that the outcome
	// depends on.
	read    map[digest.Digest]*facts
	checked map[string]*facts
	of      [][]*facts // of the layers of each image

	mu    sync.Mutex
	found []Difference
	more  int
	notes []string
	files map[string]int // of the catalog, by the diffIDs of their layers
}

// facts are what was found in a layer.
type facts struct {
	digest   digest.Digest
	declared declared
	// broken says that the layer could not be read as what it should be.
	broken bool
	// entries are those that matter for what the image shows.
	entries      []entry
	files        int
	uncompressed int64
	packages     []string
	filesOf      map[string][]string // the files of each package
	rebuilt      bool
}

// report adds a difference. It is safe for concurrent use.
func (e *examiner) report(d Difference) {
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

func (e *examiner) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.notes) < 100 && !slices.Contains(e.notes, text) {
		e.notes = append(e.notes, text)
	}
}

// countFiles notes that files of the catalog have been read.
func (e *examiner) countFiles(of string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.files[of] = n
}

// layers reads all layers, one after the other, while those that have been read are checked.
func (e *examiner) layers(ctx context.Context) (err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(e.o.Jobs)
	defer func() {
		// What ended a check also ended the reading of what comes behind it.
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

// layer reads layer n of an image, unless the same has been read, and has it checked.
func (e *examiner) layer(ctx context.Context, g *errgroup.Group, i images.SurveyedImage, n int, s declared) (*facts, error) {
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
		return c.take(ctx, name, h, content)
	})
	e.read[d] = f
	switch {
	case err != nil && (errors.Is(err, images.ErrIntegrity) || errors.Is(err, images.ErrInvalid)) && ctx.Err() == nil:
		f.broken = true
		e.report(Difference{About: AboutLayer, Platform: platformName(i.Platform), Layer: d, Message: err.Error()})
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
		// Of what has been checked only what the image shows of it matters.
		f.entries = slices.DeleteFunc(f.entries, func(x entry) bool { return !e.relevant(x.name) })
		return errors.Join(err, c.close())
	})
	return f, nil
}

// relevant reports whether a name matters for what the image shows of its catalog and caches.
func (e *examiner) relevant(name string) bool {
	if hidden, _, ok := (entry{name: name}).hidden(); ok {
		name = hidden
	}
	if name == "" || e.above[name] {
		return true
	}
	// Each name is looked up with the directories above it: an index can name thousands of roots.
	for ; name != "."; name = path.Dir(name) {
		if e.roots[name] {
			return true
		}
	}
	return false
}

// finish puts the findings into the report.
func (e *examiner) finish() {
	at := map[digest.Digest]int{}
	for n := range e.r.Layers {
		l := &e.r.Layers[n]
		again := at[l.Digest] > 0 // one of the base that was put on top of it once more, say
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
	slices.SortFunc(e.found, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(at[a.Layer], at[b.Layer]), strings.Compare(a.Platform, b.Platform), strings.Compare(string(a.About), string(b.About)),
			strings.Compare(a.Package, b.Package), strings.Compare(a.File, b.File), strings.Compare(a.Message, b.Message))
	})
	e.found = slices.Compact(e.found)
	p := e.r.Proof
	p.Packages, p.More = len(e.r.Packages), e.more
	for _, n := range e.files {
		p.Files += n // of images with the same content once
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
