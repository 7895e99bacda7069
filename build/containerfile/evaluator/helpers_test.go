//go:build !nobuildah

package evaluator

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/imagetest"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/layers"
)

var amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}

// contextDir creates a context: "name" is a file, "name -> target" a link, "name/" a directory.
func contextDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name, target, link := strings.Cut(name, " -> ")
		at := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(target, at)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		default:
			err = os.WriteFile(at, []byte(text), 0o644)
		}
		if err == nil && !link {
			mode := fs.FileMode(0o644) // independent of the umask
			if strings.HasSuffix(name, "/") {
				mode = 0o755
			}
			err = os.Chmod(at, mode)
		}
		for up := filepath.Dir(at); err == nil && len(up) > len(dir); up = filepath.Dir(up) {
			err = os.Chmod(up, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// entryText formats an archive entry as one line.
func entryText(h *tar.Header, content []byte) string {
	switch h.Typeflag {
	case tar.TypeDir:
		return fmt.Sprintf("%o %d:%d %s", h.Mode, h.Uid, h.Gid, h.Name)
	case tar.TypeSymlink:
		return fmt.Sprintf("%d:%d %s -> %s", h.Uid, h.Gid, h.Name, h.Linkname)
	}
	return fmt.Sprintf("%o %d:%d %s %q", h.Mode, h.Uid, h.Gid, h.Name, content)
}

// evaluator returns an evaluator of a text; directories in the options are filled in.
func evaluator(t testing.TB, text string, o Options) (*Evaluator, error) {
	t.Helper()
	f, err := Parse("Containerfile", []byte(text))
	if err != nil {
		return nil, err
	}
	if o.Context == "" {
		o.Context = t.TempDir()
	}
	if o.Open == nil {
		o.Open = imagetest.Client(t).Image
	}
	o.Dir = t.TempDir()
	e, err := New(f, o)
	if err == nil {
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return e, err
}

// evaluate returns the stage and the formatted entries of its top layer.
func evaluate(t testing.TB, text string, o Options) (*parsedStage, []string, error) {
	t.Helper()
	e, err := evaluator(t, text, o)
	if err != nil {
		return nil, nil, err
	}
	s, err := e.Evaluate(t.Context(), amd64)
	if err != nil {
		return nil, nil, err
	}
	if len(s.Layers) == 0 {
		return s, nil, nil
	}
	lines, err := layerLines(t, s.Layers[len(s.Layers)-1])
	return s, lines, err
}

func layerLines(t testing.TB, l *layers.Layer) ([]string, error) {
	t.Helper()
	var b bytes.Buffer
	if _, err := l.Write(t.Context(), &b, layers.Options{Compression: layers.Uncompressed}); err != nil {
		return nil, err
	}
	var lines []string
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		lines = append(lines, entryText(h, content))
	}
}

// layout evaluates a text, writes the image to a layout and returns the layout's name.
func layout(t testing.TB, text string, o Options) string {
	t.Helper()
	e, err := evaluator(t, text, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Evaluate(t.Context(), amd64)
	if err != nil {
		t.Fatal(err)
	}
	img, err := build.Assemble(t.Context(),
		[]build.Custom{{Platform: s.Platform, Layers: s.Layers, Config: s.ConfigText}}, build.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	name := "oci:" + filepath.Join(t.TempDir(), "image") + ":v1"
	d, err := images.BuiltIn().Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := images.Copy(t.Context(), img.Store(), img.Top(), []transport.Destination{d},
		images.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// tarFile returns an archive of headers; the content of each file is its name.
func tarFile(t testing.TB, headers ...tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
