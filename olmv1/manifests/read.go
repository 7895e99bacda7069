package manifests

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
)

const manifestsDir = "manifests"

// Read reads the bundle whose root is fsys: metadata/annotations.yaml, every file in manifests, and
// metadata/properties.yaml, in this order. The error is a [*ReadError] with the text of
// operator-controller and is about the first problem; it is of the class of limits if a file has more than 4 MiB, the
// bundle more than 256 MiB or 10,000 files, or a manifest is nested deeper than 100. Read is safe for concurrent use.
func Read(fsys fs.FS) (*Bundle, error) {
	b := &Bundle{}
	f := &files{fsys: fsys}
	if err := b.readAnnotations(f); err != nil {
		return nil, err
	}
	if err := b.readManifests(f); err != nil {
		return nil, err
	}
	if b.csvFile == "" {
		return nil, &ReadError{manifestsDir, fmt.Errorf("no ClusterServiceVersion found in %q", manifestsDir)}
	}
	return b, b.readProperties(f)
}

const annotationsFile = "metadata/annotations.yaml"

func (b *Bundle) readAnnotations(f *files) error {
	text, err := f.read(annotationsFile)
	if err != nil {
		return &ReadError{annotationsFile, err}
	}
	var content AnnotationsFile
	if err := yaml.Unmarshal(text, &content); err != nil {
		return &ReadError{annotationsFile, err}
	}
	b.name = content.Annotations.PackageName
	return nil
}

// AnnotationsFile is what OLM v1 reads of metadata/annotations.yaml. The names of the types are in its errors.
type AnnotationsFile struct {
	Annotations Annotations `json:"annotations"`
}

// Annotations are those of a bundle. Only the name of the package has an effect.
type Annotations struct {
	PackageName        string `json:"operators.operatorframework.io.bundle.package.v1"`
	Channels           string `json:"operators.operatorframework.io.bundle.channels.v1"`
	DefaultChannelName string `json:"operators.operatorframework.io.bundle.channel.default.v1"`
}

func (b *Bundle) readManifests(f *files) error {
	return fs.WalkDir(f.fsys, manifestsDir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return &ReadError{name, newMissingError("stat", name, err)}
		}
		if f.entries++; f.entries > maxEntries {
			return &ReadError{name, limit("more than %d files in %s", maxEntries, manifestsDir)}
		}
		if e.IsDir() {
			if name == manifestsDir {
				return nil
			}
			return &ReadError{name, fmt.Errorf("subdirectories are not allowed within the %q directory of the bundle "+
				"image filesystem: found %q", manifestsDir, name)}
		}
		text, err := f.read(name)
		if err != nil && errors.Is(err, fs.ErrNotExist) {
			return &ReadError{name, err}
		}
		if err == nil {
			err = objects(name, text, true, func(f found) error { return b.add(name, f) })
		} else {
			err = fmt.Errorf("error parsing %s: %w", name, err)
		}
		if err != nil {
			return &ReadError{name, fmt.Errorf("error parsing objects in %q: %w", name, err)}
		}
		return nil
	})
}

// add takes an object into the bundle. Only its kind matters; the last ClusterServiceVersion wins.
func (b *Bundle) add(file string, f found) error {
	if len(b.crds)+len(b.others) >= maxObjects {
		return limit("more than %d objects", maxObjects)
	}
	switch {
	case f.definition != nil:
		b.crds = append(b.crds, *f.definition)
		b.crds[len(b.crds)-1].file = file
	case f.kind() == kindCSV:
		csv := v1alpha1.ClusterServiceVersion{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.object.Object, &csv); err != nil {
			return err
		}
		b.csv, b.csvFile = csv, file
	case f.kind() == kindCRD:
		crd := apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.object.Object, &crd); err != nil {
			return err
		}
		o, err := newObject(crd.APIVersion, crd.Kind, crd.Namespace, crd.Name, crd)
		if err != nil {
			return err
		}
		b.crds = append(b.crds, definition{o, crd.Spec.PreserveUnknownFields, file})
	default:
		b.others = append(b.others, other{*f.object, file})
	}
	return nil
}

// FromObjects makes a bundle of what a catalog has of it: the name of the package, the values of the properties
// olm.bundle.object ({"data": BASE64}, or the objects themselves), and the bundle's properties, from which those of
// metadata/properties.yaml are inferred. The objects have no files: [Problem.File] is empty. Errors are as of [Read],
// but what only the files show (a file that does not parse, a directory in manifests) is not seen.
func FromObjects(pkg string, objs []json.RawMessage, props []declcfg.Property) (*Bundle, error) {
	b := &Bundle{name: pkg}
	hasCSV, total := false, 0
	for _, o := range objs {
		text, err := objectData(o)
		if err != nil {
			return nil, &ReadError{"", err}
		}
		if total += len(text); total > maxTotal {
			return nil, &ReadError{"", limit("the objects have more than %d bytes", maxTotal)}
		}
		err = objects("object", text, true, func(f found) error {
			hasCSV = hasCSV || f.kind() == kindCSV
			return b.add("", f)
		})
		if err != nil {
			return nil, &ReadError{"", err}
		}
	}
	if !hasCSV {
		return nil, &ReadError{"", fmt.Errorf("no ClusterServiceVersion found in %q", manifestsDir)}
	}
	return b, b.mergeProperties(inferred(props))
}

// objectData returns the object of a value of olm.bundle.object.
func objectData(value json.RawMessage) ([]byte, error) {
	if rest, ok := bytes.CutPrefix(value, []byte(`{"data":"`)); ok { // as catalogs are written
		if text, ok := bytes.CutSuffix(rest, []byte(`"}`)); ok {
			decoded := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
			if n, err := base64.StdEncoding.Decode(decoded, text); err == nil {
				return decoded[:n], nil
			}
		}
	}
	var v struct {
		Kind string  `json:"kind"`
		Data *string `json:"data"`
	}
	if err := json.Unmarshal(value, &v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && v.Kind != "" { // an object with a field data of its own, a ConfigMap
			return value, nil
		}
		return nil, fmt.Errorf("olm.bundle.object: %w", err)
	}
	if v.Kind != "" || v.Data == nil {
		return value, nil
	}
	text, err := base64.StdEncoding.DecodeString(*v.Data)
	if err != nil {
		return nil, fmt.Errorf("olm.bundle.object: %w: %w", fault.ErrInvalid, err)
	}
	return text, nil
}

// Limits of what is read. The real program has none; those of package bundle are the same.
const (
	maxFile    = 4 << 20
	maxTotal   = 256 << 20
	maxEntries = 10_000
	maxDepth   = 100
	maxObjects = 10_000
	// maxRendered limits the manifests: each deployment has all annotations of the ClusterServiceVersion, so that they
	// can be a thousand times as large as the bundle. Those of real bundles have some megabytes.
	maxRendered = 16 << 20
)

// limit is an error about a bundle that exceeds one of the limits.
func limit(format string, a ...any) error {
	return fmt.Errorf("%w: %s", fault.ErrLimit, fmt.Sprintf(format, a...))
}

// files reads files of a bundle within the limits.
type files struct {
	fsys    fs.FS
	total   int64
	entries int
}

// read reads a file. Errors of a missing file have the text that operator-controller's have, whatever kind of file
// system it is.
func (f *files) read(name string) (_ []byte, err error) {
	info, err := fs.Stat(f.fsys, name)
	if err != nil {
		return nil, newMissingError("open", name, err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() { // opening a FIFO would wait for its writer
		return nil, fmt.Errorf("read %s: not a regular file", name)
	}
	file, err := f.fsys.Open(name)
	if err != nil {
		return nil, newMissingError("open", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if info.IsDir() {
		return nil, fmt.Errorf("read %s: is a directory", name)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if f.total += int64(len(data)); len(data) > maxFile || f.total > maxTotal {
		return nil, limit("%s has more than %d bytes, or the bundle more than %d", name, maxFile, maxTotal)
	}
	return data, nil
}

// newMissingError gives an error of a file that is not there the text of an operating system's.
func newMissingError(op, name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &absent{fmt.Sprintf("%s %s: no such file or directory", op, name)}
	}
	return err
}

type absent struct{ text string }

func (e *absent) Error() string { return e.text }
func (e *absent) Unwrap() error { return fs.ErrNotExist }
