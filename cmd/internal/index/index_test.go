package index_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// layerFiles lists the files in the layers of an image with their sizes, and the total size of the layers. Files hidden
// by upper layers are included.
func layerFiles(t *testing.T, layout, tag string) (files map[string]string, size int64) {
	t.Helper()
	files = map[string]string{}
	for _, l := range clitest.Opened(t, "oci:"+layout+":"+tag, v1.Platform{}).Layers {
		size += l.Size
		f, err := os.Open(filepath.Join(layout, "blobs", "sha256", l.Digest.Encoded()))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			files[h.Name] = string(text)
		}
		f.Close()
	}
	return files, size
}

// Every command has the same effect on an image as in place, in both formats; the new image has the format of the old
// one, and removed content is in none of its layers.
func TestIndexVerbs(t *testing.T) {
	dir := clitest.IndexDir(t)
	for _, c := range []struct {
		rule, index, registry string
		gone                  string // must be in no layer
	}{
		{"add", "add -b etcd --image-ref-template " + clitest.RefTemplate, "add -b etcd --image-ref-template " + clitest.RefTemplate,
			""},
		{"add in mode semver", "add --mode semver -b constraint-1,constraint-2 --image-ref-template " + clitest.RefTemplate,
			"add --mode semver -b constraint-1,constraint-2 --image-ref-template " + clitest.RefTemplate, ""},
		{"rm", "rm -o silicom-sts-operator", "rm -o silicom-sts-operator", "silicom"},
		{"prune", "prune -p etcd", "prune -p etcd", "silicom"},
		{"prune-stranded", "prune-stranded", "prune-stranded", ""},
		{"deprecatetruncate", "deprecatetruncate -b silicom-sts-operator/silicom-sts-operator.v0.0.5",
			"deprecatetruncate -b silicom-sts-operator/silicom-sts-operator.v0.0.5",
			"community/silicom-sts-operator:v0.0.4"},
		{"nothing", "add -b=", "", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for format, in := range map[string]string{"db": "index.db", "fbc": "catalog"} {
				tag := strings.ReplaceAll(c.rule, " ", "-")
				at := filepath.Join(dir, tag+"-"+format)
				if format == "db" {
					clitest.CopyFile(t, filepath.Join(dir, in), at+".db")
					in = at + ".db"
				} else {
					if err := os.CopyFS(at, os.DirFS(filepath.Join(dir, in))); err != nil {
						t.Fatal(err)
					}
					in = at
				}
				args := strings.Fields(
					"index " + c.index + " -f oci:" + format + ".oci:v1 -t acme/new-" + format + ":" + tag +
						" --server none")
				out := clitest.Done(t, dir, "bindery", args...)
				image := "oci:new-" + format + ".oci:" + tag
				if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 2 || lines[0] != image ||
					!strings.HasPrefix(lines[1], "acme/new-"+format+"@sha256:") {
					t.Errorf("%s: printed %q", format, out)
				}
				if c.registry != "" {
					clitest.Done(t, dir, "bindery", strings.Fields("registry "+c.registry+" -d "+in)...)
				}
				if got, want := clitest.Done(t, dir, "bindery", "render", image), clitest.Done(t, dir, "bindery", "render",
					in); got != want {
					t.Errorf("%s: the image has\n%.2000s\nin place it is\n%.2000s", format, got, want)
				}
				layout := filepath.Join(dir, "new-"+format+".oci")
				label := map[string]string{"db": clitest.TestDatabaseLabel + "=/database/index.db",
					"fbc": clitest.TestConfigsLabel + "=/configs"}[format]
				for k, v := range clitest.Opened(t, "oci:"+layout+":"+tag, v1.Platform{}).Config.Config.Labels {
					if k+"="+v != label {
						t.Errorf("%s: label %s=%s", format, k, v)
					}
				}
				before, sizeBefore := layerFiles(t, filepath.Join(dir, format+".oci"), "v1")
				after, sizeAfter := layerFiles(t, layout, tag)
				if c.gone == "" {
					continue
				}
				if sizeAfter >= sizeBefore {
					t.Errorf("%s: %d bytes after %d", format, sizeAfter, sizeBefore)
				}
				found := func(files map[string]string) (names []string) {
					for name, text := range files {
						if !strings.HasPrefix(name, "bin/") && strings.Contains(name+text, c.gone) {
							names = append(names, name)
						}
					}
					return names
				}
				if names := found(before); len(names) == 0 {
					t.Errorf("%s: %q was not there before", format, c.gone)
				}
				if names := found(after); len(names) > 0 {
					t.Errorf("%s: %q is still in %q", format, c.gone, names)
				}
				for name := range after {
					if strings.Contains(name, ".wh.") {
						t.Errorf("%s: whiteout %s", format, name)
					}
				}
			}
		})
	}
}

// Packages that an edit does not change keep their files, however these are named, and so their layers.
func TestIndexKeepsFilesOfOtherPackages(t *testing.T) {
	dir := clitest.EditDir(t)
	layout := filepath.Join(dir, "own")
	var graph, bundles strings.Builder
	for _, doc := range strings.SplitAfter(
		clitest.ReadFile(t, filepath.Join(dir, "catalog", "silicom-sts-operator", "catalog.yaml")), "\n---\n") {
		if strings.Contains(doc, "\nschema: olm.bundle\n") {
			bundles.WriteString(doc)
		} else {
			graph.WriteString(doc)
		}
	}
	clitest.WriteFile(t, filepath.Join(layout, "silicom-sts-operator", "graph.yaml"), "# by hand\n"+graph.String())
	clitest.WriteFile(t, filepath.Join(layout, "silicom-sts-operator", "bundles", "all.yaml"), bundles.String())
	clitest.WriteFile(t, filepath.Join(layout, "etcd", "index.yaml"),
		clitest.ReadFile(t, filepath.Join(dir, "catalog", "etcd", "catalog.yaml")))
	clitest.Done(t, dir, "bindery", "build", "catalog", "own", "-t", "acme/own:v1", "--server", "none")
	clitest.Done(t, dir, "bindery", "index", "add", "-b", "etcd", "--image-ref-template", clitest.RefTemplate, "-f", "oci:own.oci:v1",
		"-t", "acme/own:v2", "--server", "none")
	before, _ := layerFiles(t, filepath.Join(dir, "own.oci"), "v1")
	after, _ := layerFiles(t, filepath.Join(dir, "own.oci"), "v2")
	for _, name := range []string{"configs/silicom-sts-operator/graph.yaml",
		"configs/silicom-sts-operator/bundles/all.yaml"} {
		if after[name] != before[name] || after[name] == "" {
			t.Errorf("%s has changed", name)
		}
	}
	if !strings.Contains(after["configs/etcd/catalog.yaml"], "v0.9.5") {
		t.Errorf("files: %q", slices.Sorted(maps.Keys(after)))
	}
	old, same := map[string]bool{}, 0
	for _, l := range clitest.Opened(t, "oci:"+dir+"/own.oci:v1", v1.Platform{}).Layers {
		old[l.Digest.String()] = true
	}
	for _, l := range clitest.Opened(t, "oci:"+dir+"/own.oci:v2", v1.Platform{}).Layers {
		if old[l.Digest.String()] {
			same++
		}
	}
	if same != 1 {
		t.Errorf("%d layers are those of the old image, expected that of one package", same)
	}
}

// The format changes on request; data that a database cannot represent is then an error.
func TestIndexOutputFormat(t *testing.T) {
	dir := clitest.IndexDir(t)
	list := func(image string) string { return clitest.Done(t, dir, "bindery", "list", "bundles", image) }
	clitest.Done(t, dir, "bindery", "index", "rm", "-o", "etcd", "-f", "oci:fbc.oci:v1", "-t", "acme/one:sqlite",
		"--output-format", "sqlite", "--server", "none")
	clitest.Done(t, dir, "bindery", "index", "rm", "-o", "etcd", "-f", "oci:db.oci:v1", "-t", "acme/one:fbc", "--output-format",
		"fbc", "--server", "none")
	if a, b := list("oci:one.oci:sqlite"), list("oci:one.oci:fbc"); a != b || !strings.Contains(a, "silicom") {
		t.Errorf("as a database\n%s\nas a catalog\n%s", a, b)
	}
	for tag, label := range map[string]string{"sqlite": clitest.TestDatabaseLabel, "fbc": clitest.TestConfigsLabel} {
		if labels := clitest.Opened(t, "oci:"+dir+"/one.oci:"+tag, v1.Platform{}).Config.Config.Labels; len(labels) != 1 ||
			labels[label] == "" {
			t.Errorf("%s: labels %v", tag, labels)
		}
	}
	clitest.WriteFile(t, filepath.Join(dir, "more", "etcd", "catalog.yaml"),
		strings.Replace(clitest.ReadFile(t, filepath.Join(dir, "catalog", "etcd", "catalog.yaml")),
			"schema: olm.package\n", "schema: olm.package\ndescription: held by catalogs only\n", 1))
	before := clitest.Snapshot(t, dir)
	args := []string{"index", "add", "-b", "", "-f", "more", "-t", "acme/lost:v1", "--output-format", "sqlite",
		"--server", "none"}
	got := clitest.RunProgram(t, dir, "bindery", args...)
	if got.Status != 1 || !strings.Contains(got.Stderr, "description") || !strings.Contains(got.Stderr,
		"--output-format fbc") {
		t.Errorf("%+v", got)
	}
	if after := clitest.Snapshot(t, dir); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
	if got := clitest.RunProgram(t, dir, "bindery", append(args, "--lossy")...); got.Status != 0 ||
		!strings.Contains(got.Stderr, "cannot store") {
		t.Errorf("%+v", got)
	}
}

// A new index is a catalog or a database; without bundles it is empty, and can be served and added to.
func TestNewIndex(t *testing.T) {
	dir := clitest.EditDir(t)
	for format, label := range map[string]string{"": clitest.TestConfigsLabel, "fbc": clitest.TestConfigsLabel,
		"sqlite": clitest.TestDatabaseLabel} {
		tag := "v" + format
		args := []string{"index", "add", "--bundles", "", "-t", "acme/empty:" + tag, "--server=none",
			"--output-format=" + format}
		if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 1 || !strings.Contains(got.Stderr,
			"hint: --allow-empty") {
			t.Errorf("%q: %+v", format, got)
		}
		clitest.Done(t, dir, "bindery", append(args, "--allow-empty")...)
		image := "oci:empty.oci:" + tag
		if labels := clitest.Opened(t, "oci:"+dir+"/empty.oci:"+tag, v1.Platform{}).Config.Config.Labels; len(labels) != 1 ||
			labels[label] == "" {
			t.Errorf("%q: labels %v", format, labels)
		}
		if got := clitest.Done(t, dir, "bindery", "render", image); got != "" {
			t.Errorf("%q: %q", format, got)
		}
		port := clitest.FreePort(t)
		clitest.ServeUntilStopped(t, dir, port, "serve", image, "-p", port)()
		clitest.Done(t, dir, "bindery", "index", "add", "-b", "constraint-1", "--image-ref-template", clitest.RefTemplate, "-f", image,
			"-t", "acme/one:"+tag, "--server=none")
		if got := clitest.Done(t, dir, "bindery", "list", "bundles", "oci:one.oci:"+tag); !strings.Contains(got,
			"registry.example.com/synth-constraint:v0.1.0") {
			t.Errorf("%q: %s", format, got)
		}
	}
	// opm's default name of the image.
	clitest.Done(t, dir, "bindery", "index", "add", "-b=", "--allow-empty")
	if _, err := os.Stat(filepath.Join(dir, "operator-registry-index.oci", "index.json")); err != nil {
		t.Error(err)
	}
}

// The platforms are the requested ones, else those of the index.
func TestIndexPlatforms(t *testing.T) {
	dir := clitest.EditDir(t)
	r := testregistry.New(t)
	db := clitest.ReadFile(t, filepath.Join(dir, "index.db"))
	clitest.CopyFile(t, filepath.Join(dir, "index.db"), filepath.Join(dir, "other.db"))
	clitest.Done(t, dir, "bindery", "registry", "rm", "-d", "other.db", "-o", "silicom-sts-operator")
	forArch := func(arch string) testregistry.Image {
		return testregistry.Image{Platform: v1.Platform{OS: "linux", Architecture: arch},
			Labels: map[string]string{clitest.TestDatabaseLabel: "/x.db", "arch": arch},
			Layers: []map[string]string{{"x.db": db}}}
	}
	r.AddIndex(t, "acme/index", "v1", nil, []testregistry.Image{forArch("s390x"), forArch("ppc64le")})
	r.AddImage(t, "acme/index", "one", forArch("arm64"))
	other := forArch("arm64")
	other.Layers = []map[string]string{{"x.db": clitest.ReadFile(t, filepath.Join(dir, "other.db"))}}
	r.AddIndex(t, "acme/index", "differ", nil, []testregistry.Image{forArch("amd64"), other, forArch("s390x")})
	r.AddIndex(t, "acme/opm", "v1", nil, []testregistry.Image{clitest.OpmFor("s390x"), clitest.OpmFor("amd64"), clitest.OpmFor("ppc64le")})
	base := r.Host() + "/acme/opm:v1"
	for _, c := range []struct{ rule, args, want, problem string }{
		{"those of the index", "-f " + r.Host() + "/acme/index:v1 -i " + base, "s390x ppc64le", ""},
		{"fewer", "-f " + r.Host() + "/acme/index:v1 -i " + base + " --platform linux/ppc64le", "ppc64le", ""},
		{"others", "-f " + r.Host() + "/acme/index:v1 -i " + base + " --platform linux/amd64,linux/s390x",
			"amd64 s390x", ""},
		{"that of a single image", "-f " + r.Host() + "/acme/index:one --server none", "arm64", ""},
		{"those that hold the same",
			"-f " + r.Host() + "/acme/index:differ -i " + base + " --platform linux/amd64,linux/s390x", "amd64 s390x",
			""},
		{"one that holds something else",
			"-f " + r.Host() + "/acme/index:differ --server none --platform linux/arm64 --allow-empty", "arm64", ""},
		{"those that do not hold the same", "-f " + r.Host() + "/acme/index:differ --server none", "",
			"the platforms of the image have different catalogs: linux/amd64 and linux/arm64"},
		{"one that the binary image lacks", "-f " + r.Host() + "/acme/index:one -i " + base, "",
			`no image for linux/arm64 in the index, which has \"linux/amd64\", \"linux/ppc64le\", \"linux/s390x\"`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			layout := filepath.Join(t.TempDir(), "out")
			args := strings.Fields(
				"index rm -o etcd --use-http --no-cache --error-format json --output oci:" + layout + ":v1 " + c.args)
			got := clitest.RunProgram(t, dir, "bindery", args...)
			if c.problem != "" {
				if got.Status != 1 || !strings.Contains(got.Stderr, c.problem) {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Status != 0 {
				t.Fatalf("%+v", got)
			}
			for _, arch := range strings.Fields(c.want) {
				img := clitest.Opened(t, "oci:"+layout+":v1", v1.Platform{OS: "linux", Architecture: arch})
				if img.Config.Architecture != arch {
					t.Errorf("opened %s for %s", img.Config.Architecture, arch)
				}
				// As in opm, the labels are those of the binary image.
				want := map[string]string{clitest.TestDatabaseLabel: "/database/index.db"}
				if strings.Contains(c.args, base) {
					want["opm"] = arch
				}
				if !maps.Equal(img.Config.Config.Labels, want) {
					t.Errorf("labels %v", img.Config.Config.Labels)
				}
			}
			if n := strings.Count(clitest.ReadFile(t, filepath.Join(layout, "index.json")), `"linux"`); strings.Contains(c.want,
				" ") && n > 0 {
				t.Errorf("an index is not an index")
			}
		})
	}
}

// The server and base of an index come from the binary image, if there is one, and its layers are reused unchanged.
func TestIndexBinaryImage(t *testing.T) {
	dir := clitest.IndexDir(t)
	r := testregistry.New(t)
	r.AddImage(t, "acme/opm", "v1", clitest.OpmFor("amd64"))
	r.AddImage(t, "acme/tools", "v1", testregistry.Image{Layers: []map[string]string{{"bin/tool": "x"}}})
	index := clitest.OpmFor("amd64")
	index.Labels = map[string]string{clitest.TestConfigsLabel: "/configs", clitest.TestDatabaseLabel: "/database/index.db",
		"kept": "yes"}
	index.Layers = append(index.Layers,
		map[string]string{"configs/old/catalog.json": `{"schema":"old"}`, "database/index.db": "old"})
	r.AddImage(t, "acme/index", "v1", index)
	for _, c := range []struct {
		rule, image, server string
		layers              int // number of layers taken from the binary image
		told                string
		ours                bool
	}{
		{"opm's image serves", "opm", "", 2, "/bin/opm of ", false},
		{"an image without a server gets ours", "tools", "", 1, "the embedded server was added", true},
		{"an image may have a server that it does not start", "tools", "base", 1, "/bin/opm of ", false},
		{"a hidden index below is reported", "index", "", 3, "remains in the inherited layers", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			for format, args := range map[string]string{"db": "/database/index.db", "fbc": "/configs"} {
				if c.ours && format == "fbc" {
					continue // the same server, whose layer is slow to build
				}
				out := filepath.Join(t.TempDir(), "out")
				ref := r.Host() + "/acme/" + c.image + ":v1"
				got := clitest.RunProgram(t, dir, "bindery",
					strings.Fields(
						"index rm -o etcd -f oci:"+format+".oci:v1 --use-http --no-cache -i "+ref+" --output oci:"+out+
							":v1 --server="+c.server)...)
				if got.Status != 0 || !strings.Contains(got.Stderr, c.told) {
					t.Fatalf("%s: %+v", format, got)
				}
				img := clitest.Opened(t, "oci:"+out+":v1", v1.Platform{})
				files, _ := layerFiles(t, out, "v1")
				if config := img.Config.Config; !slices.Equal(config.Entrypoint, []string{"/bin/opm"}) ||
					!strings.Contains(strings.Join(config.Cmd, " "), args) {
					t.Errorf("%s: starts %q %q", format, config.Entrypoint, config.Cmd)
				}
				if ours := len(files["bin/opm"]) > 1000; ours != c.ours {
					t.Errorf("%s: the image has a server of %d bytes", format, len(files["bin/opm"]))
				}
				labels := maps.Clone(img.Config.Config.Labels)
				delete(labels, "opm")
				delete(labels, "kept")
				if len(labels) != 1 || c.image == "index" && img.Config.Config.Labels["kept"] != "yes" {
					t.Errorf("%s: labels %v", format, img.Config.Config.Labels)
				}
				text := clitest.Done(t, dir, "bindery", "render", "oci:"+out+":v1")
				if strings.Contains(text, `"old"`) || !strings.Contains(text, "silicom") {
					t.Errorf("%s: renders %.500s", format, text)
				}
				own := 0
				for _, l := range img.Layers {
					if r.Count("GET /v2/acme/"+c.image+"/blobs/"+l.Digest.String()) > 0 {
						own++
					}
				}
				if own != c.layers {
					t.Errorf("%s: %d layers were taken from the binary image", format, own)
				}
				r.Forget()
			}
		})
	}
}

// Standard output has the requested output about the edit, then the destinations, and the digest last. A dry run prints
// the same digest and writes nothing.
func TestIndexAccount(t *testing.T) {
	dir := clitest.IndexDir(t)
	before := clitest.Snapshot(t, dir)
	args := strings.Fields("index rm -o etcd -f oci:db.oci:v1 -t acme/less:v1 --explain --server none")
	dry := clitest.Done(t, dir, "bindery", append(args, "--dry-run")...)
	if after := clitest.Snapshot(t, dir); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
	out := strings.Split(strings.TrimSpace(
		clitest.Done(t, dir, "bindery", append(args, "--account", "account.json", "--digest-file", "digest")...)), "\n")
	lines := strings.Split(strings.TrimSpace(dry), "\n")
	if len(lines) < 2 || !strings.Contains(lines[0], "etcd") || lines[len(lines)-1] != out[len(out)-1] {
		t.Errorf("dry run:\n%s\ndone:\n%s", dry, strings.Join(out, "\n"))
	}
	if len(out) != 2 || out[0] != "oci:less.oci:v1" || out[1] != "acme/less@"+clitest.ReadFile(t,
		filepath.Join(dir, "digest")) {
		t.Errorf("printed %q", out)
	}
	if text := clitest.ReadFile(t, filepath.Join(dir, "account.json")); !strings.Contains(text, `"action": "removed"`) ||
		!strings.Contains(text, `"oci:db.oci:v1"`) {
		t.Errorf("account:\n%s", text)
	}
}

// --generate writes the same files as opm, and replaces only those.
func TestIndexGenerate(t *testing.T) {
	answers := recorded.All(t)
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	const at = testregistry.RecordedHost
	for _, c := range []struct{ rule, args, dockerfile, golden, bundles string }{
		{"a new index",
			"add -b " + at + "/community/etcd:v0.9.0," + at + "/community/etcd:v0.9.2 -p none -i example.test/opm:1",
			"index.Dockerfile", "index-add.Dockerfile", "index-add.bundles"},
		{"an addition",
			"add -b " + at + "/community/apicurito:v0.1.0 -f " + at + "/index/small-db:v1 -p none -d my.Dockerfile",
			"my.Dockerfile", "index-add-from.Dockerfile", "index-add-from.bundles"},
		{"rm", "rm -o etcd -f " + at + "/index/small-db:v1 -p none", "index.Dockerfile", "index-add-from.Dockerfile",
			""},
		{"prune", "prune -p etcd -f " + at + "/index/small-db:v1", "index.Dockerfile", "index-add-from.Dockerfile", ""},
		{"deprecatetruncate",
			"deprecatetruncate -b " + at + "/community/etcd:v0.9.2 -f " + at + "/index/small-db:v1 -p none",
			"index.Dockerfile", "index-add-from.Dockerfile", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			dir := t.TempDir()
			clitest.WriteFile(t, filepath.Join(dir, "cache", "mine"), "mine")
			clitest.WriteFile(t, filepath.Join(dir, "database", "mine"), "mine")
			var first string
			for range 2 { // the second run replaces the files of the first
				got := clitest.RunOpm(t, conf, dir, strings.Fields("index "+c.args+" --generate --use-http")...)
				if got.Status != 0 || got.Stdout != "" {
					t.Fatalf("%+v", got)
				}
				if text := clitest.ReadFile(t,
					filepath.Join(dir, c.dockerfile)); text != string(answers.File(t, "golden-misc/"+c.golden)) {
					t.Errorf("Dockerfile:\n%s", text)
				}
				db := clitest.ReadFile(t, filepath.Join(dir, "database", "index.db"))
				if first == "" {
					first = db
				} else if db != first {
					t.Error("the second run has written another database")
				}
			}
			if c.bundles != "" {
				if got, want := bundlesOf(t, dir), string(answers.File(t, "golden-misc/"+c.bundles)); got != want {
					t.Errorf("bundles\n%s\nwant\n%s", got, want)
				}
			}
			names := filesOf(t, dir)
			if want := []string{"cache/mine", "database/index.db", "database/mine", c.dockerfile}; !slices.Equal(names,
				want) {
				t.Errorf("files %q", names)
			}
		})
	}
}

// bundlesOf lists the bundles of a generated database as NAME|IMAGE.
func bundlesOf(t *testing.T, dir string) string {
	t.Helper()
	image := map[string]string{}
	for _, line := range strings.Split(clitest.Done(t, dir, "bindery", "list", "bundles", "database/index.db"), "\n")[1:] {
		if words := strings.Fields(line); len(words) > 0 {
			image[words[3]] = words[len(words)-1]
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(image)) {
		fmt.Fprintf(&b, "%s|%s\n", name, image[name])
	}
	return b.String()
}

func filesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Files that were not generated are not overwritten, and after a failure nothing has changed.
func TestIndexGenerateLeavesWhatIsThere(t *testing.T) {
	for rule, c := range map[string]struct{ path, format, want string }{
		"a file that is no database":   {"database/index.db", "sqlite", "only if it is an index database"},
		"a file instead of database":   {"database", "sqlite", "not a directory"},
		"a catalog":                    {"configs/etcd/catalog.yaml", "fbc", "--generate does not replace a directory"},
		"a Dockerfile of another kind": {"index.Dockerfile", "sqlite", "is not a Dockerfile of an index"},
		"a directory as Dockerfile":    {"index.Dockerfile/x", "fbc", "is not a Dockerfile of an index"},
	} {
		t.Run(rule, func(t *testing.T) {
			dir := clitest.EditDir(t)
			clitest.WriteFile(t, filepath.Join(dir, c.path), "somebody's")
			before := clitest.Snapshot(t, dir)
			got := clitest.RunProgram(t, dir, "bindery", "index", "rm", "-o", "etcd", "-f", "catalog", "--generate",
				"--output-format", c.format)
			if got.Status != 1 || !strings.Contains(got.Stderr, c.want) {
				t.Errorf("%+v", got)
			}
			if after := clitest.Snapshot(t, dir); after != before {
				t.Errorf("files before\n%s\nafter\n%s", before, after)
			}
		})
	}
	// A file-based catalog gets the same Dockerfile as from "generate dockerfile".
	dir := clitest.EditDir(t)
	if got := clitest.RunProgram(t, dir, "bindery", "index", "rm", "-o", "etcd", "-f", "catalog", "--generate", "-i",
		"example.test/opm:1"); got.Status != 0 || !strings.HasPrefix(got.Stderr,
		"wrote configs\nwrote index.Dockerfile\n") {
		t.Errorf("got %+v", got)
	}
	text := clitest.ReadFile(t, filepath.Join(dir, "index.Dockerfile"))
	clitest.Done(t, dir, "bindery", "generate", "dockerfile", "configs", "-i", "example.test/opm:1")
	if want := clitest.ReadFile(t, filepath.Join(dir, "configs.Dockerfile")); text != strings.ReplaceAll(want,
		"FROM quay.io/operator-framework/opm:latest as", "FROM example.test/opm:1 as") {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if got, want := clitest.Done(t, dir, "bindery", "render", "configs"), clitest.Done(t, dir, "bindery", "render",
		"catalog"); got == want || !strings.Contains(want, got[:200]) && !strings.Contains(got, "silicom") {
		t.Errorf("the catalog has\n%.500s", got)
	}
	if got := fmt.Sprint(filesOf(t, filepath.Join(dir, "configs"))); got != "[silicom-sts-operator/catalog.yaml]" {
		t.Errorf("files %s", got)
	}
}
