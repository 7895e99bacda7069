//go:build hostile

package hostile

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// bundle writes a valid bundle.
func (b *box) bundle(dir string) {
	b.t.Helper()
	b.write(dir+"/manifests/csv.yaml", goodCSV)
	b.write(dir+"/metadata/annotations.yaml", annotations)
}

// bundleCommands are the commands that read the whole bundle in the directory "b".
func bundleCommands() [][]string {
	return [][]string{
		{"render", "b"}, {"render", "b", "b", "-o", "ndjson"}, {"bundle", "validate", "b"},
		{"bundle", "build", "b", "-t", "example.com/foo:v1"},
		{"bundle", "extract", "b", "-c", "foo", "--dry-run"},
		{"bundle", "extract", "b", "-c", "foo", "--dry-run", "-z"},
	}
}

func TestBundleDirectories(t *testing.T) {
	t.Parallel()
	link := func(name, to string) func(b *box) {
		return func(b *box) {
			path := filepath.Join(b.dir, "b", name)
			check(b.t, os.RemoveAll(path))
			check(b.t, os.Symlink(to, path))
		}
	}
	fifo := func(name string) func(b *box) {
		return func(b *box) {
			path := filepath.Join(b.dir, "b", name)
			check(b.t, os.RemoveAll(path))
			check(b.t, syscall.Mkfifo(path, 0o644))
		}
	}
	text := func(name, content string) func(b *box) { return func(b *box) { b.write("b/"+name, content) } }
	rest := "operators.operatorframework.io.bundle."
	// opm renders bundles with unreadable files, and the command that unpacks a bundle in a cluster reads no documents.
	const noExtract, neither = "extract", "extract render"
	for _, c := range []struct {
		name string
		make func(b *box)
		text string
		not  string // commands that the case does not apply to
	}{
		{"manifest that is a link to a secret", link("manifests/z.yaml", "../../../canary/secret"), ".", ""},
		{"manifest that is an absolute link", link("manifests/z.yaml", "/etc/passwd"), ".", ""},
		{"manifests that are a link outside", link("manifests", "../../canary"), ".", ""},
		{"metadata that are a link outside", link("metadata", "../../canary"), ".", ""},
		{"annotations that are a link outside", link("metadata/annotations.yaml", "../../../canary/secret"), ".", ""},
		{"link to a device", link("manifests/z.yaml", "/dev/zero"), ".", ""},
		{"link loop", link("manifests/z.yaml", "z.yaml"), ".", ""},
		{"dangling link", link("manifests/z.yaml", "nowhere"), ".", ""},
		{"manifest that is a FIFO", fifo("manifests/z.yaml"), "regular", ""},
		{"annotations that are a FIFO", fifo("metadata/annotations.yaml"), "regular", ""},
		{"dependencies that are a FIFO", fifo("metadata/dependencies.yaml"), "regular", ""},
		{"manifest of 1 GiB", func(b *box) { check(b.t, os.Truncate(b.write("b/manifests/z.yaml", ""), 1<<30)) },
			"4194304", ""},
		{"annotations of 1 GiB",
			func(b *box) { check(b.t, os.Truncate(b.write("b/metadata/annotations.yaml", ""), 1<<30)) }, "limit|bytes",
			""},
		{"10,001 manifests", func(b *box) {
			for i := range 10_001 {
				b.write(fmt.Sprintf("b/manifests/%d.yaml", i), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
			}
		}, "limit|bytes|files|entries", ""},
		{"alias bomb", text("manifests/z.yaml", "kind: X\na0: &a0 [x]\n"+repeat(9, func(i int) string {
			return fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1,
				strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
		})), "alias", noExtract},
		{"alias bomb in the annotations",
			text("metadata/annotations.yaml", annotations+"a0: &a0 [x]\n"+repeat(9, func(i int) string {
				return fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1,
					strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
			})), "alias", ""},
		{"deep", text("manifests/z.json", `{"kind":"X","a":`+strings.Repeat("[", 9990)+strings.Repeat("]", 9990)+"}"),
			"depth", noExtract},
		{"not UTF-8", text("manifests/z.yaml", "apiVersion: v1\nkind: \"\xff\xfe\"\n"), "UTF-8", neither},
		{"escape sequences", text("manifests/z.yaml", "a\x1b[31m: [\n"), ".", neither},
		{"no CSV", func(b *box) { check(b.t, os.Remove(filepath.Join(b.dir, "b/manifests/csv.yaml"))) }, ".",
			noExtract},
		{"two CSVs", text("manifests/z.yaml", goodCSV), ".", neither},
		{"no annotations", func(b *box) { check(b.t, os.Remove(filepath.Join(b.dir, "b/metadata/annotations.yaml"))) },
			".", noExtract},
		{"two files of annotations", text("metadata/other.yaml", annotations), ".", neither},
		{"unknown media type",
			text("metadata/annotations.yaml", strings.ReplaceAll(annotations, "registry+v1", "x\\e[31m")), ".",
			neither},
		{"manifests outside",
			text("metadata/annotations.yaml",
				strings.ReplaceAll(annotations, rest+"manifests.v1: manifests/", rest+"manifests.v1: ../../canary/")),
			".", noExtract},
		{"metadata outside", text("metadata/annotations.yaml",
			strings.ReplaceAll(annotations, rest+"metadata.v1: metadata/", rest+"metadata.v1: /etc/")), ".", neither},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.bundle("b")
			c.make(b)
			for _, args := range bundleCommands() {
				if c.not != "" && (strings.Contains(c.not, args[0]) || strings.Contains(c.not, args[1])) {
					continue
				}
				before := b.snapshot()
				o := b.run(append([]string{"--error-format=json"}, args...)...)
				label := strings.Join(args, " ")
				b.inBudget(label, o)
				if o.status != 1 || o.stdout != "" || o.class != input && o.class != limit && o.class != local {
					t.Errorf("%s: status %d, class %d, %.100q: %.500s", label, o.status, o.class, o.stdout, o.stderr)
				}
				if strings.Contains(o.stderr, secret) || strings.Contains(o.stderr, "root:x:0") ||
					strings.ContainsAny(o.stderr, "\x1b\x00") || len(o.stderr) > 20_000 {
					t.Errorf("%s: %.1000q", label, o.stderr)
				}
				b.unchanged(label, before)
			}
		})
	}
}

// Expensive input to validators is bounded, and so is their output.
func TestBundleValidators(t *testing.T) {
	t.Parallel()
	dependencies := func(entry string, n int) string {
		return "dependencies:\n" + strings.Repeat(entry, n)
	}
	cel := func(rule string) string {
		text, _ := json.Marshal(rule)
		return fmt.Sprintf("- {type: olm.constraint, value: {failureMessage: x, cel: {rule: %s}}}\n", text)
	}
	definition := func(schema string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Foo","plural":"foos"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{` +
			schema + `}}}}]}}`
	}
	for name, prepare := range map[string]func(b *box){
		"nested macros": func(b *box) {
			rule := "true"
			for i := range 60 {
				rule = fmt.Sprintf("[[%s]].all(x%d, x%d.exists(y%d, %s))", "1", i, i, i, rule)
			}
			b.write("b/metadata/dependencies.yaml", dependencies(cel(rule), 1))
		},
		"deep expression": func(b *box) {
			b.write("b/metadata/dependencies.yaml",
				dependencies(cel(strings.Repeat("(", 60_000)+"true"+strings.Repeat(")", 60_000)), 1))
		},
		"many expressions": func(b *box) {
			b.write("b/metadata/dependencies.yaml",
				dependencies(cel("properties.exists(p, p.type == 'a' && p.value.matches('^(a+)+$'))"), 20_000))
		},
		"long expression": func(b *box) {
			b.write("b/metadata/dependencies.yaml", dependencies(cel(strings.Repeat("true || ", 16_000)+"true"), 20))
		},
		"10,000 wrong patterns": func(b *box) {
			b.write("b/manifests/crd.yaml",
				definition(strings.TrimSuffix(repeat(10_000,
					func(i int) string {
						return fmt.Sprintf(`"p%d":{"type":"string","pattern":"(a{1000}){1000}"},`, i)
					}), ",")))
		},
		"costly rules": func(b *box) {
			b.write("b/manifests/crd.yaml", definition(strings.TrimSuffix(repeat(3000, func(i int) string {
				return fmt.Sprintf(
					`"p%d":{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, self.all(z, self.exists(w, w==x+y+z))))"}]},`, i)
			}), ",")))
		},
		"deep schema": func(b *box) {
			b.write("b/manifests/crd.yaml",
				definition(strings.Repeat(`"a":{"type":"object","properties":{`,
					20)+`"b":{"type":"string"}`+strings.Repeat("}}", 20)))
		},
		"schema of aliases": func(b *box) {
			b.write("b/manifests/crd.yaml",
				"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: "+
					"foos.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n"+
					"  names: {kind: Foo, plural: foos}\n  versions:\n  - name: v1\n    served: true\n    storage: "+
					"true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n"+
					"          p0: &p0 {type: object, properties: {x: {type: string}}}\n"+repeat(12,
					func(i int) string {
						return fmt.Sprintf(
							"          p%d: &p%d {type: object, properties: {a: *p%d, b: *p%d, c: *p%d, d: *p%d}}\n",
							i+1,
							i+1, i, i, i, i)
					}))
		},
		"schema of 5,000 alternatives": func(b *box) {
			b.write("b/manifests/crd.yaml",
				definition(`"p":{"type":"object","anyOf":[`+strings.TrimSuffix(
					strings.Repeat(`{"required":["a"],"not":{"anyOf":[{"required":["b"]}]}},`, 5_000), ",")+`]}`))
		},
		"schema of 3,000 levels": func(b *box) {
			b.write("b/manifests/crd.yaml",
				definition(strings.Repeat(`"a":{"type":"object","properties":{`,
					1500)+`"b":{"type":"string"}`+strings.Repeat("}}", 1500)))
		},
		"100,000 values of an enum": func(b *box) {
			b.write("b/manifests/crd.yaml",
				definition(`"p":{"type":"string","enum":[`+strings.TrimSuffix(
					repeat(100_000, func(i int) string { return fmt.Sprintf("\"v%d\",", i) }), ",")+`]}`))
		},
		"1,200 versions of a large schema": func(b *box) {
			version := `"served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{` +
				strings.TrimSuffix(repeat(30, func(i int) string {
					return fmt.Sprintf(
						`"p%d":{"type":"object","default":{"a":%d},"properties":{"a":{"type":"integer"}}},`, i, i)
				}), ",") + `}}}`
			b.write("b/manifests/crd.yaml",
				`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"foos.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Foo","plural":"foos"},"versions":[`+
					strings.TrimSuffix(repeat(1200,
						func(i int) string { return fmt.Sprintf(`{"name":"v%d",%s},`, i+1, version) }), ",")+`]}}`)
		},
		"10,000 unknown dependencies": func(b *box) {
			b.write("b/metadata/dependencies.yaml", dependencies("- {type: \"x\\e[31m\", value: {a: b}}\n", 10_000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.bundle("b")
			prepare(b)
			before := b.snapshot()
			for _, args := range [][]string{{"bundle", "validate", "b"},
				{"bundle", "validate", "b", "-s", "good-practices", "-s", "operatorhub", "-s", "community"},
				{"bundle", "build", "b", "-t", "example.com/x:v1", "--dry-run"}} {
				o := b.run(args...)
				if o.took > maxTime || o.memory > maxMemory {
					t.Errorf("%q: %s, %d MB", args, o.took, o.memory>>20)
				}
				if name == "costly rules" && args[1] == "validate" && !strings.Contains(o.stderr,
					"3000 validation rules: the first 500 are checked") {
					t.Errorf("%q: not told that rules were left out: %.500q", args, o.stderr)
				}
				if strings.ContainsAny(o.stderr, "\x1b\x00") || len(o.stderr) > 200_000 {
					t.Errorf("%q: %d bytes: %.500q", args, len(o.stderr), o.stderr)
				}
				b.unchanged(fmt.Sprint(args), before)
			}
		})
	}
}

// Text from a catalog is only text in a drawing.
func TestDrawingsOfHostileText(t *testing.T) {
	t.Parallel()
	const evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>]]>--><!--`${1}{{.}}&#60;\u202e\x1b[31m\n"
	b := newBox(t)
	text, err := json.Marshal(evil)
	check(t, err)
	e := string(text)
	b.write("cat/c.json",
		`{"schema":"olm.package","name":`+e+`,"defaultChannel":`+e+`,"description":`+e+
			`,"icon":{"base64data":"PHN2Zz48c2NyaXB0PmFsZXJ0KDEpPC9zY3JpcHQ+PC9zdmc+","mediatype":"image/svg+xml\" onload=\"alert(1)"}}
{"schema":"olm.channel","package":`+e+`,"name":`+e+`,"entries":[{"name":`+e+`},{"name":"b","replaces":`+e+`,"skips":[`+
			e+`],"skipRange":`+e+`}]}
{"schema":"olm.bundle","package":`+e+`,"name":`+e+
			`,"image":"javascript:alert(1)","properties":[{"type":"olm.package","value":{"packageName":`+e+
			`,"version":"1.0.0"}}]}
{"schema":"olm.bundle","package":`+e+`,"name":"b","image":`+e+
			`,"properties":[{"type":"olm.package","value":{"packageName":`+e+
			`,"version":"2.0.0"}},{"type":"olm.csv.metadata","value":{"displayName":`+e+`,"description":`+e+`}}]}
{"schema":"olm.deprecations","package":`+e+`,"entries":[{"reference":{"schema":"olm.channel","name":`+e+`},"message":`+
			e+`},{"reference":{"schema":"olm.bundle","name":`+e+`},"message":`+e+`}]}
`)
	for _, format := range []string{"svg", "html", "dot", "mermaid"} {
		o := b.accepted("graph", "cat", "-o", format)
		if strings.ContainsAny(o.stdout+o.stderr, "\x1b\u202e") {
			t.Errorf("%s: raw control characters", format)
		}
		if strings.Contains(o.stdout, `="javascript:`) {
			t.Errorf("%s: a link to a script", format)
		}
		if format == "mermaid" || format == "dot" {
			continue // here the quotes around each text are what matters: escaping is the drawing program's task
		}
		if strings.Contains(o.stdout, "<script>alert") || strings.Contains(o.stdout, "<img") {
			t.Errorf("%s: text has become an element", format)
		}
		if format == "svg" {
			d := xml.NewDecoder(strings.NewReader(o.stdout))
			for {
				token, err := d.Token()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("not XML: %v", err)
				}
				if start, ok := token.(xml.StartElement); ok {
					if start.Name.Local == "script" || start.Name.Local == "image" ||
						start.Name.Local == "foreignObject" {
						t.Errorf("an element %q", start.Name.Local)
					}
					for _, a := range start.Attr {
						if strings.HasPrefix(a.Name.Local, "on") {
							t.Errorf("an attribute %q", a.Name.Local)
						}
					}
				}
			}
		}
	}
	for _, command := range []string{"packages", "channels", "bundles", "images"} {
		if o := b.run("list", command, "cat"); strings.ContainsAny(o.stdout+o.stderr, "\x1b\u202e") {
			t.Errorf("list %s: raw control characters", command)
		}
	}
}

// A bundle is unpacked into new directories: existing files stay, and links are not followed.
func TestUnpackPlaces(t *testing.T) {
	for name, prepare := range map[string]func(b *box, out string){
		"a file":              func(b *box, out string) { b.write("out", "x") },
		"a FIFO":              func(b *box, out string) { check(b.t, syscall.Mkfifo(out, 0o644)) },
		"a link to elsewhere": func(b *box, out string) { check(b.t, os.Symlink(b.canary, out)) },
		"a dangling link":     func(b *box, out string) { check(b.t, os.Symlink("../canary/new", out)) },
		"manifests that link elsewhere": func(b *box, out string) {
			check(b.t, os.Mkdir(out, 0o755))
			check(b.t, os.Symlink(b.canary, filepath.Join(out, "manifests")))
		},
		"manifests that dangle": func(b *box, out string) {
			check(b.t, os.Mkdir(out, 0o755))
			check(b.t, os.Symlink("../../canary/new", filepath.Join(out, "manifests")))
		},
		"manifests that are a file":   func(b *box, out string) { b.write("out/manifests", "x") },
		"metadata with the same file": func(b *box, out string) { b.write("out/metadata/annotations.yaml", "mine") },
		"a directory below a file":    func(b *box, out string) { b.write("out/manifests/csv.yaml/x", "mine") },
		"another user's manifests, 000": func(b *box, out string) {
			b.write("out/manifests/mine", "x")
			check(b.t, os.Chmod(filepath.Join(out, "manifests"), 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			bundlePicture(t, goodFiles()...).put(b, "image")
			prepare(b, filepath.Join(b.dir, "out"))
			before, canary := b.snapshot(), fingerprint(t, b.canary)
			o := b.run("--error-format=json", "bundle", "unpack", "oci:image:v1", "-o", "out")
			if got := fingerprint(t, b.canary); got != canary {
				t.Errorf("written outside:%s", difference(canary, got))
			}
			if o.status != 0 {
				if o.class != local && o.class != usage || o.stdout != "" {
					t.Errorf("status %d, class %d: %s", o.status, o.class, o.stderr)
				}
				b.unchanged(name, before)
			} else if lost := difference(before, b.snapshot()); strings.Contains(lost, "\n- ") {
				t.Errorf("accepted, and changed what was there:%s", lost)
			}
		})
	}
}

// Users missing in /etc/passwd, users without a home, and unwritable homes are no reason to fail.
func TestImagesForAnyUser(t *testing.T) {
	t.Parallel()
	needRoot(t)
	need(t, "setpriv")
	_, ref := puller(t)
	root := t.TempDir()
	for d := root; strings.Contains(d, "Test"); d = filepath.Dir(d) {
		check(t, os.Chmod(d, 0o777))
	}
	b := boxIn(t, root)
	check(t, os.Chmod(b.tmp, 0o777))
	check(t, os.Chmod(b.dir, 0o777))
	bundlePicture(t, goodFiles()...).put(b, "image")
	b.bundle("b")
	for name, env := range map[string][]string{
		"no HOME":                  {"PATH=/usr/bin", "TMPDIR=" + b.tmp},
		"HOME of someone else":     {"PATH=/usr/bin", "TMPDIR=" + b.tmp, "HOME=" + b.home},
		"HOME that does not exist": {"PATH=/usr/bin", "TMPDIR=" + b.tmp, "HOME=/nowhere"},
		"empty environment":        nil,
		"relative HOME":            {"TMPDIR=" + b.tmp, "HOME=."},
		"relative cache":           {"TMPDIR=" + b.tmp, "XDG_CACHE_HOME=cache"},
	} {
		for _, args := range [][]string{{"render", ref, "--use-http"}, {"render", "oci:image:v1"}, {"render", "b"},
			{"bundle", "validate", ref, "--use-http"},
			{"bundle", "build", "b", "-t", "example.com/x:v1", "--dry-run"}} {
			cmd := exec.Command("setpriv", append(append(unprivileged(), bindery), args...)...)
			cmd.Dir, cmd.Env = b.dir, append([]string{"X=y"}, env...)
			before := fingerprint(t, b.dir) + fingerprint(t, b.canary)
			o := b.finish(cmd)
			if o.status != 0 {
				t.Errorf("%s: %q: status %d: %s", name, args, o.status, o.stderr)
			}
			if after := fingerprint(t, b.dir) + fingerprint(t, b.canary); before != after && name != "relative HOME" {
				t.Errorf("%s: %q: files changed:%s", name, args, difference(before, after))
			}
			b.noTemp(name)
		}
	}
}
