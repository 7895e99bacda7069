//go:build hostile

package hostile

import (
	"archive/tar"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"
)

// catalogPicture returns the image of a catalog as bindery builds it, without a server: one layer with its annotations.
func catalogPicture(t *testing.T, annotations map[string]string, entries ...*tarEntry) picture {
	l := gzipLayer(t, tarOf(t, entries...))
	p := picture{labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
		layers: []blobOf{l}}
	p.manifest = func(m map[string]any) { annotate(m, 0, annotations) }
	return p
}

// annotate sets annotations of a layer in a manifest.
func annotate(m map[string]any, layer int, annotations map[string]string) {
	a := map[string]string{}
	for k, v := range annotations {
		a["io.github.operator-bindery.layer."+k] = v
	}
	m["layers"].([]any)[layer].(map[string]any)["annotations"] = a
}

// catalogFiles returns the files of a layer with one package.
func catalogFiles(more ...*tarEntry) []*tarEntry {
	dir := func(name string) *tarEntry {
		return entryOf(tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755})
	}
	return append([]*tarEntry{dir("configs/"), dir("configs/foo/"), file("configs/foo/catalog.yaml", healthy)}, more...)
}

// Images whose layers contradict their annotations are refused, or their valid packages are packed again; such layers
// are reused only if the image is trusted and --validate is not given.
func TestHostileStacks(t *testing.T) {
	t.Parallel()
	with := func(k, v string) map[string]string {
		a := map[string]string{"kind": "packages", "packages": "foo"}
		a[k] = v
		return a
	}
	var b strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&b, ",foo%06d", i)
	}
	many := b.String()[1:]
	pic := func(a map[string]string, e ...*tarEntry) func(t *testing.T) picture {
		return func(t *testing.T) picture { return catalogPicture(t, a, catalogFiles(e...)...) }
	}
	plain := with("kind", "packages")
	change := func(f func(p *picture)) func(t *testing.T) picture {
		return func(t *testing.T) picture {
			p := catalogPicture(t, plain, catalogFiles()...)
			f(&p)
			return p
		}
	}
	again := func(n int) func(p *picture) {
		return func(p *picture) {
			one := p.layers[0]
			for range n {
				p.layers = append(p.layers, one)
			}
		}
	}
	entries := func(n int, name, content string) func(t *testing.T) picture {
		return func(t *testing.T) picture {
			var es []*tarEntry
			for i := range n {
				es = append(es, file(fmt.Sprintf(name, i), content))
			}
			return catalogPicture(t, plain, catalogFiles(es...)...)
		}
	}
	link := func(kind byte) *tarEntry {
		return entryOf(tar.Header{Name: "configs/foo/x", Typeflag: kind, Linkname: "/canary/secret"})
	}
	const stacks, packs, same = "1 stacked by digest", "0 stacked by digest", 0
	other := file("configs/bar/catalog.yaml", strings.ReplaceAll(healthy, "foo", "bar"))
	for _, c := range []struct {
		name string
		make func(t *testing.T) picture
		// verify is the class of verify's error; different means that it succeeds and reports differences.
		verify int
		// trust and prove are the results of composing without and with --validate: the class of the error or 0, and a
		// part of the output.
		trust     int
		trustText string
		prove     int
		proveText string
	}{
		{"good", pic(plain), same, 0, stacks, 0, stacks},
		{"100,000 names", pic(with("packages", many)), different, input, "foo000004", input, "foo000004"},
		{"names of nothing", pic(with("packages", "foo,,")), different, 0, packs, 0, packs},
		{"names with dots", pic(with("packages", "../../canary")), different, 0, packs, 0, packs},
		{"names with escapes", pic(with("packages", "foo\x1b[31m\n")), different, 0, packs, 0, packs},
		{"a name twice", pic(with("packages", "foo,foo")), different, 0, packs, 0, packs},
		{"the name of another", pic(with("packages", "bar")), different, input, "bar", input, "bar"},
		{"negative content", pic(with("content", "-9223372036854775808")), same, 0, stacks, 0, stacks},
		{"huge content", pic(with("content", "9223372036854775807")), same, 0, stacks, 0, stacks},
		{"no key", pic(with("key", "sha256:x")), different, 0, stacks, 0, stacks},
		{"key of another", pic(with("key", digest.FromString("x").String())), different, 0, stacks, 0, stacks},
		{"unknown kind", pic(with("kind", "\x1b[31m")), different, 0, packs, 0, packs},
		{"also a server", pic(plain, file("bin/opm", "x")), different, 0, stacks, 0, packs},
		{"also the users", pic(plain, file("etc/passwd", "x")), different, 0, stacks, 0, packs},
		{"separators", pic(plain, file("configs/foo/..\\..\\x", "x")), different, 0, stacks, input, "backslash"},
		{"another package too", pic(plain, other), different, 0, stacks, input, "bar"},
		{"hard link out", pic(plain, link(tar.TypeLink)), different, 0, stacks, input, "hard link"},
		{"symlink out", pic(plain, link(tar.TypeSymlink)), different, 0, stacks, input, "symlink"},
		{"whiteout of the catalog", pic(plain, file(".wh.configs", "")), different, 0, stacks, 0, packs},
		{"whiteout of dotdot", pic(plain, file("configs/.wh...", "")), different, 0, stacks, input, "whiteout"},
		{"600 layers", change(again(600)), limit, limit, "512", limit, "512"},
		{"wrong diffID", change(func(p *picture) { p.layers[0].diffID = digest.FromString("x").String() }), different,
			0, stacks, integrity, "digest mismatch"},
		{"no diffIDs", change(func(p *picture) {
			p.config = func(m map[string]any) { m["rootfs"] = map[string]any{"type": "layers"} }
		}), integrity, integrity, "diff_ids", integrity, "diff_ids"},
		{"configuration of 5 MiB", change(func(p *picture) {
			p.config = func(m map[string]any) { m["x"] = strings.Repeat("x", 5<<20) }
		}), limit, limit, "4194304", limit, "4194304"},
		{"manifest of 5 MiB", change(func(p *picture) {
			p.text = func(t []byte) []byte { return append(t, strings.Repeat(" ", 5<<20)...) }
		}), limit, limit, "4194304", limit, "4194304"},
		{"60,000 directories", entries(60_000, "configs/foo/x%06d/a", ""), different, 0, stacks, 0, packs},
		{"60,000 files", entries(60_000, "configs/foo/x%06d.json", ""), different, 0, stacks, 0, packs},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.env = append(b.env, "XDG_CACHE_HOME="+t.TempDir())
			c.make(t).put(b, "image")
			b.write("compose.yaml", "references:\n- {name: foo, image: \"oci:image:v1\"}\n")
			if c.verify == same {
				b.accepted("verify", "oci:image:v1")
			} else if c.verify != different {
				b.refused(c.verify, ".", "verify", "oci:image:v1")
			} else {
				o := b.run("verify", "oci:image:v1")
				b.inBudget("verify", o)
				b.noTemp("verify")
				if o.status != 1 || !strings.Contains(o.stdout, "different: ") || strings.ContainsAny(o.stdout,
					"\x1b\x00") {
					t.Errorf("verify: %d, %.500q", o.status, o.stdout+o.stderr)
				}
			}
			compose := []string{"build", "compose", "compose.yaml", "-t", "example.com/all:v1", "--server", "none",
				"--cache", "none", "--output"}
			for _, one := range []struct {
				class int
				text  string
				args  []string
			}{{c.trust, c.trustText, append(compose, "oci:trust:v1")},
				{c.prove, c.proveText, append(compose, "oci:prove:v1", "--validate")}} {
				if one.class != 0 {
					b.refused(one.class, one.text, one.args...)
					continue
				}
				o := b.accepted(one.args...)
				if !strings.Contains(o.stderr, one.text) || strings.Contains(o.stderr, "\x1b") {
					t.Errorf("%q: %.500q lacks %q", one.args, o.stderr, one.text)
				}
			}
			if c.prove == 0 { // the result does not depend on the layer
				b.accepted("verify", "oci:prove:v1")
			}
			b.write("cat/foo/catalog.yaml", healthy)
			if o := b.run("build", "catalog", "cat", "-t", "example.com/all:v1", "--server", "none", "--cache", "none",
				"--output", "oci:next:v1", "--previous", "oci:image:v1"); o.status == 0 {
				b.inBudget("--previous", o)
				b.accepted("verify", "oci:next:v1")
			} else if c.trust == 0 {
				t.Errorf("--previous: %s", o.stderr)
			}
		})
	}
}

// different means that verify found differences.
const different = -1

// A composition file is small, and whatever is in it, the answer is short.
func TestCompositionFiles(t *testing.T) {
	t.Parallel()
	aliases := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%c [%s]\n", c, c,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	for name, c := range map[string]struct{ text, says string }{
		"aliases":         {aliases, "unknown field"},
		"alias of a list": {"references: &r [{name: a, image: \"x.io/a:b\"}, *r]\n", "expected an object"},
		"merge keys":      {"references: [{<<: {name: a}, image: \"x.io/a:b\"}]\n", "unknown field"},
		"depth":           {strings.Repeat("[", 1<<20), "depth"},
		"many values":     {"[" + strings.Repeat("1,", 700_000) + "]", "expected an object"},
		"too many values": {"[" + strings.Repeat("1,", 2_000_000) + "]", "longer than"},
		"many items":      {"references:\n" + strings.Repeat("- \n", 500_000), "more than 5000"},
		"many keys":       {strings.Repeat("a: \n", 330_000), "and .* more problems"},
		"many problems": {"references:\n" + strings.Repeat("- {name: \"a/b\", image: \"x y\"}\n", 5000),
			"and .* more problems"},
		"credentials":      {"references: [{name: a, image: \"docker://u:" + secret + "@h.io/a b\"}]\n", "spaces"},
		"escapes":          {"references: [{name: \"a\\e[31m\", image: \"x.io/a:b\"}]\n", "control"},
		"NUL":              {"name: \x00", "control"},
		"nothing":          {"", "empty"},
		"several in one":   {"name: a\n---\nname: b\n", "more than one document"},
		"a list of images": {"- x.io/a:b\n", "expected an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.write("compose.yaml", c.text)
			b.refused(input, c.says, "build", "compose", "compose.yaml", "--plan")
		})
	}
	b := newBox(t)
	b.refused(local, "directory", "build", "compose", ".", "--plan")
}

// The cache of layers and results between builds may be damaged, replaced or removed: the image is the same, and
// nothing outside is touched.
func TestCacheOfLayers(t *testing.T) {
	t.Parallel()
	build := []string{"build", "catalog", "cat", "-t", "example.com/all:v1", "--server", "none", "--compression",
		"zstd", "--output", "oci:out:v1"}
	sealed := func(b *box) *box { // with the key of the records: without one nothing is recorded
		b.env = append(b.env, "BINDERY_CACHE_KEY=env://SEAL", "SEAL=what-seals-the-records")
		return b
	}
	plain := pushBox(t)
	want := plain.accepted(append(build, "--no-cache")...).stdout
	each := func(change func(t *testing.T, path string)) func(t *testing.T, b *box, dir string) {
		return func(t *testing.T, _ *box, dir string) {
			check(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					change(t, path)
				}
				return err
			}))
		}
	}
	var last string
	for _, c := range []struct {
		name   string
		change func(t *testing.T, b *box, dir string)
	}{
		{"untouched", func(*testing.T, *box, string) {}},
		{"cut", each(func(t *testing.T, path string) { check(t, os.Truncate(path, 70)) })},
		{"empty", each(func(t *testing.T, path string) { check(t, os.Truncate(path, 0)) })},
		{"of 4 GiB", each(func(t *testing.T, path string) { check(t, os.Truncate(path, 4<<30)) })},
		{"flipped", each(func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			check(t, err)
			if len(data) > 0 {
				data[len(data)*2/3] ^= 1
				check(t, os.WriteFile(path, data, 0o600))
			}
		})},
		{"swapped", each(func(t *testing.T, path string) {
			if last != "" {
				data, err := os.ReadFile(last)
				check(t, err)
				check(t, os.WriteFile(path, data, 0o600))
			}
			last = path
		})},
		{"FIFOs", each(func(t *testing.T, path string) {
			check(t, os.Remove(path))
			check(t, syscall.Mkfifo(path, 0o600))
		})},
		{"directories", each(func(t *testing.T, path string) {
			check(t, os.Remove(path))
			check(t, os.MkdirAll(path+"/x", 0o755))
		})},
		{"links to a device", each(func(t *testing.T, path string) {
			check(t, os.Remove(path))
			check(t, os.Symlink("/dev/zero", path))
		})},
		{"links outside", func(t *testing.T, b *box, dir string) {
			each(func(t *testing.T, path string) {
				check(t, os.Remove(path))
				check(t, os.Symlink(filepath.Join(b.canary, "secret"), path))
			})(t, b, dir)
		}},
		{"of another user", func(t *testing.T, _ *box, dir string) {
			needRoot(t)
			check(t, exec.Command("chown", "-R", "12345", dir).Run())
		}},
		{"writable by all",
			func(t *testing.T, _ *box, dir string) { check(t, os.Chmod(filepath.Join(dir, "layers"), 0o777)) }},
		{"notes without blobs",
			func(t *testing.T, _ *box, dir string) { check(t, os.RemoveAll(filepath.Join(dir, "blobs"))) }},
		{"blobs without notes",
			func(t *testing.T, _ *box, dir string) { check(t, os.RemoveAll(filepath.Join(dir, "layers"))) }},
		{"from the future", each(func(t *testing.T, path string) {
			check(t, exec.Command("touch", "-d", "2100-01-01", path).Run())
		})},
		{"from 1960",
			each(func(t *testing.T, path string) { check(t, exec.Command("touch", "-d", "1960-01-01", path).Run()) })},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := sealed(pushBox(t))
			b.accepted(build...)
			dir := filepath.Join(b.home, ".cache", "bindery")
			c.change(t, b, dir)
			canary := fingerprint(t, b.canary)
			for range 2 {
				check(t, os.RemoveAll(filepath.Join(b.dir, "out")))
				if o := b.accepted(build...); o.stdout != want {
					t.Errorf("got %q, want %q: %s", o.stdout, want, o.stderr)
				}
				b.accepted("verify", "oci:out:v1")
			}
			b.run("cache", "prune", "--all")
			if now := fingerprint(t, b.canary); now != canary {
				t.Errorf("the canary has changed:%s", difference(canary, now))
			}
		})
	}
	// Concurrent builds, a prune, and another process that removes the directory.
	b := sealed(pushBox(t))
	var all sync.WaitGroup
	for i := range 12 {
		all.Add(1)
		go func() {
			defer all.Done()
			switch out := fmt.Sprintf("oci:out%d:v1", i); i % 4 {
			case 0:
				_ = os.RemoveAll(filepath.Join(b.home, ".cache", "bindery"))
			case 1:
				b.run("cache", "prune", "--all")
			default:
				if o := b.run(append(build[:len(build)-1:len(build)-1], out)...); o.status != 0 ||
					strings.ReplaceAll(o.stdout, out, "oci:out:v1") != want {
					t.Errorf("%d, %q: %s", o.status, o.stdout, o.stderr)
				}
			}
		}()
	}
	all.Wait()
	b.noTemp("all at once")
}
