package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

// Read reads the bundle whose root is fsys: a directory, or the tree of an image. It reads what opm and OLM v0 read:
// the first document of each file in manifests, and in metadata the first file with annotations, dependencies or
// properties, whatever its name. [Bundle.StrictProblems] reports what OLM v1 cannot read of that.
//
// A bundle that [ReadOptions] declare as plain+v0 may be a directory of manifests without metadata.
//
// Further documents of a file are in Objects too, with a warning in Problems; undecodable files are skipped with a
// warning. Bundles of plain manifests need neither a ClusterServiceVersion nor metadata, and of a Helm chart no
// manifest is read.
//
// The error is a [*ReadError], which is [ErrInvalid] or [ErrLimit], or an error of the file system or context. With a
// *ReadError the bundle is returned as far as it was read, for callers that report all problems. Read is safe for
// concurrent use.
func Read(ctx context.Context, fsys fs.FS, o ReadOptions) (*Bundle, error) {
	if fsys == nil {
		return nil, fmt.Errorf("%w: filesystem is nil", ErrInvalid)
	}
	r := &reader{fsys: fsys, options: o, limits: o.Limits.withDefaults(), b: &Bundle{},
		lines: bundlefs.NewLocator(fsys)}
	r.conv.Limits = canon.Limits{MaxDocument: int(r.limits.File), MaxDepth: r.limits.Depth}
	if err := r.bundle(ctx); err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	if len(r.errs) > 0 {
		passed := slices.DeleteFunc(passedOver(r.b.Problems), func(p Problem) bool { return slices.Contains(r.errs, p) })
		return r.b, &ReadError{r.errs, r.more, passed}
	}
	return r.b, nil
}

// errStop ends reading after a fatal problem that makes further reading useless. It is never returned to callers.
var errStop = errors.New("stop")

// reader reads one bundle.
type reader struct {
	fsys    fs.FS
	options ReadOptions
	limits  Limits
	b       *Bundle

	errs      []Problem // the fatal problems
	more      int       // number of further ones
	told      int       // number of the others
	lines     *bundlefs.Locator
	entries   int
	documents int
	document  int   // index in the current file
	total     int64 // bytes of files
	decoded   int64 // bytes of objects
	provided  map[API]bool

	conv    canon.Converter
	split   canon.Splitter
	raw     []byte // the current file
	text    bytes.Reader
	scratch []byte // its current document as canonical JSON
}

// warn records input that was skipped.
func (r *reader) warn(p Problem) {
	p.Severity = SeverityWarning
	r.report(p)
}

// addProblem records a problem of the bundle that does not prevent reading it.
func (r *reader) addProblem(p Problem) {
	p.Severity = SeverityError
	r.report(p)
}

// mostProblems is how many problems are reported per bundle: only crafted bundles have more.
const mostProblems = 1000

func (r *reader) report(p Problem) {
	if r.told++; r.told > mostProblems {
		return
	}
	if r.told == mostProblems {
		p = Problem{Severity: p.Severity, Rule: RuleLimit,
			Message: fmt.Sprintf("more than %d problems: further ones are not told", mostProblems-1)}
	}
	r.b.Problems = append(r.b.Problems, p)
	if r.options.Warn != nil {
		r.options.Warn(p)
	}
}

// fatal records why the bundle cannot be used.
func (r *reader) fatal(p Problem) {
	if len(r.errs) == problem.Most {
		r.more++
		if p.Rule != RuleLimit {
			return
		}
		r.errs = r.errs[:problem.Most-1] // an exceeded limit ends reading and is always reported
	}
	p.Severity = SeverityError
	r.errs = append(r.errs, p)
	r.b.Problems = append(r.b.Problems, p)
}

// limit records that a limit was exceeded and ends reading.
func (r *reader) limit(file, message string) error {
	r.fatal(Problem{Rule: RuleLimit, File: file, Message: message})
	return errStop
}

func (r *reader) bundle(ctx context.Context) error {
	b := r.b
	b.MetadataDir = r.directory(AnnotationMetadata, r.options.Labels[AnnotationMetadata], "metadata")
	hasMetadata, err := r.metadata(ctx)
	if err != nil {
		return err
	}
	b.ManifestsDir = r.directory(AnnotationManifests, b.Annotations[AnnotationManifests], "manifests")
	if r.options.MediaType == PlainV0 && !hasMetadata && r.isFlat() {
		b.ManifestsDir = "."
	}
	r.mediaType()
	if b.MediaType == Helm && r.isChart() {
		return nil
	}
	if err := r.manifests(ctx); err != nil {
		return err
	}
	r.checkDeclared()
	if b.MediaType != RegistryV1 && b.CSV == nil {
		return nil
	}
	if !hasMetadata {
		r.fatal(Problem{Rule: RuleDirectory, File: b.MetadataDir,
			Message: "the metadata directory is missing: put annotations.yaml into it"})
	} else if b.AnnotationsFile == "" {
		r.fatal(Problem{Rule: RuleAnnotations, File: b.MetadataDir,
			Message: "Could not find annotations file: no file here has a list of annotations that names a package " +
				"and channels"})
	} else {
		r.checkIdentifier("package", b.Package, annotation(b.AnnotationsFile, AnnotationPackage))
	}
	return nil
}

// directory returns the directory that an annotation names, or the usual one if that does not exist. A path that leads
// out of the bundle is fatal.
func (r *reader) directory(key, named, usual string) string {
	clean := path.Clean(named)
	at := func(format string, args ...any) Problem {
		return r.problem(RuleDirectory, annotation(r.b.AnnotationsFile, key), fmt.Sprintf(format, args...))
	}
	switch {
	case named == "":
	case path.Clean("/"+usual) == clean:
		r.warn(at("%s is absolute: write %q", fault.Quote(named), usual+"/"))
	case path.IsAbs(named):
		r.fatal(at("%s is an absolute path: name a directory of the bundle, such as %q", fault.Quote(named), usual+"/"))
	case !fs.ValidPath(clean) || strings.ContainsRune(named, '\\') || slices.ContainsFunc(strings.Split(clean, "/"),
		func(s string) bool { return badName(s) != "" }):
		r.fatal(at("%s leaves the bundle: name a directory of the bundle, such as %q", fault.Quote(named), usual+"/"))
	default:
		if info, err := fs.Stat(r.fsys, clean); clean == usual || err == nil && info.IsDir() {
			return clean
		}
		r.addProblem(at("%s is not a directory of the bundle; %q is read", fault.Quote(named), usual))
	}
	return usual
}

// mediaType determines the media type of the manifests.
func (r *reader) mediaType() {
	b := r.b
	b.MediaType = MediaType(b.Annotations[AnnotationMediaType])
	b.MediaType = cmp.Or(b.MediaType, r.options.MediaType)
	switch b.MediaType {
	case RegistryV1, Plain, PlainV0, Helm:
	case "":
		if b.MediaType = RegistryV1; b.AnnotationsFile == "" && r.isChart() {
			b.MediaType = Helm
		}
	default:
		r.addProblem(r.problem(RuleMediaType, annotation(b.AnnotationsFile, AnnotationMediaType),
			fmt.Sprintf("unknown media type %s: write %q", fault.Quote(string(b.MediaType)), RegistryV1)))
		b.MediaType = RegistryV1
	}
}

// isFlat reports whether the bundle is a directory of files without a manifests directory.
func (r *reader) isFlat() bool {
	if r.b.ManifestsDir != "manifests" || r.isDir("manifests") {
		return false
	}
	entries, err := fs.ReadDir(r.fsys, ".")
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() })
}

// isChart reports whether the bundle is a Helm chart: it has a Chart.yaml at its root or in manifests.
func (r *reader) isChart() bool {
	for _, dir := range []string{".", r.b.ManifestsDir} {
		if info, err := fs.Stat(r.fsys, path.Join(dir, "Chart.yaml")); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// Paths returns the paths to extract from an image so that the bundle in it can be read with [Read], given the image's
// labels.
func Paths(labels map[string]string) []string {
	paths := []string{"manifests", "metadata"}
	for _, key := range []string{AnnotationManifests, AnnotationMetadata} {
		clean := path.Clean(labels[key])
		if labels[key] != "" && clean != "." && fs.ValidPath(clean) && !slices.Contains(paths, clean) {
			paths = append(paths, clean)
		}
	}
	if MediaType(labels[AnnotationMediaType]) == Helm {
		paths = append(paths, "Chart.yaml")
	}
	return paths
}
