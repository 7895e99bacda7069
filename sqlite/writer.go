package sqlite

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

// writer fills the tables from a stream of blobs.
type writer struct {
	*statements
	options  WriteOptions
	written  Written
	findings []Finding
	problems problem.List[error]
	nextID   int64             // next id of channel_entry
	packages map[string]bool   // finished packages
	bundles  map[string]string // package by bundle name
	strays   []stray
	text     int64 // bytes of the values of properties, which readers hold in memory
	pkg      *packageWriter
	encoded  []byte // buffer for one encoded manifest
}

// stray is a name in a channel's entries that is in no channel of the package.
type stray struct{ pkg, channel, bundle string }

func newWriter(s *statements, o WriteOptions) *writer {
	return &writer{statements: s, options: o, nextID: 1, packages: map[string]bool{}, bundles: map[string]string{}}
}

// writeAll writes all blobs. An invalid package does not end the checks of the others; errors are joined.
func (w *writer) writeAll(ctx context.Context, blobs iter.Seq2[declcfg.Blob, error]) error {
	for blob, err := range blobs {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := w.blob(ctx, blob); err != nil {
			return err
		}
	}
	if err := w.finishPackage(ctx); err != nil {
		return err
	}
	for _, s := range w.strays {
		if other, ok := w.bundles[s.bundle]; ok {
			w.problem(s.pkg,
				fmt.Errorf("%w: channel %s leads to bundle %s of package %s, and a database would take it for a "+
					"bundle of both packages",
					ErrInvalid, fault.Quote(s.channel), fault.Quote(s.bundle), fault.Quote(other)))
		}
	}
	if err := w.problems.Err(); err != nil {
		return err
	}
	if err := w.run(ctx, completePlurals); err != nil {
		return err
	}
	w.written.Findings = sortFindings(w.findings)
	if lost := losses(w.written.Findings); len(lost) > 0 && !w.options.Lossy {
		return &LossError{lost}
	}
	return nil
}

func (w *writer) problem(pkg string, err error) {
	w.problems.AddNew(func() error { return fmt.Errorf("package %s: %w", fault.Quote(pkg), err) })
}

// blob takes the next blob of the stream.
func (w *writer) blob(ctx context.Context, blob declcfg.Blob) error {
	name := blob.BlobPackage()
	if w.pkg != nil && w.pkg.name != name {
		if err := w.finishPackage(ctx); err != nil {
			return err
		}
	}
	if schema := blob.BlobSchema(); declcfg.Rank(schema) == declcfg.RankOther {
		w.findings = append(w.findings, Finding{Kind: Lost, Package: name, Field: schema,
			Reason: strings.TrimSpace("a database has no place for blobs of this schema: " + quoteIf(blob.BlobName()))})
		return nil
	}
	if w.pkg == nil {
		if w.packages[name] {
			return fmt.Errorf("%w: the blobs of package %s do not come together", ErrInvalid, fault.Quote(name))
		}
		w.packages[name] = true
		w.pkg = &packageWriter{writer: w, name: name}
	}
	return w.pkg.blob(ctx, blob)
}

func quoteIf(s string) string {
	if s == "" {
		return ""
	}
	return fault.Quote(s)
}

func (w *writer) finishPackage(ctx context.Context) error {
	if w.pkg == nil {
		return nil
	}
	err := w.pkg.finish(ctx)
	w.pkg = nil
	return err
}

// packageWriter writes the blobs of one package.
type packageWriter struct {
	*writer
	name    string
	part    declcfg.Catalog // without manifests
	plans   map[string]*plan
	broken  bool // its rows will be discarded
	heads   []string
	version map[string]string // bundle by version
}

func (p *packageWriter) lost(f Finding) {
	f.Kind, f.Package = Lost, p.name
	p.findings = append(p.findings, f)
}

func (p *packageWriter) changed(f Finding) {
	f.Kind, f.Package = Changed, p.name
	p.findings = append(p.findings, f)
}

func (p *packageWriter) blob(ctx context.Context, blob declcfg.Blob) error {
	switch b := blob.(type) {
	case *declcfg.Package:
		p.part.Packages = append(p.part.Packages, *b)
		p.pkg(b)
	case *declcfg.Channel:
		if p.plans != nil {
			return fmt.Errorf("%w: channel %s of package %s comes after a bundle", ErrInvalid, fault.Quote(b.Name),
				fault.Quote(p.name))
		}
		p.part.Channels = append(p.part.Channels, *b)
		for _, property := range b.Properties {
			p.lost(Finding{Channel: b.Name, Field: "properties",
				Reason: "channels have no properties in a database: " + fault.Quote(property.Type)})
		}
		p.unknown(Finding{Channel: b.Name}, b.Unknown)
	case *declcfg.Bundle:
		if p.plans == nil {
			p.plan()
		}
		if err := p.bundle(ctx, b); err != nil {
			return fmt.Errorf("package %s: bundle %s: %w", fault.Quote(p.name), fault.Quote(b.Name), err)
		}
		reduced := *b
		reduced.Properties = slices.Clone(b.Properties)
		reduced.Reduce()
		p.part.Bundles = append(p.part.Bundles, reduced)
	case *declcfg.Deprecations:
		p.part.Deprecations = append(p.part.Deprecations, *b)
		p.unknown(Finding{Field: declcfg.SchemaDeprecations}, b.Unknown)
	default:
		return fmt.Errorf("%w: a blob of type %T", ErrInvalid, blob)
	}
	return nil
}

func (p *packageWriter) pkg(b *declcfg.Package) {
	if b.Description != "" {
		p.lost(Finding{Field: "description", Reason: "packages have no description in a database"})
	}
	for _, property := range b.Properties {
		p.lost(Finding{Field: "properties",
			Reason: "packages have no properties in a database: " + fault.Quote(property.Type)})
	}
	p.unknown(Finding{}, b.Unknown)
}

// unknown reports fields that their schema does not define.
func (p *packageWriter) unknown(at Finding, fields []declcfg.Field) {
	for _, f := range fields {
		at := at
		at.Field = strings.TrimPrefix(at.Field+"."+f.Name, ".")
		at.Reason = "a database has no place for fields that the schema does not define"
		p.lost(at)
	}
}

// finish validates the package, whose blobs are all known now, and writes the tables about several bundles.
func (p *packageWriter) finish(ctx context.Context) error {
	if p.plans == nil {
		p.plan()
	}
	valid := p.part.Validate
	if p.options.AnyImages {
		valid = p.part.ValidateAnyImages
	}
	err := valid()
	if err == nil {
		err = p.checkTexts()
	}
	if err != nil || p.broken {
		if err != nil {
			p.problem(p.name, err)
		}
		return nil
	}
	l := newLayout(p.nextID, p.part.Channels, p.heads)
	p.nextID = l.nextID
	for i := range p.part.Channels {
		if err := p.run(ctx, insertChannel, p.part.Channels[i].Name, p.name, p.heads[i]); err != nil {
			return err
		}
		p.written.Channels++
	}
	for _, r := range l.rows {
		var replaces any
		if r.replaces != nil {
			replaces = r.replaces.id
		}
		if err := p.run(ctx, insertEntry, r.id, r.channel, p.name, r.bundle, replaces, r.depth); err != nil {
			return err
		}
		p.written.Entries++
		if !l.members[r.bundle] {
			p.strays = append(p.strays, stray{p.name, r.channel, r.bundle})
		}
	}
	if err := p.run(ctx, insertPackage, p.name, p.part.Packages[0].DefaultChannel); err != nil {
		return err
	}
	p.written.Packages++
	return p.deprecations(ctx)
}

// checkTexts refuses names that a reader would refuse. Those of bundles have been checked.
func (p *packageWriter) checkTexts() error {
	for _, c := range p.part.Channels {
		if err := checkText("name of the channel", c.Name); err != nil {
			return err
		}
		for _, e := range c.Entries {
			for _, s := range append([]string{e.Name, e.Replaces}, e.Skips...) {
				if err := checkText("entry of channel "+fault.Quote(c.Name), s); err != nil {
					return err
				}
			}
		}
	}
	return checkText("name of the package", p.name)
}

// checkText refuses text that a text column cannot hold.
func checkText(what, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: %s is not UTF-8: %s", ErrInvalid, what, fault.Quote(s))
	}
	if strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("%w: %s holds a NUL: %s", ErrInvalid, what, fault.Quote(s))
	}
	return nil
}
