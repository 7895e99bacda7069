package mirror_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// rewriteArchive passes the members of the archive in a directory through a function, which may change their content.
func rewriteArchive(t *testing.T, dir string, change func(name string, content []byte) []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "mirror_*.tar"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	old, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	r, w := tar.NewReader(bytes.NewReader(old)), tar.NewWriter(&b)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		content = change(h.Name, content)
		h.Size = int64(len(content))
		if err := errors.Join(w.WriteHeader(h), func() error { _, err := w.Write(content); return err }()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, files[0], b.String())
}

// What others have changed in an archive is refused, and nothing of it reaches the target.
func TestHostileReleaseArchive(t *testing.T) {
	other := releasetest.Images(t).Releases["4.16.1 amd64"].Encoded()
	own := releasetest.Images(t).Releases["4.16.2 amd64"].Encoded()
	unsigned := releasetest.Images(t).Releases["4.17.1 amd64"].Encoded()
	for name, c := range map[string]struct {
		member string
		change func(string) string
		say    string
		repos  string // what may be at the target, by its last component
	}{
		"another release in the graph": {"amd64-stable-4.16.json", func(s string) string {
			return strings.ReplaceAll(s, own, other)
		}, "is two versions, 4.16.1 and 4.16.2", "graph-image"},
		"a release that is not signed in the graph": {"amd64-stable-4.16.json", func(s string) string {
			return strings.ReplaceAll(s, own, unsigned)
		}, "no good signature", "graph-image"},
		"another version in the graph": {"amd64-stable-4.16.json", func(s string) string {
			return strings.ReplaceAll(s, `"4.16.2"`, `"4.99.9"`)
		}, "is 4.99.9, and the signed image gives itself the version 4.16.2", "graph-image"},
		"one version twice in the graph": {"amd64-stable-4.16.json", func(s string) string {
			return strings.ReplaceAll(s, `"4.16.1"`, `"4.16.2"`)
		}, "the version 4.16.2 has two images", "graph-image"},
		"no registry in the graph": {"amd64-stable-4.16.json", func(s string) string {
			return strings.ReplaceAll(s, releasetest.Host+"/", "../../../")
		}, "is no registry", "graph-image"},
		"no graph": {"amd64-stable-4.16.json", func(string) string { return "null" }, "no graph", "graph-image"},
		"a version": {"amd64-stable-4.16.json", func(s string) string {
			return strings.ReplaceAll(s, `"4.16.2"`, `"../4"`)
		}, "no version", "graph-image"},
		"a signature": {"-sha256-" + own, func(s string) string {
			return s[:300] + "x" + s[301:]
		}, "no good signature", "graph-image"},
		"no signature": {"-sha256-" + own, func(string) string { return "" }, "no good signature", "graph-image"},
		"another graph image": {"index.json", func(s string) string {
			return strings.Replace(s, "openshift/graph-image:latest", "openshift/graph-image:latest2", 1)
		}, "no graph image", "release release-images"},
	} {
		t.Run(name, func(t *testing.T) {
			w := clitest.NewReleaseWorld(t)
			w.Set("set.yaml", "channels: [{name: stable-4.16}], graph: true")
			w.Expect("mirror run -c set.yaml file://media", 0)
			found := false
			rewriteArchive(t, filepath.Join(w.Dir, "media"), func(name string, content []byte) []byte {
				if !strings.HasSuffix(name, c.member) {
					return content
				}
				text := c.change(string(content))
				found = found || text != string(content)
				return []byte(text)
			})
			if !found {
				t.Fatal("nothing is changed")
			}
			w.Offline()
			got := w.Run("mirror run -c set.yaml --from media --workspace ws TARGET")
			if got.Status == 0 || got.Status == 2 || !strings.Contains(got.Stderr, c.say) {
				t.Errorf("status %d\n%s", got.Status, got.Stderr)
			}
			for _, at := range w.Target.Repositories() {
				if !strings.Contains(" "+c.repos+" ", " "+filepath.Base(at)+" ") {
					t.Errorf("%s is at the target", at)
				}
			}
			if got := w.Run("mirror verify file://media"); got.Status != 1 {
				t.Errorf("verify: status %d\n%s%s", got.Status, got.Stdout, got.Stderr)
			}
		})
	}
}

// The graph image of an archive is the one that its description has.
func TestExchangedGraphImage(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16}], graph: true")
	w.Expect("mirror run -c set.yaml file://media", 0)
	rewriteArchive(t, filepath.Join(w.Dir, "media"), func(name string, content []byte) []byte {
		if name != "index.json" {
			return content
		}
		text := strings.ReplaceAll(string(content), "openshift/graph-image:latest", "EXCHANGED")
		text = strings.ReplaceAll(text, "openshift/release:4.16.2-x86_64-cli\"", "openshift/graph-image:latest\"")
		return []byte(text)
	})
	w.Offline()
	w.Expect("mirror run -c set.yaml --from media --workspace ws TARGET", 4, "it was changed after it was written")
	if got := w.Tags("graph-image"); len(got) > 0 {
		t.Errorf("graph image: %q", got)
	}
}

// Neither the workspace beside an archive nor a file in it makes a release without a signature acceptable, and what the
// archive says of tags is verified.
func TestMediumAcceptsNoUnsignedRelease(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "release: '"+releasetest.Images(t).Nightly+"'")
	w.Expect("mirror run -c set.yaml file://media --ignore-release-signature", 0)
	w.Expect("mirror verify file://media", 1, "no good signature")
	w.Expect("mirror verify file://media --ignore-release-signature", 0)
	w.Offline()
	w.Expect("mirror run -c set.yaml --from media TARGET", 1, "no good signature")
	w.Expect("mirror run -c set.yaml --from media --workspace ./media/../media TARGET", 1, "no good signature")
	w.Expect("mirror run -c set.yaml --from media --workspace own TARGET --ignore-release-signature", 0)
	w.Expect("mirror run -c set.yaml --from media --workspace own TARGET", 0)
}

// A tag that an archive resolves to another signed release is a warning; a file of tags that is none resolves nothing.
func TestArchivedTag(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	d := releasetest.Images(t).Releases
	w.Set("set.yaml", "release: '"+releasetest.Host+"/"+releasetest.Releases+":4.16.2-x86_64'")
	w.Set("delete.yaml", "release: '"+releasetest.Host+"/"+releasetest.Releases+":4.16.2-x86_64'")
	w.Set("both.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}]")
	w.Expect("mirror run -c both.yaml file://media", 0)
	w.Expect("mirror run -c set.yaml file://one --workspace ws", 0)
	rewriteArchive(t, filepath.Join(w.Dir, "one"), func(name string, content []byte) []byte {
		if strings.HasSuffix(name, "resolved.json") {
			return bytes.ReplaceAll(content, []byte(d["4.16.2 amd64"]), []byte(d["4.16.1 amd64"]))
		}
		return content
	})
	w.Offline()
	w.Expect("mirror run -c set.yaml --from one --workspace a TARGET", 1, "no good signature")
	w.Expect("mirror run -c set.yaml --from media --workspace b TARGET", 0,
		"release-images:4.16.2-x86_64@"+d["4.16.2 amd64"].String())
	w.Expect("mirror delete -c delete.yaml --workspace b --list l.yaml TARGET", 0, "0 kept")
	w.Expect("mirror delete --list l.yaml TARGET", 0)
	w.Expect("mirror delete -c delete.yaml --workspace b --list l.yaml TARGET", 0)
	rewriteArchive(t, filepath.Join(w.Dir, "one"), func(name string, content []byte) []byte {
		if strings.HasSuffix(name, "resolved.json") {
			return []byte("null")
		}
		return content
	})
	w.Expect("mirror run -c set.yaml --from one --workspace c TARGET", 0, "4.16.2-x86_64")
}

// A target that stops answering at any request has no release without all its components, and the same run completes
// it.
func TestReleaseCutOff(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}], graph: true")
	w.Expect("mirror run -c set.yaml --workspace count TARGET", 0)
	all := int64(len(w.Target.Requests()))
	for n := int64(1); n < all; n += max(1, all/9) {
		w.Target.Clear()
		var count atomic.Int64
		w.Target.Interfere(func(http.ResponseWriter, *http.Request) bool {
			if count.Add(1) > n {
				panic(http.ErrAbortHandler)
			}
			return false
		})
		got := w.Run("mirror run -c set.yaml --workspace ws TARGET")
		if got.Status == 2 || got.Status == 0 && count.Load() > n {
			t.Errorf("after %d requests: status %d\n%s", n, got.Status, got.Stderr)
		}
		w.Target.Interfere(nil)
		for _, tag := range w.Tags("release-images") {
			for _, c := range components(tag) {
				if w.Target.Manifest("m/openshift/release", c) == nil {
					t.Errorf("after %d requests: %s without %s", n, tag, c)
				}
			}
		}
		w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0)
		w.Expect("mirror verify -c set.yaml --workspace ws TARGET", 0)
		if err := os.RemoveAll(filepath.Join(w.Dir, "ws")); err != nil {
			t.Fatal(err)
		}
	}
}

// Deleting that is cut off leaves no release without a component, and repeated completes.
func TestDeleteReleaseCutOff(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}], graph: true")
	w.Set("delete.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1, maxVersion: 4.16.1}], graph: true")
	for n := range int64(4) {
		w.Target.Clear()
		w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0)
		w.Expect("mirror delete -c delete.yaml --workspace ws --list l.yaml TARGET", 0)
		var count atomic.Int64
		w.Target.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
			if q.Method == http.MethodDelete && count.Add(1) > n {
				panic(http.ErrAbortHandler)
			}
			return false
		})
		w.Run("mirror delete --list l.yaml TARGET --retries 0")
		w.Target.Interfere(nil)
		for _, tag := range w.Tags("release-images") {
			for _, c := range components(tag) {
				if w.Target.Manifest("m/openshift/release", c) == nil {
					t.Errorf("after %d deletions: %s without %s", n, tag, c)
				}
			}
		}
		w.Expect("mirror delete --list l.yaml TARGET", 0, "0 failed")
		w.Expect("mirror verify --workspace ws TARGET", 0, "1 release")
	}
}

// A release that was mirrored after the list was made keeps the graph image and what it shares, whatever is known of
// it: paths that were joined, no workspace, a registry without catalog, no tags of its components.
func TestDeleteAfterAnotherRelease(t *testing.T) {
	for _, nested := range []string{"", " --max-nested-paths 2"} {
		w := clitest.NewReleaseWorld(t)
		path := "m/openshift/"
		if nested != "" {
			path = "m/openshift-"
		}
		w.Target.SetRules(testregistry.Rules{NoCatalog: true, Untags: true})
		one := "channels: [{name: stable-4.16, minVersion: 4.16.1, maxVersion: 4.16.1}], graph: true, kubeVirtContainer: true"
		w.Set("one.yaml", one)
		w.Set("two.yaml", "channels: [{name: stable-4.16}], graph: true, kubeVirtContainer: true")
		w.Set("delete.yaml", one)
		w.Expect("mirror run -c one.yaml --workspace a TARGET"+nested, 0)
		w.Expect("mirror delete -c delete.yaml --workspace a --list l.yaml TARGET", 0, "8 images to delete")
		w.Expect("mirror run -c two.yaml --workspace b TARGET"+nested, 0)
		for _, tag := range w.Target.Tags(path + "release") {
			if strings.HasPrefix(tag, "4.16.2") {
				w.Target.Untag(path+"release", tag)
			}
		}
		if err := os.RemoveAll(filepath.Join(w.Dir, "a")); err != nil {
			t.Fatal(err)
		}
		w.Expect("mirror delete --list l.yaml --without-record TARGET", 4, "3 deleted", "5 kept",
			"whose clusters are updated with it")
		w.Expect("mirror verify -c two.yaml --workspace b TARGET", 0, "all is there")
	}
}

// Components of a release whose image cannot be deleted stay.
func TestReleaseThatCannotBeDeleted(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}]")
	w.Set("delete.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1, maxVersion: 4.16.1}]")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0)
	w.Expect("mirror delete -c delete.yaml --workspace ws --list l.yaml TARGET", 0)
	w.Target.Interfere(func(out http.ResponseWriter, q *http.Request) bool {
		refused := q.Method == http.MethodDelete && strings.Contains(q.URL.Path, "/release-images/")
		if refused {
			out.WriteHeader(http.StatusForbidden)
		}
		return refused
	})
	w.Expect("mirror delete --list l.yaml TARGET", 1, "0 deleted",
		"the release 4.16.1-x86_64 is not deleted, which names it")
	w.Target.Interfere(nil)
	w.Expect("mirror verify -c set.yaml --workspace ws TARGET", 0, "all is there")
}

// A release that cannot be read keeps anything from being deleted; an image that is no release does not.
func TestUnreadableReleaseKeepsAll(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}], graph: true")
	w.Set("delete.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1, maxVersion: 4.16.1}], graph: true")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0)
	w.Expect("mirror delete -c delete.yaml --workspace ws --list l.yaml TARGET", 0)
	before := w.Target.Digests("m/openshift/release")
	add := func(tag, references string) {
		w.Target.AddImage(t, "m/openshift/release-images", tag, testregistry.Image{Layers: []map[string]string{
			{"release-manifests/image-references": references, "other": "x"}}})
	}
	for _, references := range []string{"{", `{"spec": {"tags": [{"name": "a", "from": {"name": "?"}}]}}`} {
		add("4.99.0-x86_64", references)
		w.Expect("mirror delete --list l.yaml TARGET", 1, "nothing is deleted")
		if got := w.Target.Digests("m/openshift/release"); !slices.Equal(got, before) {
			t.Errorf("%d of %d are left", len(got), len(before))
		}
	}
	w.Target.AddImage(t, "m/openshift/release-images", "4.99.0-x86_64", testregistry.Image{})
	w.Expect("mirror delete --list l.yaml TARGET", 0, "3 deleted")
}

// Releases of which only some platforms are mirrored are read by those, in archives and at the target.
func TestReleasePlatforms(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64", "s390x"} {
		w := clitest.NewReleaseWorld(t)
		platform := "channels: [{name: stable-4.16}], platforms: [{os: linux, architecture: " + architecture + "}]"
		w.Set("set.yaml", platform)
		w.Set("delete.yaml", platform)
		if architecture == "s390x" { // no image has it
			w.Expect("mirror run -c set.yaml --workspace ws TARGET", 4)
			continue
		}
		w.Expect("mirror run -c set.yaml file://media", 0)
		w.Expect("mirror verify file://media", 0, "5 components")
		w.Offline()
		w.Expect("mirror run -c set.yaml --from media --workspace ws TARGET", 0)
		w.Expect("mirror verify -c set.yaml --workspace ws TARGET", 0, "5 components")
		w.Expect("mirror delete -c delete.yaml --workspace ws --list l.yaml TARGET", 0, "6 images to delete, 0 kept")
		w.Expect("mirror delete --list l.yaml TARGET", 0)
		w.Expect("mirror verify --workspace ws TARGET", 1, "no catalog to verify")
	}
}

// An archive that leaves out what the other side has is whole without it.
func TestReleaseLeftOut(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	one := "channels: [{name: stable-4.16, minVersion: 4.16.1, maxVersion: 4.16.1}], graph: true, kubeVirtContainer: true"
	w.Set("one.yaml", one)
	w.Set("two.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}], graph: true, kubeVirtContainer: true")
	w.Expect("mirror run -c one.yaml --workspace ws TARGET", 0)
	w.Expect("mirror inventory --to there.json.gz TARGET", 0)
	w.Expect("mirror run -c two.yaml file://against --against there.json.gz", 0)
	w.Expect("mirror run -c one.yaml file://nothing --against there.json.gz", 0)
	w.Expect("mirror run -c one.yaml file://first --workspace packing", 0)
	w.Expect("mirror run -c two.yaml file://second --workspace packing", 0)
	w.Offline()
	for _, dir := range []string{"against", "second", "nothing"} {
		w.Expect("mirror verify file://"+dir, 0, "release 4.16.1 (amd64): left out", "all is there")
	}
	w.Expect("mirror run -c two.yaml --from against --workspace other TARGET", 0)
	w.Target.Clear()
	w.Expect("mirror run -c two.yaml --from second --workspace third TARGET", 1, "target was to have")
	w.Expect("mirror run -c one.yaml --from first --workspace third TARGET", 0)
	w.Expect("mirror run -c two.yaml --from second --workspace third TARGET", 0)
	w.Expect("mirror verify -c two.yaml --workspace third TARGET", 0, "6 components", "all is there")
}

// The runs of shards bring components alone; releases and the graph image come with "mirror publish", from registry to
// registry and through archives.
func TestReleaseShards(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}], graph: true, kubeVirtContainer: true")
	w.Expect("mirror run -c set.yaml --shard 1/2 --workspace a TARGET", 0, "left to \"mirror publish\"")
	w.Expect("mirror publish -c set.yaml --workspace c TARGET", 4, "2 releases were not published")
	if got := w.Tags("release-images"); len(got) > 0 {
		t.Errorf("releases that lack components: %q", got)
	}
	w.Expect("mirror run -c set.yaml --shard 2/2 --workspace b TARGET", 0)
	w.Expect("mirror publish -c set.yaml --workspace c TARGET", 0)
	w.Expect("mirror verify -c set.yaml --workspace c TARGET", 0, "2 releases", "all is there")

	w.Expect("mirror run -c set.yaml --shard 1/2 file://parts/1", 0)
	clitest.WriteFile(t, filepath.Join(w.Dir, "policy.json"), `{"default": [{"type": "insecureAcceptAnything"}],
		"transports": {"docker": {"`+releasetest.Host+"/"+releasetest.Components+`": [{"type": "reject"}]}}}`)
	w.Expect("mirror run -c set.yaml --shard 1/2 file://parts/1 --policy policy.json", 4,
		"images of releases were not copied")
	w.Expect("mirror run -c set.yaml --shard 1/2 file://parts/1", 0)
	w.Expect("mirror run -c set.yaml --shard 2/2 file://parts/2", 0)
	w.Expect("mirror publish -c set.yaml --from parts file://parts/whole", 0)
	w.Offline()
	w.Target.Clear()
	w.Expect("mirror verify file://parts", 0, "all is there")
	w.Expect("mirror run -c set.yaml --from parts --workspace d TARGET", 0)
	w.Expect("mirror verify -c set.yaml --workspace d TARGET", 0, "2 releases", "all is there")
}

// The number of components of paths is remembered: verifying needs no flag.
func TestReleaseNestedPaths(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16}], graph: true")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --max-nested-paths 2", 0)
	w.Expect("mirror verify -c set.yaml --workspace ws TARGET", 0, "1 release,", "all is there")
	w.Expect("mirror verify --workspace ws TARGET", 0, "all is there")
}

// Without a workspace the graphs are not known, and an error says so.
func TestReleasesWithoutWorkspace(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16}]")
	w.Set("delete.yaml", "channels: [{name: stable-4.16}]")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0)
	w.Expect("mirror verify -c set.yaml TARGET", 1, "not in the workspace")
	w.Expect("mirror delete -c delete.yaml --list l.yaml --without-record TARGET", 1, "not in the workspace")
}

// Dry runs push nothing and write nothing but dry-run in the workspace.
func TestReleaseDryRuns(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16}], graph: true")
	w.Expect("mirror run -c set.yaml file://media", 0)
	for name, line := range map[string]string{"m2m": "TARGET", "m2d": "file://new", "d2m": "--from media TARGET"} {
		w.Expect("mirror run -c set.yaml --dry-run --workspace "+name+" "+line, 0)
		err := filepath.WalkDir(filepath.Join(w.Dir, name, "working-dir"), func(at string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && !strings.Contains(at, "/working-dir/dry-run/") {
				t.Errorf("%s: %s", name, at)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if got := w.Target.Repositories(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(filepath.Join(w.Dir, "new")); err == nil {
		t.Error("a dry run has made an archive")
	}
}

// Files for clusters are those of the last image set; an UpdateService stays while the graph image could not be built.
func TestReleaseResourcesOfTheLastRun(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("one.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1, maxVersion: 4.16.1}], graph: true")
	w.Set("two.yaml", "channels: [{name: stable-4.16}]")
	w.Set("graph.yaml", "graph: true")
	resources := filepath.Join(w.Dir, "ws/working-dir/cluster-resources")
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(resources, name))
		return err == nil
	}
	w.Expect("mirror run -c one.yaml --workspace ws TARGET", 0)
	w.Source.Untag("ubi9/ubi", "latest")
	w.Expect("mirror run -c one.yaml --workspace ws TARGET", 4, "graph image")
	if !has("updateService.yaml") {
		t.Error("no UpdateService for the graph image that is there")
	}
	w.Expect("mirror run -c two.yaml --workspace ws TARGET", 0)
	text := clitest.ReadFile(t, filepath.Join(resources, "signature-configmap.yaml"))
	if has("updateService.yaml") || strings.Contains(text, releasetest.Images(t).Releases["4.16.1 amd64"].Encoded()) {
		t.Errorf("files of an earlier image set: %s", text)
	}
	releasetest.Fill(t, w.Source)
	w.Expect("mirror run -c graph.yaml --workspace ws TARGET", 0, "no UpdateService is written")
	if has("signature-configmap.yaml") || has("signature-configmap.json") {
		t.Error("signatures of an earlier image set")
	}
}

// Neither passwords nor queries of the servers' URLs are in messages.
func TestReleaseSecrets(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16}], graph: true")
	graph, signatures := w.Servers.GraphURL, w.Servers.SignatureURL
	secret := func(at, more string) string {
		return strings.Replace(at, "//", "//user:SECRET@", 1) + more + "?token=SECRET"
	}
	for _, c := range []struct {
		graph, signatures string
		status            int
	}{
		{secret(graph, ""), secret(signatures, ""), 0},
		{secret(graph, "500"), signatures, 1},
		{secret(graph, "html"), signatures, 1},
		{"http://user:SECRET@127.0.0.1:1/?token=SECRET", signatures, 1},
		{"ftp://user:SECRET@127.0.0.1/?token=SECRET", signatures, 1},
		{graph, secret(signatures, "none"), 1},
		{graph, "http://user:SECRET@127.0.0.1:1/?token=SECRET", 1},
	} {
		w.Servers.GraphURL, w.Servers.SignatureURL = c.graph, c.signatures
		w.Target.Clear()
		for _, more := range []string{" --log-level debug", " -o json"} {
			if err := os.RemoveAll(filepath.Join(w.Dir, "ws")); err != nil {
				t.Fatal(err)
			}
			got := w.Expect("mirror run -c set.yaml --workspace ws TARGET"+more, c.status)
			if strings.Contains(got.Stdout+got.Stderr, "SECRET") {
				t.Errorf("%s\n%s", got.Stdout, got.Stderr)
			}
		}
	}
}

// A graph that names a release of another architecture is refused, and both are named; as oc-mirror it is a warning.
func TestReleaseOfAnotherArchitecture(t *testing.T) {
	all := releasetest.Images(t).Releases
	own, other := all["4.16.2 amd64"].Encoded(), all["4.16.2 arm64"].Encoded()
	if other == "" {
		t.Fatalf("no release for arm64: %v", all)
	}
	for _, flag := range []string{"", " --compat oc-mirror"} {
		w := clitest.NewReleaseWorld(t)
		w.Set("set.yaml", "channels: [{name: stable-4.16}], architectures: [amd64, arm64]")
		w.Expect("mirror run -c set.yaml file://media", 0)
		rewriteArchive(t, filepath.Join(w.Dir, "media"), func(name string, content []byte) []byte {
			if strings.HasSuffix(name, "amd64-stable-4.16.json") {
				return []byte(strings.ReplaceAll(string(content), own, other))
			}
			return content
		})
		got := w.Run("mirror run -c set.yaml --from media --workspace ws TARGET" + flag)
		if !strings.Contains(got.Stderr, "for amd64, and the image is for arm64") || (got.Status == 0) != (flag != "") {
			t.Errorf("%q: %+v", flag, got)
		}
	}
}
