package declcfg_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

func load(t *testing.T, content string) (*declcfg.Catalog, error) {
	t.Helper()
	return declcfg.Load(context.Background(), fstest.MapFS{"catalog.yaml": {Data: []byte(content)}},
		declcfg.LoadOptions{})
}

func write(t *testing.T, c *declcfg.Catalog, f declcfg.Format) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNumbersAreKept(t *testing.T) {
	const blob = `{"schema":"custom","n":9007199254740993,"f":1.0,"e":1e400,"z":-0,"big":123456789012345678901234567890,"deep":[{"x":0.10}]}`
	c, err := load(t, blob)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []declcfg.Format{declcfg.FormatJSON, declcfg.FormatYAML} {
		out := write(t, c, f)
		for _, number := range []string{"9007199254740993", "1.0", "1e400", "-0", "123456789012345678901234567890",
			"0.10"} {
			if !strings.Contains(out, " "+number) {
				t.Errorf("%s lost %s:\n%s", f, number, out)
			}
		}
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	for _, blob := range []string{
		`{"schema":"olm.package","name":"foo","defaultChannel":"x","future":{"a":[1.50,null]}}`,
		`{"schema":"olm.channel","name":"x","package":"foo","entries":[],"future":true}`,
		`{"schema":"olm.bundle","name":"b","package":"foo","image":"","\u00fcnknown":"\u2028"}`,
		`{"schema":"olm.deprecations","package":"foo","entries":[],"note":"n"}`,
	} {
		c, err := load(t, blob)
		if err != nil {
			t.Fatal(err)
		}
		for b := range c.Blobs() {
			got := string(declcfg.AppendJSON(nil, b, false))
			want := strings.ReplaceAll(blob, `\u00fc`, "ü")
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	}
}

// A written catalog can be loaded, with the same content.
func TestWriteThenLoadIsIdentity(t *testing.T) {
	fsys, err := declcfg.OpenDir("../testdata/fbc/mini")
	if err != nil {
		t.Fatal(err)
	}
	c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := write(t, c, declcfg.FormatJSON)
	for _, f := range []declcfg.Format{declcfg.FormatJSON, declcfg.FormatYAML} {
		dir := filepath.Join(t.TempDir(), "out")
		if err := declcfg.WriteFS(context.Background(), dir, f, c.Blobs()); err != nil {
			t.Fatal(err)
		}
		again, err := declcfg.Load(context.Background(), os.DirFS(dir), declcfg.LoadOptions{Jobs: 3})
		if err != nil {
			t.Fatal(err)
		}
		if got := write(t, again, declcfg.FormatJSON); got != want {
			t.Errorf("%s: %s", f, firstDifference([]byte(got), []byte(want)))
		}
	}
}

func TestPositions(t *testing.T) {
	c, err := load(t,
		"# a comment\n\n---\nschema: olm.package\nname: foo\n---\n\n# another\nschema: olm.channel\nname: "+
			"x\npackage: foo\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Packages[0].Pos.String(); got != "catalog.yaml:4" {
		t.Errorf("package at %s", got)
	}
	if got := c.Channels[0].Pos.String(); got != "catalog.yaml:9" {
		t.Errorf("channel at %s", got)
	}
}

func TestProblemsHaveTheLineOfTheirEntry(t *testing.T) {
	fsys := fstest.MapFS{
		"c.yaml": {Data: []byte(
			"---\nschema: olm.package\nname: foo\ndefaultChannel: a\n---\nschema: olm.channel\nname: a\npackage: " +
				"foo\nentries:\n- name: x\n- name: z\n  replaces: x\n  skipRange: nonsense\n")},
		"b.json": {Data: []byte(
			"{\"schema\":\"olm.bundle\",\n\"name\":\"x\",\"package\":\"foo\",\n\"image\":\"a@b\",\n\"properties\":[{\"type\":\"olm.package\",\"value\":{\"packageName\":\"foo\",\"version\":\"1.0.0\"}}]}\n")},
	}
	_, err := declcfg.ValidateFS(context.Background(), fsys, declcfg.LoadOptions{})
	for _, want := range []string{"c.yaml:11:3]", "b.json:3:9]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no problem at %s in: %v", want, err)
		}
	}
}

func TestEveryBrokenFileIsReported(t *testing.T) {
	fsys := fstest.MapFS{
		"a.yaml": {Data: []byte("schema: olm.package\nname: foo\n---\nschema: [\n")},
		"b.json": {Data: []byte(`{"schema":"olm.package","name":`)},
		"c.yaml": {Data: []byte("name: foo\n")},
		"d.yaml": {Data: []byte("schema: olm.package\nname: foo\ndefaultChannel: x\n")},
		"e.json": {Data: []byte(
			`{"schema":"olm.bundle","name":"b","package":"foo","properties":[{"type":"olm.bundle.object","value":{"data":"%%%"}}]}`)},
		"f.json": {Data: []byte(`{"schema":"olm.bundle","name":"b","package":"foo","image":5}`)},
	}
	_, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
	var invalid *declcfg.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatalf("%T: %v", err, err)
	}
	var files []string
	for _, p := range invalid.Problems {
		files = append(files, p.Position.File)
		if p.Position.Line == 0 {
			t.Errorf("%s: no line", p.Message)
		}
	}
	if got, want := strings.Join(files, " "), "a.yaml b.json c.yaml e.json f.json"; got != want {
		t.Errorf("problems in %s, want %s\n%v", got, want, err)
	}
}

func TestHostileFiles(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.json")
	must(t, os.WriteFile(secret, []byte(`{"auths":{"x":"SECRET"}}`), 0o600))
	tests := map[string]func(path string) error{
		"a link out of the tree": func(p string) error { return os.Symlink(secret, p) },
		"a relative link out":    func(p string) error { return os.Symlink("../../../../../../"+secret, p) },
		"a dangling link":        func(p string) error { return os.Symlink("nowhere", p) },
		"a FIFO":                 func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"a picture": func(p string) error {
			return os.WriteFile(p, []byte("\x89PNG\r\n\x1a\n\x00\x00"), 0o600)
		},
		"a byte order mark": func(p string) error {
			return os.WriteFile(p, []byte("\xef\xbb\xbf{\"schema\":\"x\"}"), 0o600)
		},
		"UTF-16": func(p string) error { return os.WriteFile(p, []byte("\xff\xfes\x00c\x00"), 0o600) },
		"invalid UTF-8": func(p string) error {
			return os.WriteFile(p, []byte("schema: x\nname: \xff\n"), 0o600)
		},
		"deep nesting, JSON": func(p string) error {
			return os.WriteFile(p,
				[]byte(`{"schema":"x","a":`+strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001)+"}"), 0o600)
		},
		"deep nesting, YAML": func(p string) error {
			return os.WriteFile(p,
				[]byte("schema: x\na: "+strings.Repeat("[", 10_001)+strings.Repeat("]", 10_001)+"\n"), 0o600)
		},
		"an alias bomb": func(p string) error {
			text := "schema: x\na0: &a0 [x,x,x,x,x,x,x,x,x]\n"
			for i := 1; i < 10; i++ {
				ref := "*a" + itoa(i-1)
				text += "a" + itoa(i) + ": &a" + itoa(i) + " [" + strings.TrimSuffix(strings.Repeat(ref+",", 9),
					",") + "]\n"
			}
			return os.WriteFile(p, []byte(text), 0o600)
		},
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "catalog.yaml")
			must(t, prepare(path))
			defer os.Remove(path)
			fsys, err := declcfg.OpenDir(dir)
			must(t, err)
			// The cost is measured in allocations. Waiting for a FIFO would never end.
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatal("loaded")
			}
			if !strings.Contains(err.Error(), "catalog.yaml") {
				t.Errorf("error does not name the file: %v", err)
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("error tells a secret: %v", err)
			}
			if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 100 {
				t.Errorf("allocated %d MiB", n)
			}
		})
	}
}

// A ConfigMap mounted as a volume has its files as links through a link to a directory.
func TestConfigMapVolume(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "..2026_01_01"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "..2026_01_01", "catalog.yaml"), []byte("schema: olm.package\nname: foo\n"),
		0o600))
	must(t, os.Symlink("..2026_01_01", filepath.Join(dir, "..data")))
	must(t, os.Symlink("..data/catalog.yaml", filepath.Join(dir, "catalog.yaml")))
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	for _, d := range []string{dir, link} {
		fsys, err := declcfg.OpenDir(d)
		must(t, err)
		c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
		must(t, err)
		if len(c.Packages) != 1 {
			t.Errorf("%d packages, want 1", len(c.Packages))
		}
	}
}

func TestDuplicateKeysWarn(t *testing.T) {
	var mu sync.Mutex
	var warnings []string
	fsys := fstest.MapFS{"a.yaml": {Data: []byte("---\nschema: olm.package\nname: a\nname: b\n")}}
	c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{Warn: func(p declcfg.Position, m string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, p.String()+" "+m)
	}})
	must(t, err)
	if c.Packages[0].Name != "b" {
		t.Errorf("name is %q: the last key counts", c.Packages[0].Name)
	}
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "a.yaml:4 ") {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestLoadStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := declcfg.Load(ctx, fstest.MapFS{"a.yaml": {Data: []byte("schema: x\n")}}, declcfg.LoadOptions{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWalkKeepsOrder(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 100 {
		name := "f" + strings.Repeat("0", 3-len(itoa(i))) + itoa(i)
		fsys[name] = &fstest.MapFile{Data: []byte(
			"schema: x\nname: " + name + "a\n---\nschema: x\nname: " + name + "b\n")}
	}
	var names []string
	must(t, declcfg.Walk(context.Background(), fsys, declcfg.LoadOptions{Jobs: 4}, func(m *declcfg.Meta) error {
		names = append(names, m.Name)
		return nil
	}))
	if len(names) != 200 {
		t.Fatalf("%d blobs", len(names))
	}
	for i := 1; i < len(names); i++ {
		if names[i] <= names[i-1] {
			t.Fatalf("%s after %s", names[i], names[i-1])
		}
	}
	stop := errors.New("stop")
	if err := declcfg.Walk(context.Background(), fsys, declcfg.LoadOptions{},
		func(*declcfg.Meta) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
