package appregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/problem"
)

// Tree is a directory of package manifests, read and validated. It is safe for concurrent use; the files must not
// change.
type Tree struct {
	fsys     fs.FS
	options  Options
	packages []*pkg // sorted by name
	hidden   map[string]map[string]bool
	warn     func(declcfg.Position, string)
}

// pkg is one package of the tree.
type pkg struct {
	manifestFile
	// skeleton has the package with its bundles but without their manifests; files has the file of each bundle by name.
	skeleton *declcfg.Catalog
	files    []csvFile
	problems []Problem
}

// Open reads all bundles and packages in fsys, wherever they are. It reads and validates all bundles that are in a
// channel, and the resulting upgrade graphs. It keeps no manifests in memory.
//
// The error is an *[Error] with all problems, a *[declcfg.ValidationError] if only rules of catalogs are broken, or an
// error of the file system or context. A tree without a package is an error.
func Open(ctx context.Context, fsys fs.FS, o Options) (*Tree, error) {
	o.Limits = o.Limits.withDefaults()
	o.Jobs = cmp.Or(max(o.Jobs, 0), runtime.GOMAXPROCS(0))
	t := &Tree{fsys: fsys, options: o, hidden: map[string]map[string]bool{}}
	var mu sync.Mutex
	t.warn = func(at declcfg.Position, message string) {
		if o.Warn != nil {
			mu.Lock()
			defer mu.Unlock()
			o.Warn(at, message)
		}
	}
	s := &scanner{ctx: ctx, fsys: fsys, limits: o.Limits, warn: t.warn, perDir: map[string]int{}}
	if err := s.scan(); err != nil {
		return nil, err
	}
	bundles := t.index(s)
	if len(s.manifests) == 0 && len(s.problems) == 0 {
		s.wrong(declcfg.Position{}, "no package manifests: no file has a packageName")
	}
	// After an exceeded limit the scan is incomplete and the other problems are misleading.
	if err := (&Error{Problems: s.problems}); errors.Is(err, ErrLimit) {
		return nil, err
	}
	t.graphs(s, bundles)
	if err := t.readBundles(ctx); err != nil {
		return nil, err
	}
	t.passOver(s)
	if err := t.settle(s.problems, bundles); err != nil {
		return nil, err
	}
	return t, nil
}

// passOver reports the files that were passed over: with the problems if there are others, which may be about what is in
// these files.
func (t *Tree) passOver(s *scanner) {
	failed := len(s.problems) > 0 || slices.ContainsFunc(t.packages, func(p *pkg) bool { return len(p.problems) > 0 })
	for _, p := range s.passed {
		if failed && !t.options.KeepGoing {
			s.problems = append(s.problems, p)
		} else {
			t.warn(p.Place, p.Text)
		}
	}
}

// index returns the bundles by name. It also records which files in a directory belong to other bundles.
func (t *Tree) index(s *scanner) map[string]csvFile {
	bundles := map[string]csvFile{}
	for _, c := range s.csvs {
		t.hide(c.File)
		if other, ok := bundles[c.name]; ok {
			s.wrong(c.Position, "a second bundle called %s: the first is in %s", fault.Quote(c.name), other.File)
			continue
		}
		bundles[c.name] = c
	}
	for _, m := range s.manifests {
		t.hide(m.File)
	}
	for _, p := range s.passed {
		t.hide(p.File)
	}
	return bundles
}

func (t *Tree) hide(file string) {
	at := path.Dir(file)
	if t.hidden[at] == nil {
		t.hidden[at] = map[string]bool{}
	}
	t.hidden[at][strings.TrimPrefix(file, at+"/")] = true
}

// graphs builds the packages with their channels.
func (t *Tree) graphs(s *scanner, bundles map[string]csvFile) {
	wishes := make(map[string]Wish, len(bundles))
	for name, c := range bundles {
		wishes[name] = c.wish
	}
	byName := map[string]*pkg{}
	owner := map[string]string{}
	edges := 0
	for _, m := range s.manifests {
		if first := byName[m.Package]; first != nil {
			first.problems = append(first.problems, Problem{Place: m.Position, Err: ErrInvalid,
				Text: fmt.Sprintf("a second file of package %s: the first is %s", fault.Quote(m.Package),
					first.File)})
			continue
		}
		p := &pkg{manifestFile: m, skeleton: &declcfg.Catalog{}}
		byName[m.Package] = p
		channels, problems := m.graph(wishes, &edges)
		for _, problem := range problems {
			problem.File = m.File
			p.problems = append(p.problems, problem)
		}
		names := map[string]bool{}
		for i := range channels {
			channels[i].Pos = m.Position
			for _, e := range channels[i].Entries {
				names[e.Name] = true
			}
		}
		p.skeleton.Channels = channels
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if other, ok := owner[name]; ok {
				p.problems = append(p.problems,
					Problem{Place: bundles[name].Position, Err: ErrInvalid,
						Text: fmt.Sprintf("bundle %s is in a channel of package %s and in one of package %s",
							fault.Quote(name), fault.Quote(other), fault.Quote(m.Package))})
				continue
			}
			owner[name] = m.Package
			p.files = append(p.files, bundles[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		t.packages = append(t.packages, byName[name])
	}
}

// readBundles reads the bundles of all packages concurrently and keeps their skeletons.
func (t *Tree) readBundles(ctx context.Context) error {
	type result struct {
		blob     *declcfg.Bundle
		icon     *declcfg.Icon
		problems []Problem
	}
	var total atomic.Int64
	for _, p := range t.packages {
		results := make([]result, len(p.files))
		err := guard.Each(ctx, t.options.Jobs, p.files, func(ctx context.Context, i int, c csvFile) error {
			if total.Load() > t.options.Limits.Total {
				return nil // reported by an earlier bundle
			}
			r := &results[i]
			b, err := t.read(ctx, p, c, t.warn)
			if err == nil && !t.within(&total, b) {
				r.problems = []Problem{{Place: c.Position, Err: ErrLimit,
					Text: fmt.Sprintf("the manifests of all bundles have more than %d bytes", t.options.Limits.Total)}}
				return nil
			}
			if err == nil {
				r.icon, _ = declcfg.NewIcon(b.CSV.IconData, b.CSV.IconMediaType) // none if that is impossible
				if r.blob, err = t.blob(b); err == nil {
					r.blob.Reduce()
					r.blob.Pos = c.Position
					return nil
				}
			}
			var invalid *bundle.ReadError
			switch {
			case errors.As(err, &invalid):
				for _, problem := range slices.Concat(invalid.Problems, invalid.Passed) {
					kind := ErrInvalid
					if problem.Rule == bundle.RuleLimit {
						kind = ErrLimit
					}
					at := declcfg.Position{File: original(path.Dir(c.File), problem.File), Line: problem.Line,
						Column: problem.Column}
					r.problems = append(r.problems, Problem{Place: at, Field: problem.Field, Text: problem.Message, Err: kind})
				}
			case errors.Is(err, bundle.ErrInvalid):
				r.problems = []Problem{{Place: c.Position, Text: err.Error(), Err: ErrInvalid}}
			default:
				return err
			}
			return nil
		})
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		for i, r := range results {
			p.problems = append(p.problems, r.problems...)
			if r.blob != nil {
				p.skeleton.Bundles = append(p.skeleton.Bundles, *r.blob)
			}
			if p.files[i].name == p.currentCSV(p.Default()) {
				p.skeleton.Packages = []declcfg.Package{{Icon: r.icon}}
			}
		}
	}
	return nil
}

// within adds the manifests of a bundle to the total and reports whether it is within the limit. Files shared by
// several bundles of a directory count for each of them.
func (t *Tree) within(total *atomic.Int64, b *bundle.Bundle) bool {
	n := int64(0)
	for _, o := range b.Objects {
		n += int64(len(o.JSON))
	}
	return total.Add(n) <= t.options.Limits.Total
}

func (t *Tree) blob(b *bundle.Bundle) (*declcfg.Bundle, error) {
	image := ""
	if t.options.Image != nil {
		var err error
		if image, err = t.options.Image(b); err != nil {
			return nil, err
		}
	}
	return b.Blob(image)
}

// currentCSV returns the head of a channel; empty if there is no such channel.
func (m Manifest) currentCSV(channel string) string {
	for _, c := range m.Channels {
		if c.Name == channel {
			return c.CurrentCSV
		}
	}
	return ""
}

// settle validates the packages as catalogs. It leaves out invalid ones if [Options.KeepGoing] is set; otherwise they
// are errors. Problems that concern no package are always errors.
func (t *Tree) settle(problems []Problem, bundles map[string]csvFile) error {
	all := &declcfg.Catalog{}
	if t.options.KeepGoing {
		for _, p := range problems {
			t.warn(p.Place, p.Text)
		}
	}
	var healthy []*pkg
	used := map[string]bool{}
	for _, p := range t.packages {
		for _, c := range p.files {
			used[c.name] = true
		}
		if p.skeleton.Packages == nil {
			p.skeleton.Packages = []declcfg.Package{{}}
		}
		of := &p.skeleton.Packages[0]
		of.Name, of.DefaultChannel, of.Pos = p.Package, p.Default(), p.Position
		err := p.skeleton.Validate()
		if len(p.problems) > 0 {
			err = &Error{Problems: p.problems}
			problems = append(problems, p.problems...)
		} else {
			all.Append(p.skeleton)
		}
		if err == nil {
			healthy = append(healthy, p)
		} else if t.options.KeepGoing && t.options.Quarantined != nil {
			t.options.Quarantined(p.Package, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		if !used[name] {
			t.warn(bundles[name].Position,
				fmt.Sprintf("bundle %s is in no channel of any package: it is left out", fault.Quote(name)))
		}
	}
	if t.options.KeepGoing {
		t.packages = healthy
		if len(healthy) == 0 {
			return fmt.Errorf("%w: no package is left", ErrInvalid)
		}
		return nil
	}
	invalid := all.Validate()
	if len(problems) == 0 {
		return invalid
	}
	var err error = &Error{Problems: problems}
	if invalid != nil {
		err = errors.Join(err, invalid)
	}
	return err
}

// read reads one bundle of a package.
func (t *Tree) read(ctx context.Context, p *pkg, c csvFile,
	warn func(declcfg.Position, string)) (*bundle.Bundle, error) {
	at := path.Dir(c.File)
	fsys, err := asBundle(t.fsys, at, strings.TrimPrefix(c.File, at+"/"), t.hidden[at], map[string]string{
		bundle.AnnotationPackage: p.Package, bundle.AnnotationDefaultChannel: p.Default(),
		bundle.AnnotationMediaType: string(bundle.RegistryV1),
	})
	if err != nil {
		return nil, err
	}
	o := bundle.ReadOptions{Limits: t.options.Limits.Bundle}
	if warn != nil {
		o.Warn = func(p bundle.Problem) {
			warn(declcfg.Position{File: original(at, p.File), Line: p.Line}, problem.Join(p.Field, p.Message))
		}
	}
	b, err := bundle.Read(ctx, fsys, o)
	if err != nil {
		return nil, err
	}
	for _, channel := range p.skeleton.Channels {
		if slices.ContainsFunc(channel.Entries, func(e declcfg.ChannelEntry) bool { return e.Name == c.name }) {
			b.Channels = append(b.Channels, channel.Name)
		}
	}
	return b, nil
}
