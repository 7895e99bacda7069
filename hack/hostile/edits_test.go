//go:build hostile

package hostile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// imageTemplate gives bundles without an image one.
const imageTemplate = "--image-ref-template=example.com/{{.Package}}:v{{.Version}}"

// bundleDir writes a bundle directory. spec are fields of the ClusterServiceVersion's spec in JSON.
func (b *box) bundleDir(dir, name, version, channels, spec string) string {
	b.t.Helper()
	b.write(dir+"/manifests/csv.yaml",
		fmt.Sprintf(
			`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": %q}, "spec": {"version": %q%s}}`, name, version, spec))
	first, _, _ := strings.Cut(channels, ",")
	const prefix = "operators.operatorframework.io.bundle."
	b.write(dir+"/metadata/annotations.yaml",
		fmt.Sprintf("annotations:\n  %[1]smediatype.v1: registry+v1\n  %[1]smanifests.v1: "+
			"manifests/\n  %[1]smetadata.v1: metadata/\n"+
			"  %[1]spackage.v1: foo\n  %[1]schannels.v1: %[2]q\n  %[1]schannel.default.v1: %[3]q\n", prefix, channels,
			first))
	return dir
}

// listOf returns n comma-separated JSON strings.
func listOf(n int, format string) string {
	return strings.TrimSuffix(repeat(n, func(i int) string { return fmt.Sprintf("%q,", fmt.Sprintf(format, i)) }), ",")
}

// Adding any bundle stays within the limits and cannot create an invalid graph.
func TestHostileAdditions(t *testing.T) {
	t.Parallel()
	channels := func(n int) string {
		return strings.TrimSuffix(repeat(n, func(i int) string { return fmt.Sprintf("c%d,", i) }), ",")
	}
	one := func(name, channels, spec string) func(b *box) {
		return func(b *box) { b.bundleDir("a", name, "1.0.0", channels, spec) }
	}
	for _, c := range []struct {
		name  string
		make  func(b *box)
		class int
		text  string
	}{
		{"replaces itself", one("foo.v1", "s", `, "replaces": "foo.v1"`), input, "Cycle detected"},
		{"skips itself", one("foo.v1", "s", `, "skips": ["foo.v1"]`), input, "no channel head"},
		{"10,000 channels with 10,000 skips", one("foo.v1", channels(10_000), `, "skips": [`+listOf(10_000, "x%d")+`]`),
			limit, "channels"},
		{"1,000 channels with 10,000 skips", one("foo.v1", channels(1000), `, "skips": [`+listOf(10_000, "x%d")+`]`),
			limit, "entries and skips"},
		{"name with a path", one("../../x", "s", ""), input, "name"},
		{"name with an escape sequence", one("x\x1b[31m", "s", ""), input, "name|control|character"},
		{"channel with a line end", one("foo.v1", "a\nb", ""), input, "channel"},
		{"chain of 100 that skip all before them in 60 channels", func(b *box) {
			for i := range 100 {
				spec := ""
				if i > 0 {
					spec = fmt.Sprintf(`, "replaces": "foo.v%d", "skips": [%s]`, i-1, listOf(i, "foo.v%d"))
				}
				b.bundleDir(fmt.Sprintf("a/%d", i), fmt.Sprintf("foo.v%d", i), fmt.Sprintf("%d.0.0", i+1), channels(60),
					spec)
			}
		}, limit, "entries and skips"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			c.make(b)
			for _, to := range []string{"new.db", "new/"} {
				args := []string{"catalog", "add", "--create", to, imageTemplate}
				if _, err := os.Stat(filepath.Join(b.dir, "a", "manifests")); err == nil {
					args = append(args, "a")
				} else {
					for _, name := range names(t, filepath.Join(b.dir, "a")) {
						args = append(args, "a/"+name)
					}
				}
				b.refused(c.class, c.text, args...)
			}
		})
	}
}

// A path with something unexpected, as output or input, is refused immediately and not changed.
func TestPlacesOfEdits(t *testing.T) {
	t.Parallel()
	fifo := func(name string) func(b *box) {
		return func(b *box) {
			check(b.t, os.MkdirAll(filepath.Dir(filepath.Join(b.dir, name)), 0o755))
			check(b.t, syscall.Mkfifo(filepath.Join(b.dir, name), 0o644))
		}
	}
	link := func(name, to string) func(b *box) {
		return func(b *box) {
			check(b.t, os.MkdirAll(filepath.Dir(filepath.Join(b.dir, name)), 0o755))
			check(b.t, os.Symlink(to, filepath.Join(b.dir, name)))
		}
	}
	generate := func(from string) []string {
		return []string{"index", "rm", "--generate", "--allow-empty", "-f", from, "-o",
			map[string]string{"cat": "foo", "small.db": "etcd"}[from]}
	}
	export := []string{"index", "export", "-i", "manifests", "-f", "out"}
	madeUp := func(b *box) {
		b.write("cat/.bindery-edit-0123456789abcdef/.indexignore",
			"# What is here belongs to an edit of the catalog. If that was interrupted, the next one clears it "+
				"away.\n*\n")
		b.write("cat/.bindery-edit-0123456789abcdef/old-0", "x")
		b.write("cat/.bindery-edit-0123456789abcdef/journal",
			`{"files":[{"name":"../../canary/secret","replaces":true,"staged":"../../canary/x"}],"made":["../../canary"]}`)
	}
	promote := []string{"catalog", "promote", "cat", "foo.v1.0.0", "--channel", "fast"}
	for _, c := range []struct {
		name  string
		make  func(b *box)
		class int
		text  string
		args  []string
	}{
		{"account", fifo("acc"), local, "regular file", append(slices.Clone(promote), "--account", "acc")},
		{"package.yaml of an export", fifo("out/foo/package.yaml"), local, "regular file", export},
		{"package.yaml that leads elsewhere", link("out/foo/package.yaml", "/dev/zero"), local, "regular file", export},
		{"package of an export that leads elsewhere", link("out/foo", "../../canary"), local, "directory", export},
		{"database of --generate", fifo("database/index.db"), local, "index database", generate("small.db")},
		{"directory of the database that leads elsewhere", link("database", "../canary"), local, "symbolic link",
			generate("small.db")},
		{"catalog of --generate that leads elsewhere", link("configs", "../canary"), local, "symbolic link",
			generate("cat")},
		{"Dockerfile that leads elsewhere", link("index.Dockerfile", "../canary/secret"), local, "not replaced",
			generate("small.db")},
		{"file of the catalog that leads elsewhere", link("cat/x.yaml", "../../canary/secret"), local, "escapes",
			promote},
		{"FIFO in the catalog", fifo("cat/x.yaml"), 0, "regular file", promote},
		{"300 directories in one another", func(b *box) { b.write("cat/"+strings.Repeat("d/", 300)+"x.yaml", "") },
			limit, "directories", promote},
		{"41 ignore files of 10,000 patterns each", func(b *box) {
			for i := range 41 {
				b.write(fmt.Sprintf("cat/d%d/.indexignore", i), strings.Repeat("x\n", 10_000))
			}
		}, limit, "patterns", promote},
		{"what a killed edit left, made up", madeUp, 0, "interrupted", promote},
		{"what a killed edit left, made up, and a reader", madeUp, 0, "interrupted", []string{"render", "cat"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.write("cat/foo/catalog.yaml", healthy)
			b.write("small.db", string(smallDatabase(t)))
			b.write("manifests/foo/package.yaml", "packageName: foo\nchannels: [{name: s, currentCSV: foo.v1}]\n")
			b.write("manifests/foo/1.0.0/csv.yaml",
				"{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {name: foo.v1}, "+
					"spec: {version: 1.0.0}}\n")
			c.make(b)
			class := c.class
			if class == 0 {
				class = b.run(append([]string{"--error-format=json"}, c.args...)...).class
			}
			b.refused(class, c.text, c.args...)
		})
	}
}

// A report path that is a FIFO does not block.
func TestReportsOfLists(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.write("cat/foo/catalog.yaml", healthy)
	b.write("list", "cat out\n")
	b.accepted("migrate", "--from-file", "list")
	report := filepath.Join(b.dir, "list.reports", names(t, filepath.Join(b.dir, "list.reports"))[0])
	check(t, os.Remove(report))
	check(t, syscall.Mkfifo(report, 0o644))
	before := b.snapshot()
	if o := b.run("migrate", "--from-file", "list"); o.status != 1 || !strings.Contains(o.stderr,
		"not a regular file") || o.took > maxTime {
		t.Errorf("status %d after %s: %s", o.status, o.took, o.stderr)
	}
	b.unchanged("a FIFO", before)
	// The pipe that a shell creates for "<(command)" can be read.
	cmd := exec.Command("/bin/sh", "-c", `echo cat out2 | "$0" migrate --from-file /dev/fd/0 --report-dir reports`,
		bindery)
	cmd.Dir, cmd.Env = b.dir, b.env
	if o := b.finish(cmd); o.status != 0 {
		t.Errorf("status %d: %s", o.status, o.stderr)
	}
}

// Index images whose content contradicts their labels are refused.
func TestHostileIndexImages(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for i, path := range []string{"/configs", "/configs/foo", "/configs/foo/catalog.yaml", "/proc/self/environ",
		"/in\ndex.db", "/../../canary/secret", "/"} {
		dir := fmt.Sprintf("img%d", i)
		picture{
			labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs",
				"operators.operatorframework.io.index.database.v1": path},
			layers: []blobOf{gzipLayer(t, tarOf(t, file("configs/foo/catalog.yaml", healthy)))},
		}.put(b, dir)
		image := "oci:" + dir + ":v1"
		for _, args := range [][]string{
			{"index", "rm", "-f", image, "-o", "foo", "-t", "example.com/bar:v1", "--output", "oci:out"},
			{"index", "rm", "--generate", "-f", image, "-o", "foo"},
			{"catalog", "rm", image, "foo", "-t", "example.com/bar:v1", "--output", "oci:out"},
			{"migrate", image, "-t", "example.com/bar:v1", "--output", "oci:out"},
			{"index", "export", "-i", image, "-f", "out"},
		} {
			before := b.snapshot()
			o := b.run(append([]string{"--error-format=json"}, args...)...)
			if o.status != 1 || o.stdout != "" || strings.Contains(o.stderr, secret) {
				t.Errorf("%q: %q: status %d: %.500s", path, args, o.status, o.stderr)
			}
			b.unchanged(path, before)
		}
	}
}

// Passwords in image names are never printed, whatever is wrong with the name.
func TestCredentialsInEdits(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.write("cat/foo/catalog.yaml", healthy)
	b.write("small.db", string(smallDatabase(t)))
	for _, ref := range []string{"user:" + secret + "@127.0.0.1:1/x:v1",
		"docker://user:" + secret + "@127.0.0.1:1/x:v1"} {
		b.write("list", ref+" out\n")
		b.write("images", "cat -> "+ref+"\n")
		for _, args := range [][]string{
			{"catalog", "add", "cat", ref, "--permissive", "--account", "-"},
			{"registry", "add", "-d", "small.db", "-b", ref},
			{"registry", "mirror", "cat", "--to", ref},
			{"registry", "deprecatetruncate", "-d", "small.db", "-b", ref},
			{"index", "rm", "-f", "small.db", "-o", "etcd", "-t", ref},
			{"index", "rm", "-f", ref, "-o", "etcd", "-t", "example.com/x:v1"},
			{"index", "rm", "-f", "small.db", "-o", "etcd", "-t", "example.com/x:v1", "--binary-image", ref},
			{"index", "export", "-i", ref},
			{"catalog", "promote", "cat", ref, "--channel", "x"},
			{"migrate", "cat", "-t", ref},
			{"migrate", "--from-file", "images"},
			{"migrate", "--from-file", "list", "--report-dir", "../tmp/reports", "--results", "-"},
		} {
			before := b.snapshot()
			o := b.run(args...)
			inJSON := b.run(append([]string{"--error-format=json"}, args...)...)
			reports, err := filepath.Glob(filepath.Join(b.tmp, "reports", "*"))
			check(t, err)
			text := o.stdout + o.stderr + inJSON.stdout + inJSON.stderr
			for _, name := range reports {
				data, err := os.ReadFile(name)
				check(t, err)
				text += string(data)
			}
			check(t, os.RemoveAll(filepath.Join(b.tmp, "reports")))
			if strings.Contains(text, secret) || !slices.Contains(args, "--permissive") && o.status == 0 {
				t.Errorf("%q: status %d: %.800s", args, o.status, text)
			}
			b.unchanged(fmt.Sprint(args), before)
		}
	}
}

// Ten concurrent edits of a missing catalog all succeed.
func TestManyEdits(t *testing.T) {
	for _, to := range []string{"new.db", "new/"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			var wg sync.WaitGroup
			failures := make([]string, 10)
			for i := range failures {
				name := fmt.Sprintf("foo.v%d", i)
				b.bundleDir(name, name, fmt.Sprintf("%d.0.0", i+1), fmt.Sprintf("c%d", i), "")
			}
			for i := range failures {
				wg.Go(func() {
					cmd := b.command(context.Background(), "catalog", "add", "--create", "--wait", "50s", to,
						fmt.Sprintf("foo.v%d", i), imageTemplate)
					if out, err := cmd.CombinedOutput(); err != nil {
						failures[i] = fmt.Sprintf("%v: %s", err, out)
					}
				})
			}
			wg.Wait()
			for _, f := range failures {
				if f != "" {
					t.Error(f)
				}
			}
			o := b.accepted("list", "bundles", to)
			for i := range failures {
				if !strings.Contains(o.stdout, fmt.Sprintf("example.com/foo:v%d.0.0", i+1)) {
					t.Errorf("bundle %d is lost: %s", i, o.stdout)
				}
			}
			if got := names(t, b.dir); len(got) != 11 {
				t.Errorf("left: %q", got)
			}
			b.noTemp(to)
		})
	}
}
