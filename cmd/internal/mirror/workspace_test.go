package mirror_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// listing is what a directory has: of each file its kind, number of names, time and content.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s %s %d", path, info.Mode(), info.ModTime(), info.Sys().(*syscall.Stat_t).Nlink)
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %s", digest.FromBytes(text))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// mediumWorld is a mirror world with a medium whose workspace has a file of each kind.
type mediumWorld struct {
	*clitest.MirrorWorld
	workspace, kept, outside string
}

func newMediumWorld(t *testing.T) *mediumWorld {
	t.Helper()
	w := &mediumWorld{MirrorWorld: newMirrorWorld(t)}
	w.workspace, w.kept = filepath.Join(w.Dir, "media", "working-dir"), filepath.Join(w.Dir, "kept")
	for _, line := range []string{"mirror run -c imageset.yaml file://media",
		"mirror run -c imageset.yaml --from media TARGET", "mirror run -c imageset.yaml --from media TARGET --dry-run"} {
		if got := w.Run(line); got.Status != 0 {
			t.Fatalf("%s: %+v", line, got)
		}
	}
	if err := os.Rename(w.workspace, w.kept); err != nil {
		t.Fatal(err)
	}
	return w
}

// reset makes the workspace and the directory outside of it as they were.
func (w *mediumWorld) reset() {
	w.Helper()
	w.outside = filepath.Join(w.T.TempDir(), "outside")
	for _, err := range []error{os.RemoveAll(w.workspace), os.CopyFS(w.workspace, os.DirFS(w.kept)),
		os.CopyFS(w.outside, os.DirFS(w.kept)), os.CopyFS(filepath.Join(w.outside, "cluster-resources"), os.DirFS(w.kept+
			"/dry-run/cluster-resources"))} {
		if err != nil && !os.IsExist(err) {
			w.Fatal(err)
		}
	}
}

// find returns the path of a file of the workspace, by a pattern.
func (w *mediumWorld) find(pattern string) string {
	w.Helper()
	found, err := filepath.Glob(filepath.Join(w.workspace, pattern))
	if err != nil || len(found) > 1 {
		w.Fatal(found, err)
	}
	if len(found) == 0 {
		return filepath.Join(w.workspace, pattern)
	}
	return found[0]
}

// Command runs a command line, which must end in time.
func (w *mediumWorld) command(line string) clitest.Result {
	w.Helper()
	args := strings.Fields(strings.ReplaceAll(line, "TARGET", w.Target))
	if args[0] == "oc-mirror" {
		args = append(args, "--src-tls-verify=false", "--dest-tls-verify=false")
	} else {
		args = append(args, "--registries-conf", w.Conf, "--use-http", "--no-cache")
	}
	name := "bindery"
	if args[0] == "oc-mirror" {
		name, args = args[0], args[1:]
	}
	cmd := clitest.Command(w.Dir, name, args...)
	cmd.Env = append(cmd.Env, "CONTAINERS_REGISTRIES_CONF="+w.Conf, "SOURCE_DATE_EPOCH=1700000000")
	stop := time.AfterFunc(30*time.Second, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	defer stop.Stop()
	return clitest.Finish(w.T, cmd)
}

// Every path below a workspace that a command reads or writes is one of its own: no link is followed, whether it leads
// outside or stays inside, nothing waits for a FIFO, and no file elsewhere changes.
func TestWorkspaceWithOtherFiles(t *testing.T) {
	w := newMediumWorld(t)
	const from = "mirror run -c imageset.yaml --from media TARGET"
	const toDisk = "mirror run -c imageset.yaml file://media"
	ocMirror := "oc-mirror -c imageset.yaml --from file://media TARGET"
	generate := "oc-mirror delete --generate -c delete.yaml --workspace file://media TARGET"
	log := "logs/oc-mirror-20231114_221320.log"
	kinds := map[string]func(path string) error{
		"a link outside": func(path string) error {
			return os.Symlink(filepath.Join(w.outside, strings.TrimPrefix(path, w.workspace)), path)
		},
		"a link inside": func(path string) error {
			if err := os.CopyFS(filepath.Join(w.workspace, "inside"), os.DirFS(w.kept)); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(w.workspace, "inside", strings.TrimPrefix(path, w.workspace)), path)
		},
		"a FIFO": func(path string) error { return syscall.Mkfifo(path, 0o644) },
	}
	for _, c := range []struct{ line, path string }{
		{from, ""}, {from, "cluster-resources"}, {from, ".lock"}, {from, ".uploads"}, {from, ".carried"},
		{from, ".mirrored-*.json"}, {from, "cluster-resources/mapping.txt"},
		{from + " --dry-run", "dry-run"}, {from + " --dry-run", ""},
		{ocMirror, "logs"}, {ocMirror, log}, {ocMirror, "cluster-resources"}, {ocMirror, ".uploads"},
		{generate, "delete"}, {generate, "delete/delete-images.yaml"}, {generate, ".mirrored-*.json"},
		{toDisk, ".history"}, {toDisk, "bindery"}, {toDisk, "bindery/where-*"}, {toDisk, ""},
		{"mirror resources -c imageset.yaml --from media TARGET", "cluster-resources"},
		{"mirror publish -c imageset.yaml --from media TARGET", "cluster-resources"},
		{"mirror verify TARGET --workspace media", ".mirrored-*.json"}, {"mirror verify TARGET --workspace media", ""},
		{"mirror delete TARGET -c delete.yaml --workspace media --list l.yaml", ".mirrored-*.json"},
		{"mirror run -c imageset.yaml --workspace media/working-dir TARGET", ""},
	} {
		for kind, make := range kinds {
			if c.path == "" && kind == "a link inside" || c.path == "dry-run" && kind == "a FIFO" {
				continue // there is no such thing, or it is removed
			}
			t.Run(c.line+" "+c.path+" "+kind, func(t *testing.T) {
				v := *w
				v.MirrorWorld = &clitest.MirrorWorld{T: t, Dir: w.Dir, Conf: w.Conf, Target: w.Target}
				v.reset()
				w.outside = v.outside
				path := v.find(c.path)
				for _, err := range []error{os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o755), make(path)} {
					if err != nil {
						t.Fatal(err)
					}
				}
				before := listing(t, v.outside)
				got := v.command(c.line)
				if got.Status != 1 || !strings.Contains(got.Stderr, strings.TrimPrefix(path, v.Dir+"/")) {
					t.Errorf("%+v", got)
				}
				if listing(t, v.outside) != before {
					t.Error("something outside has changed")
				}
			})
		}
	}
	// Files that are replaced leave their other names alone.
	t.Run("hard links", func(t *testing.T) {
		for _, line := range []string{from, ocMirror, toDisk, generate} {
			v := *w
			v.MirrorWorld = &clitest.MirrorWorld{T: t, Dir: w.Dir, Conf: w.Conf, Target: w.Target}
			v.reset()
			if err := os.MkdirAll(filepath.Join(v.workspace, "logs"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(v.workspace, log), []byte("a log"), 0o644); err != nil {
				t.Fatal(err)
			}
			texts := map[string]string{}
			names := t.TempDir()
			err := filepath.WalkDir(v.workspace, func(path string, e fs.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() {
					return err
				}
				other := filepath.Join(names, digest.FromString(path).Encoded())
				texts[other] = clitest.ReadFile(t, path)
				return os.Link(path, other)
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := v.command(line); got.Status != 0 {
				t.Errorf("%s: %+v", line, got)
			}
			for name, text := range texts {
				if clitest.ReadFile(t, name) != text {
					t.Errorf("%s: the other name of a file has another content", line)
				}
			}
		}
	})
}

// The files of an unfinished archive are changed in place: not if they have another name elsewhere, and not through
// links.
func TestUnfinishedArchiveWithOtherFiles(t *testing.T) {
	w := newMirrorWorld(t)
	for _, name := range []string{".mirror.journal", ".mirror_000001.partial", ".mirror.commit.new"} {
		for kind, make := range map[string]func(old, path string) error{
			"a link": os.Symlink, "a hard link": os.Link,
			"a FIFO": func(_, path string) error { return syscall.Mkfifo(path, 0o644) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				dir := t.TempDir()
				file := filepath.Join(dir, "file")
				clitest.WriteFile(t, file, "text")
				if err := os.Mkdir(filepath.Join(dir, "new"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := make(file, filepath.Join(dir, "new", name)); err != nil {
					t.Fatal(err)
				}
				v := &mediumWorld{MirrorWorld: &clitest.MirrorWorld{T: t, Dir: w.Dir, Conf: w.Conf, Target: w.Target}}
				got := v.command("mirror run -c imageset.yaml --workspace " + dir + "/ws file://" + dir + "/new")
				if name == ".mirror.journal" && (got.Status != 1 || !strings.Contains(got.Stderr, name)) ||
					got.Status != 0 && got.Status != 1 {
					t.Errorf("%+v", got)
				}
				if text := clitest.ReadFile(t, file); text != "text" {
					t.Errorf("the file elsewhere has %d bytes", len(text))
				}
			})
		}
	}
}

// A medium that cannot be written is enough with a workspace elsewhere, and the error without one says so. A file in
// place of the directory stops everyone, also root.
func TestMediumThatCannotBeWritten(t *testing.T) {
	w := newMirrorWorld(t)
	if got := w.Run("mirror run -c imageset.yaml --workspace ws file://media"); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	clitest.WriteFile(t, filepath.Join(w.Dir, "media", "working-dir"), "no directory")
	before := listing(t, filepath.Join(w.Dir, "media"))
	for _, line := range []string{"mirror run -c imageset.yaml --from media TARGET",
		"mirror publish -c imageset.yaml --from media TARGET", "mirror resources -c imageset.yaml --from media TARGET",
		"mirror run -c imageset.yaml --from media TARGET --dry-run"} {
		got := w.Run(line)
		if got.Status != 1 || !strings.Contains(got.Stderr, "hint: --workspace DIR") {
			t.Errorf("%s: %+v", line, got)
		}
		if got := w.Run(line + " --workspace elsewhere"); got.Status != 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
	v := &mediumWorld{MirrorWorld: w}
	if got := v.command("oc-mirror -c imageset.yaml --from file://media TARGET"); got.Status != 1 ||
		!strings.Contains(got.Stderr, "--workspace DIR") {
		t.Errorf("%+v", got)
	}
	if got := w.Run("mirror verify file://media"); got.Status != 0 {
		t.Errorf("%+v", got)
	}
	if got := w.Run("mirror verify TARGET -c imageset.yaml --workspace elsewhere"); got.Status != 0 {
		t.Errorf("%+v", got)
	}
	if listing(t, filepath.Join(w.Dir, "media")) != before {
		t.Error("something of the medium has changed")
	}
	// A workspace that is only read is not made.
	if got := w.Run("mirror verify TARGET -c imageset.yaml --workspace nowhere"); got.Status != 0 ||
		clitest.Exists(t, filepath.Join(w.Dir, "nowhere")) {
		t.Errorf("%+v", got)
	}
}

// Only the registry that the command names is asked: not one that a record, a list or an upload on the medium names.
func TestMediumNamesOtherRegistries(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked.Add(1) }))
	defer other.Close()
	host := strings.TrimPrefix(other.URL, "http://")
	w := newMediumWorld(t)
	w.reset()
	own := strings.TrimPrefix(w.Registry.Host(), "http://")
	record := w.find(".mirrored-*.json")
	text := clitest.ReadFile(t, record)
	for name, changed := range map[string]string{
		"catalogs": strings.ReplaceAll(text, "docker://"+own+"/olm/acme", "docker://"+host+"/olm/acme"),
		"images":   strings.ReplaceAll(text, "docker://"+own+"/olm/extra", "docker://"+host+"/olm/extra"),
		"all":      strings.ReplaceAll(text, own, host),
		"layouts":  strings.ReplaceAll(text, "docker://"+own+"/olm/acme", "oci:///tmp/x"),
	} {
		if changed == text {
			t.Fatal(text)
		}
		clitest.WriteFile(t, record, changed)
		for _, line := range []string{"mirror verify TARGET --workspace media", "mirror verify TARGET -c imageset.yaml " +
			"--workspace media", "mirror delete -c delete.yaml --workspace media TARGET",
			"mirror resources -c imageset.yaml --from media TARGET",
			"oc-mirror delete --generate -c delete.yaml --workspace file://media TARGET"} {
			if got := w.command(line); got.Status != 1 || !strings.Contains(got.Stderr, "is not at "+own) {
				t.Errorf("%s: %s: %+v", name, line, got)
			}
		}
	}
	clitest.WriteFile(t, record, text)
	if got := w.Run("mirror delete -c delete.yaml --workspace media TARGET --list list.yaml"); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	kept := "keptItems:\n- imageName: docker://x/y:z\n  imageReference: docker://" + host + "/olm/y:z\n  reason: x\n"
	list := clitest.ReadFile(t, filepath.Join(w.Dir, "list.yaml"))
	if at := strings.Index(list, "keptItems:\n"); at >= 0 {
		list = strings.Replace(list, "keptItems:\n", kept, 1)
	} else {
		list = strings.Replace(list, "kind:", kept+"kind:", 1)
	}
	clitest.WriteFile(t, filepath.Join(w.Dir, "list.yaml"), list)
	for _, line := range []string{"mirror delete --list list.yaml TARGET",
		"oc-mirror delete --delete-yaml-file list.yaml TARGET"} {
		if got := w.command(line); got.Status != 1 || !strings.Contains(got.Stderr, "is not at "+own) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("another registry has %d requests", n)
	}
}

// An upload goes on only at the place where it began: that of its repository at the registry.
func TestUploadsOfOtherRegistries(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked.Add(1) }))
	defer other.Close()
	source, target := testregistry.New(t), testregistry.New(t)
	source.AddImage(t, "big/image", "v1", testregistry.Image{Layers: []map[string]string{
		{"file": string(noise(12 << 20))}}})
	w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: source.RegistriesConf(t, mirrortest.Host), Target: "docker://" + target.Host() + "/olm", Registry: target}
	w.Write("imageset.yaml", "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n"+
		"  additionalImages:\n  - name: registry.example.com/big/image:v1\n")
	if got := w.Run("mirror run -c imageset.yaml --workspace ws file://media"); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	var m struct {
		Layers []struct{ Digest digest.Digest }
	}
	if err := json.Unmarshal(source.Manifest("big/image", "v1"), &m); err != nil {
		t.Fatal(err)
	}
	repository := target.Host() + "/olm/big/image"
	for n, location := range []string{other.URL + "/v2/olm/big/image/blobs/uploads/1",
		"http://" + target.Host() + "/v2/olm/other/blobs/uploads/1", "http://" + target.Host() + "/admin",
		"http://" + target.Host() + "/v2/olm/big/image/blobs/uploads/../../../../other/blobs/uploads/1",
		"//" + strings.TrimPrefix(other.URL, "http://") + "/v2/olm/big/image/blobs/uploads/1"} {
		text, err := json.Marshal(map[string]string{"repository": repository, "digest": m.Layers[0].Digest.String(),
			"location": location})
		if err != nil {
			t.Fatal(err)
		}
		ws := fmt.Sprintf("ws%d", n)
		name := digest.FromString(repository+"@"+m.Layers[0].Digest.String()).Encoded() + ".json"
		dir := filepath.Join(w.Dir, ws, "working-dir", ".uploads")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		clitest.WriteFile(t, filepath.Join(dir, name), string(text))
		target.DeleteBlob(m.Layers[0].Digest)
		target.Forget()
		if got := w.Run("mirror run -c imageset.yaml --from media --workspace " + ws + " TARGET"); got.Status != 0 {
			t.Errorf("%s: %+v", location, got)
		}
		for _, q := range target.Requests() {
			if strings.Contains(q, "/other/") || strings.Contains(q, "/admin") {
				t.Errorf("%s: %s", location, q)
			}
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("another registry has %d requests", n)
	}
}

// noise are bytes that do not get smaller when they are compressed.
func noise(n int) []byte {
	out := make([]byte, 0, n+64)
	for sum := digest.FromString(""); len(out) < n; sum = digest.FromString(sum.String()) {
		out = append(out, sum.Encoded()...)
	}
	return out[:n]
}
