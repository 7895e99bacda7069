package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/dockerfile"
)

// DefaultImage is the default base and builder image of a Dockerfile.
const DefaultImage = "quay.io/operator-framework/opm:latest"

// configsLabel names the path of the catalog in a catalog image.
const configsLabel = "operators.operatorframework.io.index.configs.v1"

// Dockerfile describes the Dockerfile of a catalog directory.
type Dockerfile struct {
	Dir          string            // the catalog directory, relative to the build context
	BaseImage    string            // the image that serves; "scratch" for one that holds files only
	BuilderImage string            // the image that fills the serve cache
	Labels       map[string]string // further labels of the image
}

// Text returns the Dockerfile with opm's line structure.
func (d Dockerfile) Text() (string, error) {
	switch {
	case d.BaseImage == "":
		return "", errors.New("base image is unset")
	case d.Dir == "":
		return "", errors.New("index directory is unset")
	case d.BuilderImage == "scratch":
		return "", fmt.Errorf("invalid builder image: %q", d.BuilderImage)
	}
	err := errors.Join(dockerfile.CheckImage("builder image", d.BuilderImage),
		dockerfile.CheckImage("base image", d.BaseImage))
	if err != nil {
		return "", err
	}
	source, err := dockerfile.Copy(d.Dir, "/configs")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		"# The builder image is expected to contain\n# /bin/opm (with serve subcommand)\nFROM %s as builder\n\n",
		d.BuilderImage)
	fmt.Fprintf(&b, "# Copy FBC root into image at /configs and pre-populate serve cache\nADD %s\n", source)
	b.WriteString("RUN [\"/bin/opm\", \"serve\", \"/configs\", \"--cache-dir=/tmp/cache\", \"--cache-only\"]\n\n")
	fmt.Fprintf(&b, "FROM %s\n", d.BaseImage)
	if d.BaseImage == "scratch" {
		b.WriteString("# OLMv0 CatalogSources that use binary-less images must set:\n# " +
			"spec:\n#   grpcPodConfig:\n#     extractContent:\n" +
			"#       catalogDir: /configs\n#       cacheDir: /tmp/cache\n\n")
	} else {
		b.WriteString("# The base image is expected to contain\n# /bin/opm (with serve subcommand) and " +
			"/bin/grpc_health_probe\n\n" +
			"# Configure the entrypoint and command\nENTRYPOINT [\"/bin/opm\"]\nCMD [\"serve\", \"/configs\", " +
			"\"--cache-dir=/tmp/cache\"]\n\n")
	}
	b.WriteString("COPY --from=builder /configs /configs\nCOPY --from=builder /tmp/cache /tmp/cache\n\n")
	fmt.Fprintf(&b,
		"# Set FBC-specific label for the location of the FBC root directory\n# in the image\nLABEL %s=/configs\n",
		configsLabel)
	if len(d.Labels) > 0 {
		b.WriteString("\n# Set other custom labels\n")
	}
	further, err := labelLines(d.Labels)
	if err != nil {
		return "", err
	}
	return b.String() + further, nil
}

// labelLines returns the instructions for additional labels, sorted by key.
func labelLines(labels map[string]string) (string, error) {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if strings.ContainsFunc(k+labels[k], unicode.IsControl) {
			return "", fmt.Errorf("invalid label %q", k+"="+labels[k])
		}
		fmt.Fprintf(&b, "LABEL %s=%s\n", quoteLabel(k), quoteLabel(labels[k]))
	}
	return b.String(), nil
}

// quoteLabel quotes s: builders interpret a backslash before a quote, a backslash or a dollar sign.
func quoteLabel(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(s) + `"`
}

// ParseLabels parses labels of the form key=value; the last of several with the same key counts.
func ParseLabels(labels []string) (map[string]string, error) {
	out := make(map[string]string, len(labels))
	for _, l := range labels {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("invalid label %q", l)
		}
		out[k] = v
	}
	return out, nil
}

// Write writes the Dockerfile of the catalog directory dir next to it, as <dir>.Dockerfile, and returns its
// path. d.Dir is set to the directory's name. An existing file is not replaced: the error is then [fs.ErrExist].
func (d Dockerfile) Write(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("provided root path %q is not a directory", dir)
	}
	path := filepath.Clean(dir)
	if d.Dir = filepath.Base(path); d.Dir == "." || d.Dir == ".." {
		if path, err = filepath.Abs(dir); err != nil {
			return "", err
		}
		d.Dir = filepath.Base(path)
	}
	text, err := d.Text()
	if err != nil {
		return "", err
	}
	path += ".Dockerfile"
	if _, err := os.Lstat(path); err == nil {
		return "", fmt.Errorf("path %q: %w", path, fs.ErrExist)
	}
	if err := atomicfs.WriteNewFile(path, []byte(text), 0o666); errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("path %q: %w", path, fs.ErrExist) // it appeared just now
	} else if err != nil {
		return "", err
	}
	return path, nil
}
