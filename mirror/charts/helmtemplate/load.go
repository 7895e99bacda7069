package helmtemplate

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/ignore"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// Limits bound what is read of a chart. A zero field means its default. Sizes are in bytes.
type Limits struct {
	Archive int64 // the file of an archive: 32 MiB
	Total   int64 // all files of a chart and of its subcharts, uncompressed: 100 MiB, as Helm's
	File    int64 // one file: 5 MiB, as Helm's
	Files   int   // files and directories: 20,000
	Depth   int   // subcharts in subcharts: 16
}

func (l Limits) withDefaults() Limits {
	set := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	set(&l.Archive, 32<<20)
	set(&l.Total, 100<<20)
	set(&l.File, 5<<20)
	if l.Files == 0 {
		l.Files = 20_000
	}
	if l.Depth == 0 {
		l.Depth = 16
	}
	return l
}

// maxPath is the length of the name of a file in a chart, maxPathDepth the number of its directories.
const maxPath, maxPathDepth = 1024, 64

// Chart is a chart with its subcharts as they were read. It is not changed by rendering and safe for concurrent use.
type Chart struct {
	meta chart.Metadata
	tree tree
}

// tree has the files of a chart and those of each subchart in its directory charts.
type tree struct {
	files []*chart.File
	subs  []tree
}

// Name returns the name of the chart.
func (c *Chart) Name() string { return c.meta.Name }

// Version returns the version of the chart.
func (c *Chart) Version() string { return c.meta.Version }

// AppVersion returns the version of what the chart installs.
func (c *Chart) AppVersion() string { return c.meta.AppVersion }

// KubeVersion returns the versions of Kubernetes that the chart says it supports.
func (c *Chart) KubeVersion() string { return c.meta.KubeVersion }

// Supports reports whether the chart says that it supports a version of Kubernetes, or says nothing.
func (c *Chart) Supports(version string) bool {
	return c.meta.KubeVersion == "" || compatible(c.meta.KubeVersion, version)
}

// Library reports whether the chart only has templates for other charts.
func (c *Chart) Library() bool { return strings.EqualFold(c.meta.Type, "library") }

// Annotations returns the annotations in Chart.yaml, which callers must not change.
func (c *Chart) Annotations() map[string]string { return c.meta.Annotations }

// Load reads a chart from a directory or an archive. Errors name the path.
func Load(ctx context.Context, name string, l Limits) (*Chart, error) {
	l = l.withDefaults()
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return loadDir(ctx, name, l)
	}
	data, err := regularfile.ReadNamed(ctx, name, l.Archive)
	if err != nil {
		return nil, err
	}
	return Parse(ctx, data, name, l)
}

// Parse reads a chart from the bytes of an archive; name is the archive in messages.
func Parse(ctx context.Context, archive []byte, name string, l Limits) (*Chart, error) {
	l = l.withDefaults()
	r := &loader{ctx: ctx, limits: l, left: l.Total}
	t, err := r.archive(archive, 0)
	return finish(t, name, err)
}

func loadDir(ctx context.Context, dir string, l Limits) (*Chart, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r := &loader{ctx: ctx, limits: l, left: l.Total}
	t, err := r.directory(root)
	return finish(t, dir, err)
}

func finish(t tree, name string, err error) (*Chart, error) {
	var c *chart.Chart
	if err == nil {
		c, err = assemble(t)
	}
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", name, err)
	}
	return &Chart{*c.Metadata, t}, nil
}

// loader reads the files of one chart.
type loader struct {
	ctx    context.Context
	limits Limits
	left   int64
	files  int
}

var errInvalid = fault.ErrInvalid

func (r *loader) limit(what string, limit any) error {
	return fmt.Errorf("%w: %s (limit %v)", fault.ErrLimit, what, limit)
}

// count counts a file or a directory before anything is read of it.
func (r *loader) count(name string) error {
	r.files++
	switch {
	case r.files > r.limits.Files:
		return r.limit("it has more files", r.limits.Files)
	case len(name) > maxPath:
		return r.limit("the name of the file "+fault.Quote(name)+" is too long", maxPath)
	case strings.Count(name, "/") > maxPathDepth:
		return r.limit("directories in directories at "+fault.Quote(name), maxPathDepth)
	}
	return r.ctx.Err()
}

// read reads one file within the limits.
func (r *loader) read(in io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, min(r.limits.File, r.left)+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fault.Quote(name), err)
	}
	if r.left -= int64(len(data)); r.left < 0 {
		return nil, r.limit("its files have more bytes", r.limits.Total)
	}
	if int64(len(data)) > r.limits.File {
		return nil, r.limit("the file "+fault.Quote(name)+" has more bytes", r.limits.File)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}

// archive reads an archive, which is in depth other ones.
func (r *loader) archive(data []byte, depth int) (tree, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return tree{}, fmt.Errorf("%w: it is no archive compressed by gzip: %w", errInvalid, err)
	}
	// What is no file counts as well: headers alone can be long.
	in := tar.NewReader(io.LimitReader(zipped, 2*r.limits.Total))
	var files []*chart.File
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return tree{}, fmt.Errorf("%w: the archive: %w", errInvalid, err)
		}
		if err := r.count(h.Name); err != nil {
			return tree{}, err
		}
		if h.FileInfo().IsDir() || h.Typeflag == tar.TypeXGlobalHeader || h.Typeflag == tar.TypeXHeader {
			continue
		}
		name, err := nameInArchive(h.Name)
		if err != nil {
			return tree{}, err
		}
		if h.Typeflag != tar.TypeReg {
			return tree{}, fmt.Errorf("%w: %s is no regular file: links and devices are not supported in archives",
				errInvalid, fault.Quote(h.Name))
		}
		content, err := r.read(in, h.Name)
		if err != nil {
			return tree{}, err
		}
		files = append(files, &chart.File{Name: name, Data: content})
	}
	if len(files) == 0 {
		return tree{}, fmt.Errorf("%w: the archive has no files", errInvalid)
	}
	return r.split(files, depth)
}

// nameInArchive returns the name of a file without the archive's one directory, by Helm's rules.
func nameInArchive(full string) (string, error) {
	slashed := strings.ReplaceAll(full, `\`, "/")
	first, name, _ := strings.Cut(slashed, "/")
	switch clean := path.Clean(name); {
	case first == "Chart.yaml":
		return "", fmt.Errorf("%w: Chart.yaml is not in a directory", errInvalid)
	case path.IsAbs(name), path.IsAbs(slashed) && name == "":
		return "", fmt.Errorf("%w: the file %s has an absolute name", errInvalid, fault.Quote(full))
	case clean == ".":
		return "", fmt.Errorf("%w: the file %s is in no directory", errInvalid, fault.Quote(full))
	case strings.HasPrefix(clean, ".."), len(clean) > 2 && clean[1] == ':' && clean[2] == '/':
		return "", fmt.Errorf("%w: the file %s is outside of the chart", errInvalid, fault.Quote(full))
	default:
		return clean, nil
	}
}

// directory reads a directory. Links are followed within it.
func (r *loader) directory(root *os.Root) (tree, error) {
	rules := ignore.Empty()
	if f, err := root.Open(ignore.HelmIgnore); err == nil {
		content, err := r.read(f, ignore.HelmIgnore)
		f.Close()
		if err == nil {
			rules, err = ignore.Parse(bufio.NewReader(bytes.NewReader(content)))
		}
		if err != nil {
			return tree{}, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return tree{}, err
	}
	rules.AddDefaults()
	var files []*chart.File
	var walk func(dir string) error
	walk = func(dir string) error {
		f, err := root.Open(dir)
		if err != nil {
			return err
		}
		names, err := f.Readdirnames(r.limits.Files - r.files + 1)
		f.Close()
		if err != nil && err != io.EOF {
			return err
		}
		slices.Sort(names)
		for _, base := range names {
			name := path.Join(dir, base)
			if err := r.count(name); err != nil {
				return err
			}
			info, err := root.Lstat(name)
			if err != nil {
				return err
			}
			if rules.Ignore(name, info) {
				continue
			}
			if info.Mode()&fs.ModeSymlink != 0 {
				if info, err = root.Stat(name); err != nil {
					return fmt.Errorf("the link %s cannot be followed: charts have links only to what is in their directory: %w",
						fault.Quote(name), err)
				}
				if rules.Ignore(name, info) {
					continue
				}
			}
			if info.IsDir() {
				if err := walk(name); err != nil {
					return err
				}
				continue
			}
			if !info.Mode().IsRegular() {
				return fmt.Errorf("%w: %s is no regular file", errInvalid, fault.Quote(name))
			}
			f, err := root.Open(name)
			if err != nil {
				return err
			}
			content, err := r.read(f, name)
			f.Close()
			if err != nil {
				return err
			}
			files = append(files, &chart.File{Name: name, Data: content})
		}
		return nil
	}
	if err := walk("."); err != nil {
		return tree{}, err
	}
	return r.split(files, 0)
}

// split moves the files of subcharts into trees of their own, in the order of their names.
func (r *loader) split(files []*chart.File, depth int) (tree, error) {
	var t tree
	subs := map[string][]*chart.File{}
	for _, f := range files {
		inside, ok := strings.CutPrefix(f.Name, "charts/")
		if !ok || path.Ext(f.Name) == ".prov" {
			t.files = append(t.files, f)
			continue
		}
		name, _, _ := strings.Cut(inside, "/")
		subs[name] = append(subs[name], &chart.File{Name: inside, Data: f.Data})
	}
	if len(subs) > 0 && depth >= r.limits.Depth {
		return t, r.limit("subcharts in subcharts", r.limits.Depth)
	}
	for _, name := range slices.Sorted(maps.Keys(subs)) {
		if strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			continue
		}
		sub, err := r.subchart(name, subs[name], depth+1)
		if err != nil {
			return t, fmt.Errorf("subchart %s: %w", fault.Quote(name), err)
		}
		t.subs = append(t.subs, sub)
	}
	return t, nil
}

func (r *loader) subchart(name string, files []*chart.File, depth int) (tree, error) {
	if path.Ext(name) == ".tgz" {
		if files[0].Name != name {
			return tree{}, fmt.Errorf("%w: it is a directory, not an archive", errInvalid)
		}
		return r.archive(files[0].Data, depth)
	}
	var inside []*chart.File
	for _, f := range files { // a file that is directly in charts is left out
		if _, rest, ok := strings.Cut(f.Name, "/"); ok {
			inside = append(inside, &chart.File{Name: rest, Data: f.Data})
		}
	}
	return r.split(inside, depth)
}

// assemble makes a chart of its files: a new one each time, as rendering changes it.
func assemble(t tree) (*chart.Chart, error) {
	c := &chart.Chart{}
	for _, f := range t.files {
		if f.Name == "Chart.yaml" {
			if c.Metadata == nil {
				c.Metadata = &chart.Metadata{}
			}
			if err := Unmarshal(f.Data, c.Metadata); err != nil {
				return nil, fmt.Errorf("%w: Chart.yaml: %w", errInvalid, err)
			}
			if c.Metadata.APIVersion == "" {
				c.Metadata.APIVersion = chart.APIVersionV1
			}
		}
	}
	if c.Metadata == nil {
		return nil, fmt.Errorf("%w: Chart.yaml is missing", errInvalid)
	}
	for _, f := range t.files {
		var err error
		switch {
		case f.Name == "Chart.yaml":
		case f.Name == "Chart.lock", f.Name == "requirements.lock":
			c.Lock = &chart.Lock{}
			err = Unmarshal(f.Data, &c.Lock)
		case f.Name == "values.yaml":
			c.Values = map[string]any{}
			err = Unmarshal(f.Data, &c.Values)
		case f.Name == "values.schema.json":
			c.Schema = f.Data
		case f.Name == "requirements.yaml":
			err = Unmarshal(f.Data, c.Metadata)
		case strings.HasPrefix(f.Name, "templates/"):
			c.Templates = append(c.Templates, f)
		default:
			c.Files = append(c.Files, f)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errInvalid, f.Name, err)
		}
		if strings.HasPrefix(f.Name, "requirements.") && c.Metadata.APIVersion == chart.APIVersionV1 {
			c.Files = append(c.Files, f)
		}
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%w: Chart.yaml: %w", errInvalid, err)
	}
	for _, sub := range t.subs {
		s, err := assemble(sub)
		if err != nil {
			return nil, fmt.Errorf("subchart of %s: %w", c.Name(), err)
		}
		c.AddDependency(s)
	}
	return c, nil
}
