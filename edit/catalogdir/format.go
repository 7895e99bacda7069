package catalogdir

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/declcfg"
)

// FormatOptions configure [Dir.Format].
type FormatOptions struct {
	// DropComments removes the comments of YAML files; otherwise a file with comments is [ErrComments].
	DropComments bool
	// Check finds the files to change and writes nothing.
	Check bool
}

// Format gives every file of the catalog its canonical form: one blob behind the other as [declcfg.Encoder] writes
// them, sorted by package, then olm.package, channels and bundles by name, other schemas, olm.deprecations. Entries of
// channels keep their order, files their names, and each file its format: JSON if all of its documents are JSON, else
// YAML. It returns the names of the files that differ from that, sorted. One blob is in memory at a time.
//
// After an error the directory is unchanged.
func (d *Dir) Format(ctx context.Context, o FormatOptions) ([]string, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	var all []*fileEdit
	var names []string
	var errs []error
	for _, f := range d.index.files {
		if len(f.docs) == 0 {
			continue
		}
		e := &fileEdit{name: f.name, file: f, order: canonicalOrder(f.docs),
			json: !slices.ContainsFunc(f.docs, func(doc *document) bool { return !doc.json })}
		same, err := d.isCanonical(ctx, e)
		if err != nil {
			return nil, err
		}
		if same {
			continue
		}
		errs = append(errs, d.checkPlace(e))
		if !o.DropComments {
			errs = append(errs, d.checkComments(f))
		}
		all, names = append(all, e), append(names, f.name)
	}
	sortNames(names)
	if o.Check {
		return names, nil
	}
	if err := errors.Join(errs...); err != nil || len(all) == 0 {
		return nil, err
	}
	if err := d.carryOut(ctx, all); err != nil {
		return nil, fmt.Errorf("format %s: %w", d.name, err)
	}
	d.index = nil
	return names, nil
}

// canonicalOrder returns the documents of a file in the order of the canonical form.
func canonicalOrder(docs []*document) []*document {
	order := slices.Clone(docs)
	slices.SortStableFunc(order, func(a, b *document) int {
		return cmp.Or(cmp.Compare(a.packageName(), b.packageName()),
			cmp.Compare(declcfg.Rank(a.schema), declcfg.Rank(b.schema)),
			cmp.Compare(a.schema, b.schema), cmp.Compare(a.name, b.name))
	})
	return order
}

// packageName returns the package that a document belongs to: its own name for a package.
func (d *document) packageName() string {
	if d.schema == declcfg.SchemaPackage {
		return d.name
	}
	return d.pkg
}

// isCanonical reports whether a file has the canonical form already.
func (d *Dir) isCanonical(ctx context.Context, e *fileEdit) (same bool, err error) {
	from, err := d.openDocuments(e.file)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	w := &comparer{with: from.File}
	if _, err := rewrite(ctx, w, e, from, defaultForm(e.json), &declcfg.Texts{}); err != nil && !errors.Is(err, errDiffers) {
		return false, err
	}
	return !w.differs && w.at == e.file.info.Size(), nil
}

// comparer compares what is written to it with a file.
type comparer struct {
	with    io.ReaderAt
	at      int64
	differs bool
}

// errDiffers ends the writing of a file that differs.
var errDiffers = errors.New("the text differs")

func (c *comparer) Write(text []byte) (int, error) {
	there := make([]byte, len(text))
	n, err := c.with.ReadAt(there, c.at)
	if c.at += int64(n); !bytes.Equal(there[:n], text) {
		c.differs = true
		return 0, errDiffers
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// canonical writes the documents of a file in the canonical form and order.
func (r *rewriter) canonical(like form) error {
	for _, doc := range r.edit.order {
		if err := r.ctx.Err(); err != nil {
			return context.Cause(r.ctx)
		}
		blob, err := r.from.read(doc)
		if err == nil {
			err = r.insert(blob, like, nil, like.lineEnd())
		}
		if err != nil {
			return fmt.Errorf("%s: %s %q: %w", r.edit.name, doc.schema, doc.name, err)
		}
	}
	if like.json {
		return r.write([]byte(like.lineEnd()))
	}
	return nil
}

// checkComments refuses a file with comments.
func (d *Dir) checkComments(f *file) (err error) {
	from, err := d.openDocuments(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	end := int64(0)
	for _, doc := range append(slices.Clone(f.docs), &document{file: f, start: f.info.Size(), end: f.info.Size()}) {
		gap, err := from.text(end, doc.start)
		if err != nil {
			return err
		}
		if at := bytes.IndexByte(gap, '#'); at >= 0 {
			return from.commentAt(d.path(f), end+int64(at))
		}
		if end = doc.end; doc.json {
			continue
		}
		text, err := from.text(doc.start, doc.end)
		if err != nil {
			return err
		}
		if line := commentLine(text); line > 0 {
			start := doc.start
			for ; line > 1; line-- {
				start += int64(bytes.IndexByte(text, '\n')) + 1
				text = text[bytes.IndexByte(text, '\n')+1:]
			}
			return from.commentAt(d.path(f), start)
		}
	}
	return nil
}

// path returns the name of a file as the caller's working directory has it.
func (d *Dir) path(f *file) string { return filepath.Join(d.name, filepath.FromSlash(f.name)) }

// commentAt is the error for a comment at a position of a file.
func (r *documentReader) commentAt(name string, at int64) error {
	text, err := r.text(0, at)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s:%d: %w", name, bytes.Count(text, []byte("\n"))+1, ErrComments)
}

// commentLine returns the line of the first comment of a YAML document; 0 if there is none.
func commentLine(text []byte) int {
	if bytes.IndexByte(text, '#') < 0 {
		return 0
	}
	var root yaml.Node
	if yaml.Unmarshal(text, &root) != nil {
		return 0
	}
	lines := strings.Split(string(text), "\n")
	first := 0
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for _, at := range []int{
			findComment(lines, n.HeadComment, n.Line-1, -1),
			findComment(lines, n.LineComment, n.Line, 1),
			findComment(lines, n.FootComment, n.Line, 1),
		} {
			if at > 0 && (first == 0 || at < first) {
				first = at
			}
		}
		for _, child := range n.Content {
			walk(child)
		}
	}
	walk(&root)
	return first
}

// findComment returns the line of a comment of a node, from a line on in steps of 1 or -1: the library has no positions
// of comments. It returns 0 if there is no comment.
func findComment(lines []string, comment string, from, step int) int {
	comment, _, _ = strings.Cut(comment, "\n")
	if comment == "" {
		return 0
	}
	for at := from; at >= 1 && at <= len(lines); at += step {
		before, ok := strings.CutSuffix(strings.TrimRight(lines[at-1], " \t\r"), strings.TrimRight(comment, " \t\r"))
		if ok && (before == "" || strings.HasSuffix(before, " ") || strings.HasSuffix(before, "\t")) {
			return at
		}
	}
	return max(1, from)
}
