//go:build hostile

package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Large or unusual but valid input is accepted, with little time and memory.
func TestLargeCatalogs(t *testing.T) {
	chain := func(n int) string {
		var b strings.Builder
		b.WriteString(
			"schema: olm.package\nname: foo\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: foo\nname: " +
				"stable\nentries:\n")
		for i := range n {
			if i > 0 {
				fmt.Fprintf(&b, "- {name: foo.v1.%d.0, replaces: foo.v1.%d.0}\n", i, i-1)
			} else {
				b.WriteString("- {name: foo.v1.0.0}\n")
			}
		}
		for i := range n {
			fmt.Fprintf(&b,
				"---\nschema: olm.bundle\nname: foo.v1.%d.0\npackage: foo\nimage: example.com/foo:%d\nproperties:\n- "+
					"{type: olm.package, value: {packageName: foo, version: 1.%d.0}}\n", i, i, i)
		}
		return b.String()
	}
	skips := func(n int) string {
		names := make([]string, n)
		for i := range n {
			names[i] = fmt.Sprintf("foo.v1.%d.0", i)
		}
		var b strings.Builder
		b.WriteString(
			"schema: olm.package\nname: foo\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: foo\nname: " +
				"stable\nentries:\n")
		for i, name := range names {
			fmt.Fprintf(&b, "- {name: %s, skips: [%s]}\n", name, strings.Join(names[:i], ","))
		}
		for i, name := range names {
			fmt.Fprintf(&b,
				"---\nschema: olm.bundle\nname: %s\npackage: foo\nimage: example.com/foo:%d\nproperties:\n- {type: "+
					"olm.package, value: {packageName: foo, version: 1.%d.0}}\n", name, i, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name     string
		make     func(b *box)
		commands []string
	}{
		{"chain of 20,000", func(b *box) { b.write("cat/catalog.yaml", chain(20_000)) },
			[]string{"validate", "serve", "list"}},
		{"2,000 bundles that skip all before them", func(b *box) { b.write("cat/catalog.yaml", skips(2000)) },
			[]string{"validate"}},
		{"document of 30 MiB of text", func(b *box) {
			b.write("cat/catalog.yaml", healthy+"---\n{\"schema\":\"x\",\"a\":\""+strings.Repeat("x", 30<<20)+"\"}\n")
		}, []string{"validate"}},
		{"document of 30 MiB of small values", func(b *box) {
			b.write("cat/catalog.yaml", healthy)
			b.write("cat/large.json", `{"schema":"x","a":[`+strings.Repeat("1,", 15<<20)+`1]}`)
		}, []string{"validate"}},
		{"bundle of 5 MB", func(b *box) {
			b.write("cat/catalog.yaml", strings.Replace(healthy, "relatedImages:",
				"- {type: x, value: \""+strings.Repeat("x", 5<<20)+"\"}\nrelatedImages:", 1))
		}, []string{"validate", "build", "serve"}},
		{"5,000 files", func(b *box) {
			b.write("cat/foo/catalog.yaml", healthy)
			for i := range 5000 {
				b.write(fmt.Sprintf("cat/foo/%d.yaml", i), "schema: x\n")
			}
		}, []string{"validate"}},
		{"300 ignore files of 1,000 patterns", func(b *box) {
			b.write("cat/catalog.yaml", healthy)
			patterns := repeat(1000, func(i int) string { return fmt.Sprintf("**/a*b*c*%d/**/x*\n", i) })
			for i := range 300 {
				b.write(fmt.Sprintf("cat/%d/.indexignore", i), patterns)
				b.write(fmt.Sprintf("cat/%d/a/b/c/x.yaml", i), "schema: x\n")
			}
		}, []string{"validate"}},
		{"patterns of many stars", func(b *box) {
			b.write("cat/catalog.yaml", healthy)
			b.write("cat/.indexignore", strings.Repeat("**/", 60)+"x\n"+strings.Repeat("a*", 100)+"b\n")
			b.write("cat/"+strings.Repeat("d/", 100)+"x.yaml", "schema: x\n")
			b.write("cat/"+strings.Repeat("a", 200), "schema: x\n")
		}, []string{"validate"}},
		{"ConfigMap mount", func(b *box) {
			b.write("cat/..2026/catalog.yaml", healthy)
			check(b.t, os.Symlink("..2026", filepath.Join(b.dir, "cat", "..data")))
			check(b.t, os.Symlink("..data/catalog.yaml", filepath.Join(b.dir, "cat", "catalog.yaml")))
		}, []string{"validate", "render", "build", "serve"}},
		{"keys that stand twice", func(b *box) {
			b.write("cat/catalog.yaml", healthy+"---\n{schema: x, a: 1, a: 2}\n")
		}, []string{"validate", "render", "build", "serve"}},
		{"bundle object with a path", func(b *box) {
			b.write("cat/catalog.yaml", strings.Replace(healthy, "relatedImages:",
				"- {type: olm.bundle.object, value: {ref: ../../canary/secret}}\nrelatedImages:", 1))
		}, []string{"validate", "render", "build", "serve"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			c.make(b)
			for _, name := range c.commands {
				o := b.accepted(readers()[name]...)
				t.Logf("%s: %s, %d MB", name, o.took.Round(time.Millisecond), o.memory>>20)
				if strings.Contains(o.stdout+o.stderr, secret) {
					t.Errorf("%s tells a secret", name)
				}
				if c.name == "bundle of 5 MB" && name != "validate" && !strings.Contains(o.stderr, "larger than") {
					t.Errorf("%s does not tell that clients cannot receive it: %s", name, o.stderr)
				}
				if strings.HasPrefix(c.name, "keys") && !strings.Contains(o.stderr, `duplicate key "a"`) {
					t.Errorf("%s does not warn: %s", name, o.stderr)
				}
			}
		})
	}
}

// Server programs are checked before they are put into an image.
func TestServerPrograms(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.write("cat/catalog.yaml", healthy)
	elf, err := os.ReadFile(bindery)
	check(t, err)
	arm := append([]byte{}, elf...)
	arm[18] = 183 // e_machine: AArch64
	b.write("empty", "")
	b.write("text", "#!/bin/sh\n")
	b.write("arm", string(arm))
	b.write("cut", string(elf[:100]))
	check(t, os.Mkdir(filepath.Join(b.dir, "dir"), 0o755))
	check(t, syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o644))
	check(t, os.Symlink("nowhere", filepath.Join(b.dir, "dangling")))
	for name, class := range map[string]int{"empty": input, "text": input, "arm": input, "cut": input, "dir": local,
		"fifo": local, "dangling": local, "missing": local} {
		text := name
		if name == "arm" {
			text = "AARCH64"
		}
		b.refused(class, text, "build", "catalog", "cat", "-t", "example.com/foo:v1", "--server", name)
	}
}

// A FIFO in place of a file that is read in any order or changed, or that is not named, is refused: opening it would block.
// TestNamedFiles has those that are read.
func TestFIFOs(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.write("cat/catalog.yaml", healthy)
	check(t, syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o644))
	check(t, syscall.Mkfifo(filepath.Join(b.dir, ".out.bindery-0123456789abcdef"), 0o644))
	check(t, os.Mkdir(filepath.Join(b.dir, "layout"), 0o755))
	check(t, syscall.Mkfifo(filepath.Join(b.dir, "layout", "oci-layout"), 0o644))
	for _, args := range [][]string{
		{"render", "fifo"}, {"validate", "fifo"}, {"list", "packages", "fifo"}, {"serve", "fifo", "--port", "0"},
		{"migrate", "fifo", "out"},
		{"registry", "serve", "-d", "fifo", "--port", "0"}, {"build", "catalog", "fifo", "-t", "a/b:c"},
		{"build", "catalog", "cat", "-t", "a/b:c", "--server", "fifo"},
		{"generate", "dockerfile", "fifo"},
		{"build", "catalog", "cat", "-t", "a/b:c", "--server", "none", "--output", "oci:layout:c"},
		{"build", "catalog", "cat", "-t", "a/b:c", "--base", "oci:layout:c"}, {"render", "oci:layout:c"},
	} {
		before := b.snapshot()
		o := b.run(append([]string{"--error-format=json"}, args...)...)
		if o.status != 1 || o.took > maxTime || o.class != input && o.class != local && o.class != usage {
			t.Errorf("%q: status %d, class %d after %s: %s", args, o.status, o.class, o.took, o.stderr)
		}
		b.unchanged(fmt.Sprint(args), before)
	}
	b.accepted("migrate", "cat", "out")
}

// With little memory the run succeeds or reports the reason, and leaves no partial output.
func TestLittleMemory(t *testing.T) {
	t.Parallel()
	for _, w := range writers() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			_, after := w.expect(t)
			b := newBox(t)
			w.prepare(t, b)
			b.env = append(b.env, "GOMEMLIMIT=20MiB")
			b.accepted(w.args...)
			if got := b.snapshot(); got != after {
				t.Errorf("the result differs:%s", difference(after, got))
			}
		})
	}
}
