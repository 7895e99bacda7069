package manifests_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// collection is what was recorded of operator-controller.
type collection struct {
	cases   []recordedCase
	errors  map[string]string       // by the case's file
	bundles map[string]fstest.MapFS // by NAME/VERSION
}

// recordedCase is a row of cases.tsv.
type recordedCase struct {
	file, bundle, api string
	certs             manifests.CertProvider
	gates             []manifests.Gate
	targets           []string
	config            json.RawMessage
	sum               string // first digits of the SHA-256 of the answer
}

var readCollection = sync.OnceValues(func() (*collection, error) {
	c := &collection{errors: map[string]string{}, bundles: map[string]fstest.MapFS{}}
	err := archive(filepath.Join("..", "..", "testdata", "olmv1", "render.tar.zst"),
		func(name string, text []byte) error {
			dir, rest, _ := strings.Cut(name, "/")
			switch dir {
			case "cases.tsv":
				return c.readCases(string(text))
			case "errors":
				// The condition of a ClusterExtension has the text of a terminal error without what says that it is one.
				c.errors[strings.TrimPrefix(rest, "./")] = strings.TrimPrefix(strings.TrimSuffix(string(text), "\n"),
					"terminal error: ")
			case "bundles":
				c.add(rest, text)
			}
			return nil
		})
	return c, err
})

// add adds the file NAME/VERSION/FILE of a bundle. A name that ends in a slash is a directory.
func (c *collection) add(name string, text []byte) {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 3 || parts[2] == "" {
		return
	}
	key := parts[0] + "/" + parts[1]
	if c.bundles[key] == nil {
		c.bundles[key] = fstest.MapFS{}
	}
	file := &fstest.MapFile{Data: text, Mode: 0o644}
	if strings.HasSuffix(name, "/") {
		file.Mode = fs.ModeDir | 0o755
	}
	c.bundles[key][path.Clean(parts[2])] = file
}

func (c *collection) readCases(text string) error {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Split(line, "\t")
		if i == 0 {
			continue
		}
		if len(f) != 8 {
			return errors.New("cases.tsv: " + line)
		}
		value := func(i int) string { _, v, _ := strings.Cut(f[i], "="); return v }
		one := recordedCase{file: f[0], bundle: path.Dir(f[0]), api: f[1], sum: f[7],
			certs: manifests.CertProvider(value(2))}
		for _, name := range strings.FieldsFunc(value(3), func(r rune) bool { return r == ',' }) {
			var gate manifests.Gate
			if err := gate.UnmarshalText([]byte(name)); err != nil {
				return err
			}
			one.gates = append(one.gates, gate)
		}
		if v := value(4); v != "" {
			one.targets = strings.Split(v, ",")
		}
		if v := value(5); v != "" {
			one.config = json.RawMessage(v)
		}
		c.cases = append(c.cases, one)
	}
	return nil
}

// archive calls f with the files and directories of a tar archive that is compressed with zstd.
func archive(name string, f func(name string, text []byte) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	z, err := zstd.NewReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(tr)
		if err == nil {
			err = f(h.Name, text)
		}
		if err != nil {
			return err
		}
	}
}

// whole returns the collection, with the bundles of the recorded catalogs.
func whole(t testing.TB) *collection {
	t.Helper()
	c, err := readCollection()
	if err != nil {
		t.Fatal(err)
	}
	catalogs(t, c)
	return c
}

// catalogs adds the bundles of the recorded catalogs, once.
func catalogs(t testing.TB, c *collection) {
	t.Helper()
	catalogsOnce.Do(func() {
		root := string(recorded.All(t))
		err := archive(filepath.Join(root, "bundles-all-dev-packages.tar.zst"), func(name string, text []byte) error {
			c.add(strings.TrimPrefix(name, "./"), text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		bundles := os.DirFS(filepath.Join(root, "bundles"))
		err = fs.WalkDir(bundles, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(bundles, name)
			c.add(name, text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

var catalogsOnce sync.Once

// Every recorded answer: the objects byte for byte, and the texts of errors.
func TestRecorded(t *testing.T) {
	c := whole(t)
	if len(c.cases) != 1098 {
		t.Fatalf("%d cases", len(c.cases))
	}
	for _, one := range c.cases {
		files, ok := c.bundles[one.bundle]
		if !ok {
			t.Errorf("%s: no such bundle", one.bundle)
			continue
		}
		objects, err := one.answer(t, files)
		if want, bad := c.errors[one.file]; bad {
			if err == nil || !slices.Equal(one.lines(err.Error()), one.lines(want)) {
				t.Errorf("%s:\ngot  %v\nwant %s", one.file, err, want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", one.file, err)
			continue
		}
		var text []byte
		for _, o := range objects {
			text = append(append(text, o.JSON...), '\n')
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:8]) != one.sum {
			t.Errorf("%s: other objects:\n%.2000s", one.file, text)
		}
	}
}

// answer renders the bundle as the case says.
func (one recordedCase) answer(t *testing.T, files fs.FS) ([]manifests.Object, error) {
	b, err := manifests.Read(files)
	if err != nil {
		return nil, err
	}
	if one.api == "renderer" {
		return b.Render(manifests.RenderOptions{InstallNamespace: "install-ns", TargetNamespaces: one.targets,
			Certs: one.certs})
	}
	s := manifests.Settings{InstallNamespace: "install-ns", Certs: one.certs, Gates: one.gates, Config: one.config}
	objects, err := b.Manifests(s)
	problems := b.Problems(s)
	if (err == nil) != (len(problems) == 0) {
		t.Errorf("%s: error %v and problems %v", one.file, err, problems)
	}
	if err != nil && !slices.ContainsFunc(problems, func(p manifests.Problem) bool {
		return strings.Contains(err.Error(), p.Message)
	}) {
		t.Errorf("%s: the error %v is not among the problems %v", one.file, err, problems)
	}
	return objects, err
}

// lines returns the lines of an error. The real program checks the properties of an object in an order by chance:
// lines about deploymentConfig are sorted, and of unknown fields any one is shown.
func (one recordedCase) lines(text string) []string {
	lines := strings.Split(text, "\n")
	if strings.Contains(string(one.config), "deploymentConfig") {
		slices.Sort(lines)
	}
	if bytes.Contains(one.config, []byte("watchNamespaces")) {
		for i := range lines {
			lines[i] = strings.Replace(lines[i], `unknown field "watchNamespaces"`, `unknown field "foo"`, 1)
		}
	}
	return lines
}
