package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
)

const (
	kindCSV = "ClusterServiceVersion"
	kindCRD = "CustomResourceDefinition"
)

// manifests reads the objects of the bundle.
func (r *reader) manifests(ctx context.Context) error {
	b := r.b
	files, dirs, err := r.list(b.ManifestsDir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !r.isDir(b.ManifestsDir) {
		r.fatal(Problem{Rule: RuleDirectory, File: b.ManifestsDir, Message: "the manifests directory is missing"})
		return errStop
	}
	if err != nil {
		return r.failed(b.ManifestsDir, err)
	}
	for _, d := range dirs {
		if strings.HasPrefix(d, "..") {
			continue // internal entries of a mounted ConfigMap
		}
		p := Problem{Rule: RuleDirectory, File: path.Join(b.ManifestsDir, d),
			Message: "a directory within the manifests is passed over: move its files up"}
		r.warn(p)
		r.b.strict = append(r.b.strict, strictly(p, "a directory within the manifests"))
	}
	folded := map[string]string{}
	for _, name := range files {
		key := strings.ToLower(name)
		if other, ok := folded[key]; ok {
			r.fatal(Problem{Rule: RuleName, File: path.Join(b.ManifestsDir, name),
				Message: fmt.Sprintf("%s and %s differ only by case: rename one", fault.Quote(other),
					fault.Quote(name))})
		}
		folded[key] = name
	}
	for _, name := range files {
		file := path.Join(b.ManifestsDir, name)
		if strings.HasPrefix(name, ".") {
			r.warn(Problem{Rule: RuleFile, File: file, Message: "a file whose name begins with a dot is passed over"})
			continue
		}
		if err := r.manifest(ctx, file); err != nil {
			return err
		}
	}
	return r.objects()
}

func (r *reader) isDir(name string) bool {
	info, err := fs.Stat(r.fsys, name)
	return err == nil && info.IsDir()
}

// failed returns the file system's error about a name, or records a fatal problem if a bundle can cause such an error.
func (r *reader) failed(name string, err error) error {
	if errors.Is(err, errStop) {
		return err
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, context.Canceled) || errors.Is(err,
		context.DeadlineExceeded) || ofMachine(err) {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.fatal(Problem{Rule: RuleFile, File: name, Message: reason(err)})
	return errStop
}

// ofMachine reports whether an error is about the machine, such as too many open files, and not one that links and
// names in a bundle can cause.
func ofMachine(err error) bool {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return false
	}
	switch number {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL:
		return false
	}
	return true
}

func (r *reader) manifest(ctx context.Context, file string) error {
	first := len(r.b.Objects)
	err := r.eachDocument(ctx, file, func(d canon.Doc, json []byte, size int64) bool {
		o := Object{File: file, Document: r.document, Line: d.Line, Size: size}
		if why := o.head(json); why != "" {
			p := Problem{Rule: RuleSyntax, File: file, Line: d.Line, Message: why}
			if r.document == 0 {
				p.Message += "; the file is passed over"
			}
			r.warn(p)
			r.b.strict = append(r.b.strict, strictly(p, why))
			return r.document > 0
		}
		o.JSON = bytes.Clone(json)
		r.b.Objects = append(r.b.Objects, o)
		return true
	})
	if n := len(r.b.Objects) - first; n > 1 && !r.b.MediaType.isPlain() {
		second := r.b.Objects[first+1]
		r.warn(Problem{Rule: RuleDocuments, File: file, Line: second.Line,
			Message: fmt.Sprintf(
				"%d documents in one file: only the first counts for opm and OLM v0, %s and what follows is not "+
					"read; give each a file of its own", n, second.title())})
	}
	return err
}

// eachDocument calls f with the non-empty documents of a file as canonical JSON, valid during the call, until f returns
// false. r.document counts them. An undecodable document is a warning and ends the file.
func (r *reader) eachDocument(ctx context.Context, file string,
	f func(d canon.Doc, json []byte, size int64) bool) error {
	if err := r.read(ctx, file); err != nil {
		return r.failed(file, err)
	}
	r.text.Reset(r.raw)
	r.split.Reset(&r.text, r.conv.Limits)
	for r.document = 0; ; r.document++ {
		d, err := r.split.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			if r.documents++; r.documents > r.limits.Documents {
				return r.limit(file, fmt.Sprintf("more than %d documents in the bundle", r.limits.Documents))
			}
			r.conv.Warn = func(line int, message string) {
				r.warn(Problem{Rule: RuleDuplicateKey, File: file, Line: d.Line + line - 1, Message: message})
			}
			r.scratch, err = r.conv.Append(r.scratch[:0], d)
			// Aliases may enlarge each document within its limit, but not all of them together.
			if r.decoded += int64(len(r.scratch)); err == nil && r.decoded > r.limits.Total {
				return r.limit(file, fmt.Sprintf("the objects of the bundle have more than %d bytes", r.limits.Total))
			}
		}
		if err != nil {
			return r.undecodable(file, d.Line, err)
		}
		if r.document == 0 && hasEmptyStart(r.raw, d.Line) {
			r.warn(Problem{Rule: RuleDocuments, File: file, Line: d.Line,
				Message: "a document separator stands before this one: opm and OLM v0 read the empty document before " +
					"it; remove the separator"})
		}
		if !f(d, r.scratch, int64(len(r.raw))) {
			return nil
		}
	}
}

// hasEmptyStart reports whether other readers see an empty document before the line of the first non-empty one: there
// is a separator there that is not on the first line.
func hasEmptyStart(raw []byte, line int) bool {
	for n := 1; n < line; n++ {
		end := bytes.IndexByte(raw, '\n') + 1
		if n > 1 && bytes.HasPrefix(raw, []byte("---")) {
			return true
		}
		raw = raw[end:]
	}
	return false
}

// undecodable records a document that is not valid YAML or JSON. An exceeded limit is fatal.
func (r *reader) undecodable(file string, first int, err error) error {
	var syntax *canon.SyntaxError
	var limit *canon.LimitError
	if !errors.As(err, &syntax) && !errors.As(err, &limit) {
		return r.failed(file, err)
	}
	p := syntaxPlace(err, first, r.raw)
	p.File = file
	if p.Rule == RuleLimit {
		r.fatal(p)
		return errStop
	}
	r.b.strict = append(r.b.strict, strictly(p, p.Message))
	if r.document > 0 {
		p.Message += "; the rest of the file is passed over"
	} else {
		p.Message += "; the file is passed over"
	}
	r.warn(p)
	return nil
}

// head sets the fields that identify the object. It returns the reason if the document is not an object.
func (o *Object) head(json []byte) string {
	if json[0] != '{' {
		return "not a Kubernetes object, but " + string(shape.Of(json))
	}
	jsonscan.Members(json, func(key, value []byte) bool {
		switch string(key) {
		case "apiVersion":
			o.APIVersion, _ = jsonscan.Text(value)
		case "kind":
			o.Kind, _ = jsonscan.Text(value)
		case "metadata":
			o.Name, o.Namespace = jsonscan.TextAt(value, "name"), jsonscan.TextAt(value, "namespace")
		}
		return string(key) < "metadata"
	})
	if o.Kind == "" {
		return "not a Kubernetes object: it has no kind"
	}
	return ""
}

func (o *Object) title() string { return o.Kind + " " + fault.Quote(o.Name) }

// objects finds the ClusterServiceVersion among the objects and checks what every bundle of that kind must have.
func (r *reader) objects() error {
	b := r.b
	plain := b.MediaType != RegistryV1
	first := -1
	for i := range b.Objects {
		o := &b.Objects[i]
		if o.Kind != kindCSV || !o.First() {
			continue
		}
		if first < 0 {
			first = i
			continue
		}
		r.addProblem(Problem{Rule: RuleCSVSecond, File: o.File, Line: o.Line, Message: fmt.Sprintf(
			"two csvs found in one bundle: %s is passed over, because %s comes first; remove one", fault.Quote(o.Name),
			b.Objects[first].File)})
	}
	switch {
	case !slices.ContainsFunc(b.Objects, Object.First):
		r.fatal(Problem{Rule: ruleNoObjects, File: b.ManifestsDir,
			Message: "no bundle objects found: no file here begins with a Kubernetes object"})
	case first < 0 && !plain:
		r.fatal(Problem{Rule: RuleCSVMissing, File: b.ManifestsDir,
			Message: "no csv in bundle: no file here begins with a ClusterServiceVersion"})
	case first >= 0:
		b.CSV = r.csv(b.Objects[first])
		r.apis()
	}
	return nil
}
