package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// StaticOptions configure [WriteStatic].
type StaticOptions struct {
	// Title is the displayed name of the catalog. Empty means [DefaultTitle].
	Title string
	// URL is the absolute address of the directory where the site is published; nil if it is not known.
	URL *url.URL
	// Judge says what OLM v1 refuses of the changes of definitions. Nil leaves that open.
	Judge upgrade.Judge
	// Jobs is how many pages are built concurrently; 0 means one per CPU.
	Jobs int
	// HeadsOnly writes the pages of no other bundles than the heads of channels, and of what changes up to these.
	HeadsOnly bool
	// Planned, unless nil, is called before anything is written with estimates: of the number of pages, and their bytes.
	Planned func(pages int, bytes int64)
	// Progress, unless nil, is called after each page with how many are written, and how many are known of.
	Progress func(done, all int)
}

// maxRecent is how many bytes of bundles are kept, as the catalog has them: what is read of them takes two to three times
// that.
const maxRecent = 6 << 20

// maxFiles is the maximum number of pages of a site.
const maxFiles = 2_000_000

// csp is what pages allow themselves. The server says it in a header.
const csp literal = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; base-uri 'none'; " +
	"form-action 'none'"

//go:embed assets/static.js
var staticScript string

// staticSite is a site being written.
type staticSite struct {
	o      StaticOptions
	c      *Content
	dir    string
	assets map[string]string // the files of assets, by name
	list   string            // the script with all packages
	icons  map[string]string // the files of icons, by package

	mu   sync.Mutex
	seen map[string]bool // the files of pages that are written or will be
	next []place
	done atomic.Int64

	views   recent[string, *view]
	bundles recent[*blob, *readBundle]
	heads   map[[2]string]bool // by package and bundle; nil for all bundles
}

// place is a page and its file.
type place struct {
	page, file string
	pairs      []string
}

// WriteStatic writes the pages of a catalog as files into the directory target: those that the first page leads to. The
// same catalog gives the same bytes. target appears completely or not at all; one that exists must be empty, else the error
// is [atomicfs.ErrNotEmpty].
func WriteStatic(ctx context.Context, c *Content, target string, o StaticOptions) (err error) {
	if err := atomicfs.CheckEmpty(target); err != nil {
		return err
	}
	out, err := atomicfs.NewDir(target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Abort()) }()
	if o.Title = strings.TrimSpace(o.Title); o.Title == "" {
		o.Title = DefaultTitle
	}
	s := &staticSite{o: o, c: c, dir: out.Path(), assets: map[string]string{}, icons: map[string]string{},
		seen: map[string]bool{}, views: recent[string, *view]{most: 2}, bundles: recent[*blob, *readBundle]{most: maxRecent}}
	for _, step := range []func(context.Context) error{s.plan, s.writeAssets, s.writeIcons, s.writeList, s.writePages} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := s.sync(ctx); err != nil {
		return err
	}
	return out.Commit()
}

// write writes a file, which [staticSite.sync] makes durable.
func (s *staticSite) write(name string, data []byte) (err error) {
	path := filepath.Join(s.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(data)
	return err
}

// writeHashed writes a file whose name has a digest of its content.
func (s *staticSite) writeHashed(base, extension string, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	name := base + "-" + hex.EncodeToString(sum[:6]) + extension
	return name, s.write(name, data)
}

func (s *staticSite) writeAssets(context.Context) error {
	for name, file := range assetPaths() {
		s.assets[name] = file
		if err := s.write(file, []byte(assets()[file].text)); err != nil {
			return err
		}
	}
	file, err := s.writeHashed("static", ".js", []byte(`"use strict";`+"\n"+staticScript))
	s.assets["static.js"] = file
	return err
}

func (s *staticSite) writeIcons(ctx context.Context) error {
	for i := range s.c.packages {
		p := &s.c.packages[i]
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !p.hasIcon {
			continue
		}
		pkg, err := s.c.pkg(s.c.packageBlob(p.name))
		if err != nil {
			return err
		}
		icon := pictureOf(pkg.Icon)
		s.icons[p.name] = fileName("icon"+extensions[icon.kind], []string{"name", p.name})
		if err := s.write(s.icons[p.name], icon.data); err != nil {
			return err
		}
	}
	return nil
}

// writeList writes the script with all packages: their cards, and what static.js finds and sorts them by.
func (s *staticSite) writeList(context.Context) error {
	ranks := map[string]map[*packageSummary]int{}
	for _, by := range []string{"provider", "newest"} {
		ranks[by] = map[*packageSummary]int{}
		for i, p := range s.c.choose(choice{chosen: make([]map[string]bool, len(facets)), sort: by}).packages {
			ranks[by][p] = i
		}
	}
	var out bytes.Buffer
	out.WriteString("packagesOfSite([")
	for i, p := range s.c.choose(choice{chosen: make([]map[string]bool, len(facets)), sort: "name"}).packages {
		card := s.page(place{page: "./", file: "index.html"})
		card.card(p)
		entry := map[string]any{"card": card.String(), "names": p.search.names, "kinds": p.search.kinds,
			"keywords": p.search.keywords + "\n" + p.search.provider, "about": p.search.about,
			"byProvider": ranks["provider"][p], "byDate": ranks["newest"][p]}
		for _, f := range facets {
			values := []string{}
			for _, v := range f.values(p) {
				values = append(values, fold(v))
			}
			entry[f.key] = values
		}
		line, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteString(",\n")
		}
		out.Write(line)
	}
	out.WriteString("]);\n")
	file, err := s.writeHashed("list", ".js", out.Bytes())
	s.list = file
	return err
}

// page returns a page to be built.
func (s *staticSite) page(at place) *page {
	query := url.Values{}
	for i := 0; i < len(at.pairs); i += 2 {
		query.Add(at.pairs[i], at.pairs[i+1])
	}
	p := &page{c: s.c, site: s.o.Title, query: query, judge: s.o.Judge}
	if s.o.URL != nil {
		p.base = s.o.URL.JoinPath(at.file).String()
	}
	p.files = &filesOfPage{s, at, p}
	return p
}

// writePages writes all pages that the first one leads to, and the sitemap: in rounds, each with those that the
// previous one has found.
func (s *staticSite) writePages(ctx context.Context) error {
	s.find("./", nil)
	if s.o.URL != nil {
		s.find("sitemap.txt", nil)
	}
	build := pages()
	for len(s.next) > 0 {
		if len(s.seen) > maxFiles {
			return fmt.Errorf("the catalog has more than %d pages", maxFiles)
		}
		round := s.next
		slices.SortFunc(round, byBundle)
		s.next = nil
		err := guard.Each(ctx, s.jobs(), round, func(ctx context.Context, _ int, at place) error {
			return s.writePage(ctx, at, build[at.page])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writePage builds a page and writes it.
func (s *staticSite) writePage(ctx context.Context, at place, build func(*page) error) error {
	p := s.page(at)
	p.ctx = ctx
	err := build(p)
	if p.full {
		err = errPageSize
	}
	switch {
	case errors.Is(err, errNotFound):
		p = s.page(at)
		p.notFound()
	case errors.Is(err, errPageSize):
		p = s.page(at)
		p.message("Too large", "There is too much to show on a page.")
	case err != nil:
		return fmt.Errorf("%s: %w", at.file, err)
	}
	if err := s.write(at.file, p.Bytes()); err != nil {
		return err
	}
	n := s.done.Add(1)
	if s.o.Progress != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.o.Progress(int(n), len(s.seen))
	}
	return nil
}

// find returns the file of a page, and has it written.
func (s *staticSite) find(page string, pairs []string) string {
	switch {
	case page != "./":
		return s.findAs(fileName(page, pairs), page, pairs)
	case len(pairs) == 0:
		return s.findAs("index.html", page, pairs)
	}
	return s.findAs("page-"+safePart(pairs[1])+".html", page, pairs)
}

// findAs has a page written into a file, and returns its name.
func (s *staticSite) findAs(file, page string, pairs []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.seen[file] {
		s.seen[file] = true
		s.next = append(s.next, place{page: page, file: file, pairs: pairs})
	}
	return file
}

// maxSyncing is how many files are made durable at once: file systems do many in the time of one.
const maxSyncing = 16

// sync makes all files and their names durable.
func (s *staticSite) sync(ctx context.Context) error {
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	work, within := guard.WithContext(ctx)
	work.SetLimit(maxSyncing)
	err := filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case within.Err() != nil:
			return context.Cause(within)
		case e.IsDir():
			work.Go(func() error { return atomicfs.SyncDir(path) })
		default:
			work.Go(func() error { return syncFile(path) })
		}
		return nil
	})
	return errors.Join(err, work.Wait())
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// byBundle orders pages so that those of a package and of a bundle, which need what is read of it, follow each other.
func byBundle(a, b place) int {
	return cmp.Or(slices.Compare(a.pairs[:min(len(a.pairs), 4)], b.pairs[:min(len(b.pairs), 4)]), strings.Compare(a.file, b.file))
}

// filesOfPage makes the addresses of a page.
type filesOfPage struct {
	s    *staticSite
	at   place
	page *page
}

// view implements [files]. The pages of a package follow each other.
func (f *filesOfPage) view(name string) (*view, error) {
	return f.s.views.get(name, 1, func() (*view, error) { return f.page.readView(name) })
}

// bundle implements [files]. The pages of a bundle and of its neighbours follow each other.
func (f *filesOfPage) bundle(place *blob) (*readBundle, error) {
	return f.s.bundles.get(place, place.length, func() (*readBundle, error) { return f.page.readBundle(place) })
}

// manifest implements [files]: the file has a digest of the content, and which of the bundles with it the page is made of
// makes no difference.
func (f *filesOfPage) manifest(page string, b *declcfg.Bundle, m *manifest, version string) string {
	if page == "definition" {
		version = m.definition(version)
	}
	named := withValues([]string{"package", b.Package, "name", m.name, "of", m.content(), "version", version})
	return f.relative(f.s.findAs(fileName(page, named), page,
		withValues([]string{"package", b.Package, "name", b.Name, "file", m.at, "version", version})))
}

// to implements [files]. A filtered list is the first page with a fragment, which static.js reads.
func (f *filesOfPage) to(page string, pairs []string) string {
	pairs = withValues(pairs)
	switch {
	case page == "icon":
		if file := f.s.icons[pairs[1]]; file != "" {
			return f.relative(file)
		}
		return ""
	case page == "./" && len(pairs) > 0 && (len(pairs) > 2 || pairs[0] != "page"):
		return f.relative(f.s.find(page, nil)) + "#" + strings.TrimPrefix(link("", pairs...), "?")
	case pages()[page] == nil, f.s.leavesOut(page, pairs):
		return ""
	}
	return f.relative(f.s.find(page, pairs))
}

func (f *filesOfPage) asset(name string) string { return f.relative(f.s.assets[name]) }

// relative returns the address of a file of the site.
func (f *filesOfPage) relative(file string) string {
	return strings.Repeat("../", strings.Count(f.at.file, "/")) + file
}

// head implements [files].
func (f *filesOfPage) head(p *page) {
	p.emit(`<meta http-equiv="Content-Security-Policy" content="` + csp + `">` + "\n")
	if p.base != "" {
		p.emit(`<meta property="og:url" content="{}">`+"\n", p.base)
		if p.of != nil && f.s.icons[p.of.name] != "" {
			p.emit(`<meta property="og:image" content="{}">`+"\n", p.absolute(f.relative(f.s.icons[p.of.name])))
		}
	}
	if f.at.page == "./" {
		p.emit(`<script src="{}" defer data-list="{}"></script>`+"\n", p.asset("static.js"), f.relative(f.s.list))
	}
}
