package option_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// pushAccount has the tested fields of --metadata-file.
type pushAccount struct {
	Digest string
	Layers []struct {
		Kind     string
		Packages []string
		Digest   string
		DiffID   string
		Bytes    int64
		Transfer string
	}
	Destinations []struct {
		Blobs []struct {
			Digest, How, From string
			Bytes             int64
		}
	}
	Codecs  map[string]string
	Traffic struct{ Pushed, Mounted, Reused, Manifests struct{ Count, Bytes int64 } }
}

// Pushing an edited package uploads its layer, the configuration and the manifest; the account reports that.
func TestPushTellsWhatItMoved(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(true)
	dir := clitest.WorkDir(t)
	push := func(args ...string) (clitest.Result, pushAccount) {
		t.Helper()
		got := clitest.RunProgram(t, dir, "bindery",
			append([]string{"build", "catalog", "cat", "--push", "--use-http", "--server", "none", "--metadata-file",
				"account"}, args...)...)
		var account pushAccount
		if got.Status == 0 {
			if err := json.Unmarshal([]byte(clitest.ReadFile(t, filepath.Join(dir, "account"))), &account); err != nil {
				t.Fatal(err)
			}
		}
		return got, account
	}
	name := reg.Host() + "/acme/catalog"
	clitest.WriteFile(t, filepath.Join(dir, "cat", "second", "catalog.yaml"),
		"schema: olm.package\nname: second\ndefaultChannel: a\n---\n"+
			"schema: olm.channel\npackage: second\nname: a\nentries: [{name: second.v1.0.0}]\n---\n"+
			"schema: olm.bundle\npackage: second\nname: second.v1.0.0\nimage: registry.example.com/second@sha256:"+
			strings.Repeat("1", 64)+
			"\nproperties: [{type: olm.package, value: {packageName: second, version: 1.0.0}}]\n")
	got, first := push("-t", name+":v1", "--if-digest", "none")
	if got.Status != 0 || first.Traffic.Pushed.Count != int64(len(first.Layers))+1 || first.Traffic.Reused.Count != 0 {
		t.Fatalf("%+v: %+v", got, first.Traffic)
	}
	if want := "wrote docker://" + name + ":v1: sent "; !strings.Contains(got.Stderr, want) ||
		!strings.Contains(got.Stderr, "mounted 0 B (0 blobs), reused 0 B (0 blobs)") {
		t.Errorf("no %q in %s", want, got.Stderr)
	}
	path := filepath.Join(dir, "cat", "second", "catalog.yaml")
	clitest.WriteFile(t, path, strings.Replace(clitest.ReadFile(t, path), "\n---", "\ndescription: edited\n---", 1))
	got, second := push("-t", name+":v1", "--if-digest", first.Digest)
	if got.Status != 0 || second.Traffic.Pushed.Count != 2 || second.Traffic.Manifests.Count != 2 ||
		second.Traffic.Reused.Count != int64(len(second.Layers))-1 {
		t.Fatalf("%+v: %+v", got, second.Traffic)
	}
	for _, l := range second.Layers {
		want := "reused"
		if len(l.Packages) == 1 && l.Packages[0] == "second" {
			want = "pushed"
		}
		if l.Transfer != want || l.DiffID == "" || l.Bytes == 0 {
			t.Errorf("%+v, want %s", l, want)
		}
	}
	// A second repository mounts the layers, and a third name finds everything present.
	got, third := push("-t", name+":v2", "-t", reg.Host()+"/acme/copy:v2")
	if got.Status != 0 || third.Traffic.Pushed.Count != 0 ||
		third.Traffic.Mounted.Count != int64(len(third.Layers))+1 || third.Layers[0].Transfer != "mounted" {
		t.Errorf("%+v: %+v", got, third.Traffic)
	}
	if from := third.Destinations[1].Blobs[0].From; from != name {
		t.Errorf("borrowed from %q", from)
	}
	// Layers can be mounted from both images of an index with two compressions.
	push("-t", name+":twins", "--compression", "auto")
	got, fourth := push("-t", reg.Host()+"/acme/twins:v1", "--compression", "auto", "--previous", name+":twins")
	if got.Status != 0 || fourth.Traffic.Pushed.Count != 1 ||
		fourth.Traffic.Mounted.Count != int64(len(fourth.Layers)) {
		t.Errorf("%+v: %+v", got, fourth.Traffic)
	}
	if len(fourth.Codecs) != 2 || !strings.HasPrefix(fourth.Codecs["gzip"], "gzip level 5 ") ||
		!strings.HasPrefix(fourth.Codecs["zstd"], "zstd level ") {
		t.Errorf("codecs %v", fourth.Codecs)
	}
	// Without a registry there is no traffic to report.
	if got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "cat", "--server", "none", "--output", "oci:image",
		"--metadata-file", "-"); strings.Contains(got.Stdout, "traffic") || strings.Contains(got.Stdout, "transfer") {
		t.Errorf("%s", got.Stdout)
	}
}

func TestPushIfTheTagHasNotMoved(t *testing.T) {
	reg := testregistry.New(t)
	dir := clitest.WorkDir(t)
	name := reg.Host() + "/acme/catalog:v1"
	push := func(args ...string) clitest.Result {
		return clitest.RunProgram(t, dir, "bindery",
			append(strings.Fields("--error-format json build catalog cat --push --use-http --server none -t "+name),
				args...)...)
	}
	if got := push("--digest-file", "first"); got.Status != 0 {
		t.Fatal(got)
	}
	first := clitest.ReadFile(t, filepath.Join(dir, "first"))
	if got := push("--label", "a=b", "--digest-file", "second"); got.Status != 0 {
		t.Fatal(got)
	}
	second := clitest.ReadFile(t, filepath.Join(dir, "second"))
	before := string(reg.Manifest("acme/catalog", "v1"))
	for condition, is := range map[string]string{first: second, "none": second} {
		reg.Forget()
		got := push("--label", "a=c", "--if-digest", condition)
		var told struct {
			Class                 int
			Message, Object, Hint string
		}
		if err := json.Unmarshal([]byte(got.Stderr[strings.Index(got.Stderr, "{"):]), &told); err != nil ||
			got.Status != 1 || got.Stdout != "" {
			t.Fatalf("%v: %+v", err, got)
		}
		want := map[bool]string{true: "no image", false: condition}[condition == "none"]
		if !strings.Contains(got.Stderr, "this will be a conflict unless the tag already holds the new image") {
			t.Errorf("no warning before the work: %s", got.Stderr)
		}
		if told.Class != 8 || told.Object != name || !strings.Contains(told.Message, is) ||
			!strings.Contains(told.Message, "not for "+want) || told.Hint == "" {
			t.Errorf("%+v", told)
		}
		if string(reg.Manifest("acme/catalog", "v1")) != before || reg.Count(http.MethodPut) > 0 ||
			reg.Count(http.MethodPost) != reg.Count(http.MethodDelete) {
			t.Error("something was written")
		}
	}
	for args, want := range map[string]string{
		"build catalog cat -t example.com/a/b:v1 --push --if-digest latest": "invalid --if-digest value",
		"build catalog cat -t a/b:v1 --label " + clitest.TestConfigsLabel +
			"=/other": `/other\": it must be \"/configs\", which is set automatically`,
		"build catalog cat -t a/b:v1 --label " + clitest.TestDatabaseLabel + "=/x": `/x\": the image has no such content`,
		"build catalog cat -t example.com/a/b:v1 --push --if-digest sha256:0123":   "invalid --if-digest value",
		"build catalog cat -t a/b:v1 --if-digest none":                             "--if-digest requires --push",
		"migrate --from-file list --if-digest none":                                "--if-digest cannot be combined with --from-file",
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"--error-format", "json"}, strings.Fields(args)...)...)
		if got.Status != 1 || !strings.Contains(got.Stderr, `{"class":2,`) || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// Unchanged layers of an edit or migration are mounted from the source image's repository.
func TestSourceLendsItsLayers(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(true)
	dir := clitest.WorkDir(t)
	clitest.WritePackage(t, dir, "second", 1)
	from := reg.Host() + "/acme/catalog:v1"
	const what = " --push --use-http --server none --cache none --no-cache -q --metadata-file -"
	clitest.Done(t, dir, "bindery", strings.Fields("build catalog catalog -t "+from+what)...)
	clitest.WritePackage(t, dir, "third", 1)
	clitest.Done(t, dir, "bindery", strings.Fields("build catalog catalog -t "+from+what)...)
	for command, want := range map[string][2]int64{
		"index rm -f " + from + " -o third -t " + reg.Host() + "/edited/catalog:v1":        {1, 1},
		"index rm -f docker://" + from + " -o third -t " + reg.Host() + "/edited/again:v1": {1, 1},
		"catalog prune " + from + " --keep second -t " + reg.Host() + "/pruned/catalog:v1": {1, 1},
	} {
		var account pushAccount
		if text := clitest.Done(t, dir, "bindery", strings.Fields(command+what)...); json.Unmarshal([]byte(text),
			&account) != nil {
			t.Fatal(text)
		}
		if got := [2]int64{account.Traffic.Pushed.Count, account.Traffic.Mounted.Count}; got != want {
			t.Errorf("%s: %d blobs pushed and mounted, want %d", command, got, want)
		}
	}
}

// Layers pushed to one repository are mounted into another one of the same registry, although no flag names the first.
func TestLayersAreLentByWhereTheyWerePushed(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(true)
	l := layerCache{t, clitest.WorkDir(t)}
	clitest.WritePackage(t, l.dir, "second", 1)
	for i, want := range [][2]int64{{2, 0}, {1, 1}} {
		var account pushAccount
		name := fmt.Sprintf("%s/team%d/catalog:v1", reg.Host(), i)
		text := l.run(strings.Fields(
			"build catalog catalog --push --use-http --server none --cache none -q --metadata-file - -t " +
				name)...).Stdout
		if err := json.Unmarshal([]byte(text), &account); err != nil {
			t.Fatal(err, text)
		}
		if got := [2]int64{account.Traffic.Pushed.Count, account.Traffic.Mounted.Count}; got != want {
			t.Errorf("push %d: %d blobs pushed and mounted, want %d", i, got, want)
		}
	}
}

// With --trust-previous an unchanged package is not packed although the cache is empty; the image is the same.
func TestTrustedPreviousImage(t *testing.T) {
	reg := testregistry.New(t)
	dir := clitest.WorkDir(t)
	clitest.WritePackage(t, dir, "second", 1)
	build := func(more string) clitest.Result {
		t.Helper()
		l := layerCache{t, t.TempDir()}
		return l.run(strings.Fields("build catalog " + filepath.Join(dir,
			"catalog") + " --push --use-http --server none --cache none -t " + reg.Host() + "/acme/catalog:v1 " +
			more)...)
	}
	first := build("")
	for flags, known := range map[string]bool{"": false, " --trust-previous": true} {
		again := build("--previous " + reg.Host() + "/acme/catalog:v1" + flags)
		if again.Stdout != first.Stdout || strings.Contains(again.Stderr, "cached") != known {
			t.Errorf("%q: %+v, want layers known: %v", flags, again, known)
		}
	}
}
