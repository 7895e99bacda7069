package submission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

func findCatalogFiles(_ context.Context, c *catalogCheck, emit rules.Emit) {
	for _, file := range c.files[1:] {
		emit(rules.Finding{Package: c.operator, File: file, Message: "the catalog is in " + path.Base(c.files[0]) + " already"})
	}
}

// packaged has what rules ask of a bundle in a catalog.
type packaged struct {
	name, image string
	objects     bool // it has olm.bundle.object
	line        int
}

// bundles returns the bundles of the package's catalog. What cannot be read is emitted, once.
func (c *catalogCheck) bundles(ctx context.Context, emit rules.Emit) iter.Seq[packaged] {
	fail := func(line int, err error) {
		if !c.unread {
			c.unread = true
			emit(rules.Finding{Package: c.operator, File: c.files[0], Line: line, Message: "the catalog cannot be read: " + err.Error()})
		}
	}
	return func(yield func(packaged) bool) {
		info, err := fs.Stat(c.fsys, c.files[0])
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is not a regular file")
		}
		if err != nil {
			fail(0, err)
			return
		}
		f, err := c.fsys.Open(c.files[0])
		if err != nil {
			fail(0, err)
			return
		}
		defer f.Close()
		split := canon.NewSplitter(f, canon.Limits{})
		var conv canon.Converter
		var text []byte
		for ctx.Err() == nil {
			doc, err := split.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				fail(0, err)
				return
			}
			if text, err = conv.Append(text[:0], doc); err != nil {
				fail(doc.Line, err)
			}
			if err != nil || jsonscan.TextAt(text, "schema") != declcfg.SchemaBundle {
				continue
			}
			b := packaged{name: jsonscan.TextAt(text, "name"), image: jsonscan.TextAt(text, "image"), line: doc.Line}
			jsonscan.Elements(jsonscan.Member(text, "properties"), func(p []byte) bool {
				b.objects = jsonscan.TextAt(p, "type") == declcfg.PropertyBundleObject
				return !b.objects
			})
			if !yield(b) {
				return
			}
		}
	}
}

func findImages(ctx context.Context, c *catalogCheck, emit rules.Emit) {
	if len(c.config.registries) == 0 {
		return
	}
	var images []string // the first of them
	n, first := 0, 0
	for b := range c.bundles(ctx, emit) {
		if b.image == "" || slices.ContainsFunc(c.config.registries, func(registry string) bool {
			rest, ok := strings.CutPrefix(b.image, strings.TrimSuffix(registry, "/"))
			return ok && (registry == "" || rest == "" || strings.ContainsRune("/:@", rune(rest[0])))
		}) {
			continue
		}
		if n++; n == 1 {
			first = b.line
		}
		if len(images) < maxFew {
			images = append(images, b.image)
		}
	}
	if n > 0 {
		emit(rules.Finding{Package: c.operator, File: c.files[0], Line: first, Field: "image",
			Message: fmt.Sprintf("images of bundles are in registries that config.yaml does not allow: %s; it allows %s",
				fewOf(images, n), strings.Join(c.config.registries, ", "))})
	}
}

// maxFew is how many names a message has.
const maxFew = 5

// few joins names, if they are many the first of them.
func few(names []string) string { return fewOf(names, len(names)) }

// fewOf joins the first of n names.
func fewOf(names []string, n int) string {
	if n > maxFew {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxFew], ", "), n-maxFew)
	}
	return strings.Join(names, ", ")
}

// catalogName is the form of the names of catalogs that are for one OpenShift version.
var catalogName = lazyregexp.New(`^v\d+\.\d+$`)

func findObjects(ctx context.Context, c *catalogCheck, emit rules.Emit) {
	v, err := openshift.Parse(c.name)
	if err != nil || !catalogName().MatchString(c.name) || v.Compare(openshift.Version{Major: 4, Minor: 17}) < 0 {
		return
	}
	n, first := 0, 0
	for b := range c.bundles(ctx, emit) {
		if b.objects {
			if n++; n == 1 {
				first = b.line
			}
		}
	}
	if n > 0 {
		emit(rules.Finding{Package: c.operator, File: c.files[0], Line: first, Field: "properties",
			Message: fmt.Sprintf("%d of the bundles have olm.bundle.object, and the catalog is for OpenShift %s", n, v)})
	}
}

func findFormat(ctx context.Context, c *catalogCheck, emit rules.Emit) {
	sub, err := fs.Sub(c.fsys, c.dir)
	if err == nil {
		_, err = declcfg.ValidateFS(ctx, sub, declcfg.LoadOptions{Jobs: 1})
	}
	var invalid *declcfg.ValidationError
	switch {
	case ctx.Err() != nil || err == nil:
	case !errors.As(err, &invalid):
		emit(rules.Finding{File: c.dir, Message: err.Error()})
	default:
		for _, p := range invalid.Problems {
			f := rules.Finding{Package: p.Package, Channel: p.Channel, Bundle: p.Bundle, Line: p.Position.Line,
				Column: p.Position.Column, Message: p.Text(), Fix: rules.FixOf(p.Rule)}
			f.File = path.Join(c.dir, p.Position.File)
			emit(f)
		}
	}
}
