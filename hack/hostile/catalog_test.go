//go:build hostile

package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A valid package, to be damaged by the cases.
const healthy = `---
schema: olm.package
name: foo
defaultChannel: stable
---
schema: olm.channel
package: foo
name: stable
entries:
- name: foo.v1.0.0
---
schema: olm.bundle
name: foo.v1.0.0
package: foo
image: example.com/foo:v1.0.0
properties:
- type: olm.package
  value: {packageName: foo, version: 1.0.0}
relatedImages:
- {name: "", image: "example.com/foo:v1.0.0"}
`

// readers are the commands that read a catalog directory "cat", with arguments that would make them write something.
func readers() map[string][]string {
	return map[string][]string{
		"validate": {"validate", "cat"},
		"render":   {"render", "cat"},
		"migrate":  {"migrate", "cat", "out"},
		"build":    {"build", "catalog", "cat", "-t", "example.com/foo:v1"},
		"serve":    {"serve", "cat", "--cache-dir", "cache", "--cache-only"},
		"list":     {"list", "bundles", "cat"},
	}
}

// everyReader requires that all commands refuse the catalog in "cat".
func (b *box) everyReader(class int, text string) {
	b.t.Helper()
	for _, args := range readers() {
		b.refused(class, text, args...)
	}
}

// modelReaders requires that the commands which build the model, not only read blobs, refuse the catalog in "cat".
func (b *box) modelReaders(class int, text string) {
	b.t.Helper()
	for name, args := range readers() {
		if name != "render" && name != "migrate" {
			b.refused(class, text, args...)
		}
	}
}

func repeat(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

// channel returns a package with the given entries and a bundle for each.
func channel(entries ...string) string {
	var b strings.Builder
	b.WriteString(
		"---\nschema: olm.package\nname: foo\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: foo\nname: " +
			"stable\nentries:\n")
	for _, e := range entries {
		b.WriteString("- {" + e + "}\n")
	}
	for i, e := range entries {
		name := strings.TrimPrefix(strings.Split(e, ",")[0], "name: ")
		fmt.Fprintf(&b,
			"---\nschema: olm.bundle\nname: %s\npackage: foo\nimage: example.com/foo:%d\nproperties:\n- {type: "+
				"olm.package, value: {packageName: foo, version: 1.%d.0}}\n", name, i, i)
	}
	return b.String()
}

func TestCatalogText(t *testing.T) {
	t.Parallel()
	bomb := func(levels, width int) string {
		return "a0: &a0 [x]\n" + repeat(levels, func(i int) string {
			return fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1,
				strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), width), ","))
		})
	}
	nested := func(n int, open, end string) string { return strings.Repeat(open, n) + strings.Repeat(end, n) }
	for _, c := range []struct {
		name    string
		content string
		class   int
		text    string
	}{
		{"alias bomb of nodes", healthy + "---\nschema: x\n" + bomb(9, 9), limit, "alias"},
		{"alias bomb of bytes", healthy + "---\nschema: x\na: &a \"" + strings.Repeat("x",
			200_000) + "\"\nb: [" + strings.Repeat("*a,", 3000) + "]\n", limit, "alias"},
		{"merge key bomb", healthy + "---\nschema: x\na0: &a0 {k0: 1}\n" + repeat(24, func(i int) string {
			return fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%d], k%d: {<<: *a%d}}\n", i+1, i+1, i, i, i+1, i)
		}), limit, "alias"},
		{"9,990 deep YAML", "schema: x\na: " + nested(9990, "[", "]") + "\n", limit, "depth"},
		{"9,990 deep JSON", `{"schema":"x","a":` + nested(9990, "[", "]") + "}", limit, "depth"},
		{"1,000,000 deep YAML", "schema: x\na: " + nested(1_000_000, "[", "]") + "\n", limit, "depth|nodes"},
		{"1,000,000 deep JSON", `{"schema":"x","a":` + nested(1_000_000, `{"a":`, "}") + "}", limit, "depth"},
		{"200,000 deep YAML blocks", "schema: x\na:\n" + strings.Repeat("- ", 200_000) + "x\n", limit, "depth|nodes"},
		{"deep indentation",
			"schema: x\n" + repeat(3000, func(i int) string { return strings.Repeat(" ", i) + "a:\n" }), limit,
			"depth"},
		{"keys that differ by case", "schema: olm.package\nname: a\nNAME: b\n", input, "there twice"},
		{"invalid UTF-8 in JSON", "{\"schema\":\"x\",\"a\":\"\xff\xfe\"}", input, "UTF-8"},
		{"invalid UTF-8 in YAML", "schema: x\na: \"\xff\xfe\"\n", input, "UTF-8"},
		{"NUL", "schema: x\na: \"b\x00c\"\n", input, "control|NUL|character"},
		{"byte order mark", "\xef\xbb\xbf" + healthy, input, "byte order mark"},
		{"UTF-16", "\xff\xfes\x00c\x00h\x00e\x00m\x00a\x00:\x00 \x00x\x00\n\x00", input, "UTF-8|UTF-16"},
		{"lone surrogate", `{"schema":"x","a":"\ud800"}`, input, "surrogate"},
		{"scalar", "hello\n", input, "."},
		{"list", "- schema: x\n", input, "."},
		{"tab indentation", "schema: x\na:\n\tb: 1\n", input, "."},
		{"binary", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", input, "."},
		{"escape sequences", "schema: olm.package\nname: \"\x1b[31mred\"\n", input, "."},
		{"long line of text", strings.Repeat("secret ", 100_000), input, "."},
		{"unterminated string", `{"schema":"` + strings.Repeat("x", 100_000), input, "."},
		{"unclosed document", `{"schema":"x","a":[`, input, "."},
		{"undefined alias", "schema: x\na: *nowhere\n", input, "."},
		{"alias that holds itself", "schema: x\na: &a [*a]\n", limit, "alias"},
		{"1e400", `{"schema":"olm.package","name":1e400}`, input, "."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.write("cat/catalog.yaml", c.content)
			b.everyReader(c.class, c.text)
		})
	}
}

func TestCatalogModel(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 5000)
	for _, c := range []struct {
		name    string
		content string
		class   int
		text    string
	}{
		{"cycle", channel("name: a, replaces: b", "name: b, replaces: a", "name: c"), input, "cycle|stranded|head"},
		{"cycle below the head", channel("name: h, replaces: a", "name: a, replaces: b", "name: b, replaces: a"), input,
			"cycle"},
		{"self replace", channel("name: a, replaces: a"), input, "head|cycle"},
		{"self skip", channel("name: a, skips: [a]"), input, "head"},
		{"two heads", channel("name: a", "name: b"), input, "multiple channel heads found in graph: a, b"},
		{"stranded", channel("name: h, skips: [b]", "name: b, replaces: c", "name: c"), input, "stranded"},
		{"duplicate package", healthy + healthy, input, "duplicate"},
		{"duplicate bundle",
			channel("name: a") +
				"---\nschema: olm.bundle\nname: a\npackage: foo\nimage: x\nproperties:\n- {type: olm.package, value: " +
				"{packageName: foo, version: 2.0.0}}\n", input, "duplicate"},
		{"duplicate channel",
			channel("name: a") + "---\nschema: olm.channel\npackage: foo\nname: stable\nentries: [{name: a}]\n", input,
			"duplicate"},
		{"duplicate version", strings.ReplaceAll(channel("name: a", "name: b, replaces: a"), "version: 1.1.0",
			"version: 1.0.0"), input, "duplicate versions"},
		{"package name with a slash", strings.ReplaceAll(healthy, "foo", "../foo"), input, "name|element"},
		{"package name dotdot",
			strings.NewReplacer("package: foo", "package: ..", "name: foo\n", "name: ..\n", "packageName: foo",
				"packageName: ..").Replace(healthy), input, "name|element"},
		{"package name of 5,000 bytes",
			strings.NewReplacer("package: foo", "package: "+long, "name: foo\n", "name: "+long+"\n", "packageName: foo",
				"packageName: "+long).Replace(healthy), input, "name"},
		{"package name with a newline",
			strings.NewReplacer("package: foo", `package: "f\no"`, "name: foo\n", "name: \"f\\no\"\n",
				"packageName: foo", `packageName: "f\no"`).Replace(healthy), input, "name"},
		{"package name with an escape sequence",
			strings.NewReplacer("package: foo", `package: "\e[31mo"`, "name: foo\n", "name: \"\\e[31mo\"\n",
				"packageName: foo", `packageName: "\e[31mo"`).Replace(healthy), input, "name"},
		{"wrong icon", strings.Replace(healthy, "defaultChannel: stable",
			"defaultChannel: stable\nicon: {base64data: \"%%%\", mediatype: image/png}", 1), input, "base64|icon"},
		{"skipRange of 1 MB", channel("name: a, skipRange: \"" + strings.Repeat(">=1.0.0 ", 125_000) + "\""), limit,
			"skipRange|range"},
		{"skipRange of 10,000 terms",
			channel("name: a, skipRange: \"" + strings.Repeat("1.0.0 || ", 10_000) + "1.0.0\""), limit,
			"skipRange|range"},
		{"skipRange with a number of 400 digits",
			channel("name: a, skipRange: \">" + strings.Repeat("9", 400) + ".0.0\""), input, "skipRange|range"},
		{"version with a number of 400 digits",
			strings.ReplaceAll(channel("name: a"), "1.0.0", strings.Repeat("9", 400)+".0.0"), input, "."},
		{"broken bundle object", strings.Replace(healthy, "relatedImages:",
			"- {type: olm.bundle.object, value: {data: \"%%\"}}\nrelatedImages:", 1), input, "."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.write("cat/catalog.yaml", c.content)
			b.modelReaders(c.class, c.text)
		})
	}
}

func TestCatalogFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		make  func(t *testing.T, b *box)
		class int
		text  string
	}{
		{"image file", func(t *testing.T, b *box) { b.write("cat/foo/icon.png", "\x89PNG\r\n\x1a\n\x00\x00") }, input,
			"icon.png"},
		{"README", func(t *testing.T, b *box) { b.write("cat/README.md", "# Hello\n\nworld\n") }, input, "README.md"},
		{"1 GiB file", func(t *testing.T, b *box) {
			check(t, os.Truncate(b.write("cat/big.yaml", ""), 1<<30))
		}, limit, "limit"},
		{"FIFO", func(t *testing.T, b *box) { check(t, syscall.Mkfifo(filepath.Join(b.dir, "cat/c.yaml"), 0o644)) },
			input, "not a regular file"},
		{"socket", func(t *testing.T, b *box) {
			check(t, syscall.Mknod(filepath.Join(b.dir, "cat/c.yaml"), syscall.S_IFSOCK|0o644, 0))
		}, input, "not a regular file"},
		{"dangling link", func(t *testing.T, b *box) {
			check(t, os.Symlink("nowhere", filepath.Join(b.dir, "cat/c.yaml")))
		}, local, "c.yaml"},
		{"link outside", func(t *testing.T, b *box) {
			check(t, os.Symlink("../../canary/secret", filepath.Join(b.dir, "cat/c.yaml")))
		}, local, "c.yaml"},
		{"absolute link outside", func(t *testing.T, b *box) {
			check(t, os.Symlink(filepath.Join(b.canary, "secret"), filepath.Join(b.dir, "cat/c.yaml")))
		}, local, "c.yaml"},
		{"link to a device", func(t *testing.T, b *box) {
			check(t, os.Symlink("/dev/zero", filepath.Join(b.dir, "cat/c.yaml")))
		}, local, "c.yaml"},
		{"link loop", func(t *testing.T, b *box) { check(t, os.Symlink("c.yaml", filepath.Join(b.dir, "cat/c.yaml"))) },
			local, "c.yaml"},
		{"ignore file that is a link outside", func(t *testing.T, b *box) {
			check(t, os.Symlink("../../canary/secret", filepath.Join(b.dir, "cat/.indexignore")))
		}, local, "indexignore"},
		{"ignore file of 100,000 lines", func(t *testing.T, b *box) {
			b.write("cat/.indexignore", repeat(100_000, func(i int) string { return fmt.Sprintf("*.%d\n", i) }))
		}, limit, "indexignore"},
		{"ignore file that is binary", func(t *testing.T, b *box) { b.write("cat/.indexignore", "\x00\x01\xff\xfe") },
			input, "indexignore"},
		{"ignore file that is a FIFO", func(t *testing.T, b *box) {
			check(t, syscall.Mkfifo(filepath.Join(b.dir, "cat/.indexignore"), 0o644))
		}, input, "indexignore"},
		{"directory without rights", func(t *testing.T, b *box) {
			if os.Getuid() == 0 {
				t.Skip("root reads everything")
			}
			check(t, os.Mkdir(filepath.Join(b.dir, "cat/x"), 0))
		}, local, "permission"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.write("cat/catalog.yaml", healthy)
			c.make(t, b)
			b.everyReader(c.class, c.text)
		})
	}
}
