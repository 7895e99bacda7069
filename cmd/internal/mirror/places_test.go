package mirror_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// places are the ways that images go to a registry: the lines of the runs, each with the target at its end or without.
var places = map[string][]string{
	"registry to registry":          {clitest.ToRegistry},
	"out of an archive":             {clitest.ToMedia, clitest.FromMedia},
	"out of an archive, other form": {clitest.ToMedia + " --archive-format oc-mirror", clitest.FromMedia},
	"published": {"mirror run --workspace ws --shard 1/1 -c ../set.yaml docker://",
		"mirror publish --workspace ws -c ../set.yaml docker://"},
}

// Of two contents for one tag, the one that the tag has at the source gets it. The other is at the tag of its digest.
func TestTwoContentsForOneTag(t *testing.T) {
	for way, lines := range places {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := clitest.NewSignedWorld(t, clitest.Unsigned)
			old, older := w.AddImage("acme/img", "v1", "old"), w.AddImage("acme/img", "v1", "older")
			now := w.AddImage("acme/img", "v1", "now")
			for name, test := range map[string]struct {
				names []string
				v1    digest.Digest // at the destination
			}{
				"the tag and an older digest": {[]string{"acme/img:v1", "acme/img:v1@" + old.String()}, now},
				"an older digest and the tag": {[]string{"acme/img:v1@" + old.String(), "acme/img:v1"}, now},
				"two older digests":           {[]string{"acme/img:v1@" + old.String(), "acme/img:v1@" + older.String()}, ""},
				"an older and the new digest": {[]string{"acme/img:v1@" + old.String(), "acme/img:v1@" + now.String()}, now},
				"all of them":                 {[]string{"acme/img:v1", "acme/img:v1@" + old.String(), "acme/img:v1@" + now.String(), "acme/img:v1@" + older.String()}, now},
				"the tag and the same digest": {[]string{"acme/img:v1", "acme/img:v1@" + now.String()}, now},
				"an older digest alone":       {[]string{"acme/img:v1@" + old.String()}, old},
			} {
				w.Fresh()
				w.CatalogOf(test.names...)
				target := testregistry.New(t)
				got := w.Take(lines, target.Host(), "-o", "json")
				if got.Status != 0 {
					t.Errorf("%s: %+v", name, got)
					continue
				}
				if have := digest.FromBytes(target.Manifest("acme/img", "v1")); have != test.v1 && (test.v1 != "" ||
					target.Manifest("acme/img", "v1") != nil) {
					t.Errorf("%s: v1 is %s, expected %s", name, have, test.v1)
				}
				for _, image := range test.names {
					if _, d, ok := strings.Cut(image, "@"); ok && target.Manifest("acme/img", d) == nil {
						t.Errorf("%s: %s is not there", name, image)
					}
					if _, d, ok := strings.Cut(image, "@"); ok && len(test.names) > 1 && digest.Digest(d) != now &&
						(target.Manifest("acme/img", strings.Replace(d, ":", "-", 1)) == nil ||
							!strings.Contains(got.Stdout, strings.Replace(d, ":", "-", 1))) {
						t.Errorf("%s: %s has no tag of its digest, or the account does not say so: %s", name, image, got.Stdout)
					}
				}
				if v := w.Run("mirror verify docker://" + target.Host() + " -c ../set.yaml"); v.Status != 0 {
					t.Errorf("%s: verify: %+v", name, v)
				}
			}
		})
	}
}

// An image that would be written over another one, over the catalog or over a source is an error before anything is
// written, with both names.
func TestNothingIsReplacedByAnotherImage(t *testing.T) {
	for name, test := range map[string]struct {
		images []string
		set    [2]string // changed from, to
		target string    // in place of another registry; HOST is the source
		names  []string
	}{
		"the catalog's tag as a related image": {images: []string{"acme/catalog:v1", "acme/gone:v1"},
			names: []string{"HOST/acme/catalog:v1"}},
		"the catalog's tag as an additional image": {images: []string{"acme/img:v1"},
			set: [2]string{"/acme/tool:v1", "/acme/catalog:v1"}, names: []string{"HOST/acme/catalog:v1"}},
		"another image at the catalog's place": {images: []string{"acme/img:v1"},
			set:   [2]string{"    packages:", "    targetCatalog: acme/img\n    packages:"},
			names: []string{"HOST/acme/catalog:v1", "HOST/acme/img:v1"}},
		"the registry of the source": {images: []string{"acme/img:v1"}, target: "HOST",
			names: []string{"HOST/acme/catalog:v1", "its own source"}},
		"the registry of the source by another name": {images: []string{"acme/img:v1"}, target: "localhost:PORT",
			names: []string{"HOST/acme/catalog:v1", "its own source"}},
		"the registry of the source by no address": {images: []string{"acme/img:v1"}, target: "0.0.0.0:PORT",
			names: []string{"HOST/acme/catalog:v1", "its own source"}},
		"an additional image at the place of a source": {images: []string{"acme/img:v1"},
			set: [2]string{"/acme/tool:v1", "/acme/tool:v1\n    targetRepo: acme/img"}, target: "",
			names: []string{"HOST/acme/tool:v1", "HOST/acme/img:v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clitest.NewSignedWorld(t, clitest.Unsigned)
			w.AddImage("acme/img", "v1", "an image")
			w.CatalogOf(test.images...)
			if test.set[0] != "" {
				w.ChangeSet(test.set[0], test.set[1])
			}
			target := testregistry.New(t)
			host := w.Source.Host()
			named := strings.NewReplacer("HOST", host, "PORT", host[strings.LastIndex(host, ":")+1:])
			at := target.Host()
			if test.target != "" {
				at = named.Replace(test.target)
			}
			before := fmt.Sprint(clitest.Content(w.Source), digest.FromBytes(w.Source.Manifest("acme/catalog", "v1")))
			for _, line := range []string{clitest.ToRegistry, clitest.ToMedia} {
				if line == clitest.ToMedia && test.target != "" {
					continue
				}
				got := w.Take([]string{line}, at)
				if got.Status != 1 {
					t.Errorf("%s: %+v", line, got)
				}
				for _, want := range test.names {
					if !strings.Contains(got.Stderr, named.Replace(want)) {
						t.Errorf("%s: no %s in %s", line, want, got.Stderr)
					}
				}
			}
			if now := fmt.Sprint(clitest.Content(w.Source), digest.FromBytes(w.Source.Manifest("acme/catalog", "v1"))); now != before {
				t.Errorf("the source has %s, and had %s", now, before)
			}
			if len(clitest.Content(target)) > 0 || len(segments(t, filepath.Join(w.Dir, "media"))) > 0 {
				t.Errorf("written: %q", clitest.Content(target))
			}
		})
	}
}

// Out of an archive a registry with the name of the source is another one, unless it has the source.
func TestArchiveToTheRegistryOfItsSource(t *testing.T) {
	w := clitest.NewSignedWorld(t, clitest.Unsigned)
	w.Done(clitest.ToMedia)
	source := w.Source.Manifest("acme/catalog", "v1")
	got := w.Run(clitest.FromMedia + w.Source.Host())
	if got.Status != 1 || !strings.Contains(got.Stderr, "its own source") ||
		string(w.Source.Manifest("acme/catalog", "v1")) != string(source) {
		t.Fatalf("%+v", got)
	}
	w.Source.Untag("acme/catalog", "v1")
	if err := os.RemoveAll(filepath.Join(w.Dir, "ws")); err != nil {
		t.Fatal(err)
	}
	w.Done(clitest.FromMedia + w.Source.Host() + " --workspace ws")
	if !slices.Contains(w.Source.Tags("acme/catalog"), "v1") {
		t.Error("not published")
	}
}

// What is at the tag of its digest is deleted with its bundle, and what another bundle names is not.
func TestDeletedImagesAtTheTagsOfTheirDigests(t *testing.T) {
	w, target := clitest.NewSignedWorld(t, clitest.Unsigned), testregistry.New(t)
	old := w.AddImage("acme/img", "v1", "old")
	now := w.AddImage("acme/img", "v1", "now")
	w.CatalogOf("acme/img:v1", "acme/img:v1@"+old.String())
	w.ChangeSet("    - name: etcd\n", "    - name: etcd\n    - name: old\n")
	w.Done(clitest.ToRegistry + target.Host())
	clitest.WriteFile(t, filepath.Join(w.Top, "delete.yaml"), "apiVersion: mirror.openshift.io/v2alpha1\n"+
		"kind: DeleteImageSetConfiguration\ndelete:\n  operators:\n  - catalog: "+w.Images[0]+
		"\n    packages:\n    - name: etcd\n")
	w.Done("mirror delete -c ../delete.yaml --workspace ws --list list.yaml docker://" + target.Host())
	w.Done("mirror delete --list list.yaml --workspace ws -y docker://" + target.Host())
	for _, d := range []digest.Digest{old, now} {
		if target.Manifest("acme/img", d.String()) != nil {
			t.Errorf("%s is there: %s", d, clitest.ReadFile(t, filepath.Join(w.Dir, "list.yaml")))
		}
	}
	w.ChangeSet("    - name: etcd\n", "")
	w.Done(clitest.ToRegistry + target.Host())
	if v := w.Run("mirror verify --workspace ws docker://" + target.Host()); v.Status != 0 {
		t.Errorf("%+v", v)
	}
}

// A tag at the destination is moved by a later run only to what it stands for at the source.
func TestLaterRunsLeaveTags(t *testing.T) {
	for _, way := range [][]string{{clitest.ToRegistry}, {clitest.ToMedia, clitest.FromMedia}} {
		w, target := clitest.NewSignedWorld(t, clitest.Unsigned), testregistry.New(t)
		old := w.AddImage("acme/img", "v1", "old")
		now := w.AddImage("acme/img", "v1", "now")
		for _, names := range [][]string{{"acme/img:v1"}, {"acme/img:v1@" + old.String()}, {"acme/img:v1"}} {
			w.CatalogOf(names...)
			if got := w.Take(way, target.Host()); got.Status != 0 {
				t.Fatalf("%+v", got)
			}
			if is := digest.FromBytes(target.Manifest("acme/img", "v1")); is != now {
				t.Errorf("%s, %s: v1 is %s and not %s", way, names, is, now)
			}
		}
		if target.Manifest("acme/img", strings.Replace(old.String(), ":", "-", 1)) == nil {
			t.Errorf("%s: %s has no tag", way, old)
		}
		// The tag moves at the source.
		next := w.AddImage("acme/img", "v1", "next")
		w.CatalogOf("acme/img:v1@" + next.String())
		if got := w.Take(way, target.Host()); got.Status != 0 {
			t.Fatalf("%+v", got)
		}
		if is := digest.FromBytes(target.Manifest("acme/img", "v1")); is != next {
			t.Errorf("%s: v1 is %s and not %s", way, is, next)
		}
	}
}

// An image of a later run does not replace a catalog that is published.
func TestPublishedCatalogIsNotReplaced(t *testing.T) {
	w, target := clitest.NewSignedWorld(t, clitest.Unsigned), testregistry.New(t)
	w.Done(clitest.ToRegistry + target.Host())
	before := target.Manifest("acme/catalog", "v1")
	clitest.WriteFile(t, filepath.Join(w.Top, "set.yaml"), "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n"+
		"mirror:\n  additionalImages:\n  - name: "+w.Images[0]+"\n")
	got := w.Run(clitest.ToRegistry + target.Host())
	if got.Status != 1 || !strings.Contains(got.Stderr, "would replace the catalog "+target.Host()+"/acme/catalog:v1") ||
		string(target.Manifest("acme/catalog", "v1")) != string(before) {
		t.Errorf("%+v", got)
	}
}

// An image at the tag of another one's signatures is refused, and the signatures stay.
func TestImageAtTheTagOfSignatures(t *testing.T) {
	for _, way := range [][]string{{clitest.ToRegistry}, {clitest.ToMedia}} {
		w, target := clitest.NewSignedWorld(t, clitest.Signed), testregistry.New(t)
		d := digest.FromBytes(w.Source.Manifest("acme/tool", "v1"))
		tag := strings.Replace(d.String(), ":", "-", 1) + ".sig"
		w.AddImage("acme/img", "v1", "an image")
		w.ChangeSet("/acme/tool:v1\n", "/acme/tool:v1\n  - name: "+w.Source.Host()+
			"/acme/img:v1\n    targetRepo: acme/tool\n    targetTag: "+tag+"\n")
		got := w.Take(way, target.Host())
		if got.Status != 4 || !strings.Contains(got.Stderr, "acme/img:v1") || !strings.Contains(got.Stderr,
			"is a tag for what is attached to an image") {
			t.Errorf("%+v", got)
		}
		if way[0] == clitest.ToRegistry && string(target.Manifest("acme/tool", tag)) != string(w.Source.Manifest("acme/tool", tag)) {
			t.Error("the signatures are others")
		}
	}
}

// Of an index whose images are signed one by one, what the target has already counts, also of other platforms.
func TestPolicyOfPlatformsThatAreThere(t *testing.T) {
	for _, line := range []string{clitest.ToRegistry, clitest.ToPublished} {
		w, target, fresh := clitest.NewSignedWorld(t, clitest.Unsigned), testregistry.New(t), testregistry.New(t)
		var index struct {
			Manifests []struct{ Digest digest.Digest }
		}
		d := w.Images[2][strings.Index(w.Images[2], "sha256"):]
		if err := json.Unmarshal(w.Source.Manifest("acme/operand", d), &index); err != nil {
			t.Fatal(err)
		}
		w.Sign(clitest.Signed, w.Source.Host()+"/acme/operand@"+index.Manifests[0].Digest.String())
		const set = "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n" +
			"  - name: %s\n%s"
		write := func(platforms string) {
			clitest.WriteFile(t, filepath.Join(w.Top, "set.yaml"), fmt.Sprintf(set, w.Source.Host()+"/acme/operand:v1", platforms))
		}
		write("")
		w.Done(clitest.ToRegistry + target.Host())
		write("    platforms: [{os: linux, architecture: amd64}]\n")
		if got := w.Run(line+target.Host(), "--trusted-key", "../a.pub"); got.Status != 4 ||
			!strings.Contains(got.Stderr, "signature policy: ") {
			t.Errorf("%s: %+v", line, got)
		}
		if got := w.Run(clitest.ToRegistry+fresh.Host(), "--trusted-key", "../a.pub"); got.Status != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// A catalog that is named by its digest and signed is referred to by its digest, where its tag lists the signatures.
func TestSignedCatalogNamedByItsDigest(t *testing.T) {
	w, target := clitest.NewSignedWorld(t, clitest.Signed), testregistry.New(t)
	d := digest.FromBytes(w.Source.Manifest("acme/catalog", "v1"))
	named := w.Source.Host() + "/acme/catalog@" + d.String()
	w.Sign(clitest.Signed, named)
	w.ChangeSet(w.Images[0]+"\n    packages:\n    - name: etcd\n", named+"\n    full: true\n")
	for range 2 {
		w.Done(clitest.ToRegistry + target.Host())
		files, err := filepath.Glob(filepath.Join(w.Dir, "ws", "working-dir", "cluster-resources", "c?-*.yaml"))
		if err != nil || len(files) != 2 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if text := clitest.ReadFile(t, file); !strings.Contains(text, target.Host()+"/acme/catalog@"+d.String()) {
				t.Errorf("%s: %s", file, text)
			}
		}
	}
}
