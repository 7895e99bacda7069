package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/transports/alltransports"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/limit"
)

func copyTo(t testing.TB, src types.ImageReference, dests ...string) ([]Result, error) {
	t.Helper()
	var ds []transport.Destination
	for _, d := range dests {
		ds = append(ds, parse(t, d))
	}
	return copyOf(t.Context(), of(t, src), ds, CopyOptions{Options: registries.Options{Temp: t.TempDir()}})
}

func mustCopy(t testing.TB, src types.ImageReference, dests ...string) []Result {
	t.Helper()
	r, err := copyTo(t, src, dests...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tags are the tags of a layout and their digests.
func tags(t testing.TB, dir string) map[string]digest.Digest {
	t.Helper()
	x, err := layouts.ReadIndex(dir)
	if err != nil || x == nil {
		t.Fatalf("index of %s: %v", dir, err)
	}
	out := map[string]digest.Digest{}
	for _, d := range x.Entries {
		if _, twice := out[d.Annotations[v1.AnnotationRefName]]; twice {
			t.Errorf("tag %q twice", d.Annotations[v1.AnnotationRefName])
		}
		out[d.Annotations[v1.AnnotationRefName]] = d.Digest
	}
	return out
}

// outputs are one destination of each local transport below a directory.
func outputs(dir string) []string {
	return []string{"oci:" + dir + "/layout:v1", "oci-archive:" + dir + "/oci.tar:v1",
		"docker-archive:" + dir + "/docker.tar:localhost/c:v1", "dir:" + dir + "/dir"}
}

func TestCopyWritesAllDestinationsAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	src := simple(t, "one")
	results := mustCopy(t, src, outputs(dir)...)
	for i, r := range results {
		if i != 2 && r.Digest != digest.FromBytes(src.manifest) {
			t.Errorf("%s: digest %s", r.Destination, r.Digest)
		}
		ref, err := alltransports.ParseImageName(r.Destination)
		if err != nil {
			t.Fatal(err)
		}
		img, err := ref.NewImage(t.Context(), nil)
		if err != nil {
			t.Fatalf("%s: %v", r.Destination, err)
		}
		if got := len(img.LayerInfos()); got != 2 {
			t.Errorf("%s: %d layers", r.Destination, got)
		}
		img.Close()
	}
	names, _ := os.ReadDir(dir)
	if len(names) != 4 {
		t.Errorf("left behind: %v", names)
	}
	again := t.TempDir()
	mustCopy(t, src, outputs(again)...)
	if snapshot(t, dir) != snapshot(t, again) {
		t.Error("two copies differ")
	}
}

func TestCopyReplacesOldOutputs(t *testing.T) {
	dir := t.TempDir()
	mustCopy(t, simple(t, "one"), outputs(dir)...)
	mustCopy(t, simple(t, "two"), outputs(dir)...)
	fresh := t.TempDir()
	mustCopy(t, simple(t, "two"), outputs(fresh)...)
	os.RemoveAll(dir + "/layout") // it keeps blobs that are not used any more
	os.RemoveAll(fresh + "/layout")
	if snapshot(t, dir) != snapshot(t, fresh) {
		t.Errorf("got\n%s\nwant\n%s", snapshot(t, dir), snapshot(t, fresh))
	}
}

func TestLayoutKeepsOtherTags(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	one, two, three := simple(t, "one"), simple(t, "two"), simple(t, "three")
	mustCopy(t, one, "oci:"+dir+":a")
	mustCopy(t, two, "oci:"+dir+":b", "oci:"+dir)
	// What other tools wrote into the index stays.
	path := filepath.Join(dir, v1.ImageIndexFile)
	var index map[string]json.RawMessage
	text, _ := os.ReadFile(path)
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	index["x-other"] = json.RawMessage(`{"kept":1}`)
	if err := os.WriteFile(path, mustJSON(t, index), 0o644); err != nil {
		t.Fatal(err)
	}
	mustCopy(t, three, "oci:"+dir+":a")
	want := map[string]digest.Digest{"a": digest.FromBytes(three.manifest), "b": digest.FromBytes(two.manifest),
		"": digest.FromBytes(two.manifest)}
	if got := tags(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if text, _ := os.ReadFile(path); !strings.Contains(string(text), `"x-other":{"kept":1}`) {
		t.Errorf("an unknown field is gone: %s", text)
	}
}

func TestTwentyWritersIntoOneLayout(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "layout")
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Add(1)
	go func() { // a reader sees the old or the new index, and all that it names
		defer reader.Done()
		for {
			select {
			case <-stop:
				return
			default:
			}
			x, err := layouts.ReadIndex(dir)
			if err != nil {
				t.Errorf("reader: %v", err)
				return
			}
			if x == nil {
				continue
			}
			for _, d := range x.Entries {
				if _, err := os.Stat(layouts.BlobPath(dir, d.Digest)); err != nil {
					t.Errorf("reader: %v", err)
				}
			}
		}
	}()
	var writers sync.WaitGroup
	for i := range 20 {
		src, dest := simple(t, fmt.Sprint("catalog ", i)), parse(t, fmt.Sprintf("oci:%s:v%d", dir, i))
		writers.Go(func() {
			if _, err := copyOf(t.Context(), of(t, src), []transport.Destination{dest}, CopyOptions{}); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	writers.Wait()
	close(stop)
	reader.Wait()
	got := tags(t, dir)
	for i := range 20 {
		if want := digest.FromBytes(simple(t, fmt.Sprint("catalog ", i)).manifest); got[fmt.Sprint("v", i)] != want {
			t.Errorf("v%d is %s, want %s", i, got[fmt.Sprint("v", i)], want)
		}
		img, err := quick(t, ClientOptions{NoPolicy: true}).Image(t.Context(), fmt.Sprintf("oci:%s:v%d", dir, i), v1.Platform{})
		if err != nil {
			t.Fatal(err)
		}
		tree, err := img.Extract(t.Context(), []string{"."}, ExtractOptions{})
		if err != nil {
			t.Errorf("v%d: %v", i, err)
		} else {
			tree.Close()
		}
		img.Close()
	}
	for _, d := range []string{parent, dir} {
		names, _ := os.ReadDir(d)
		for _, n := range names {
			if strings.HasPrefix(n.Name(), layouts.StagePrefix) {
				t.Errorf("left behind: %s", n.Name())
			}
		}
	}
}

func TestFailuresLeaveTheOldOutputAndNothingElse(t *testing.T) {
	old := t.TempDir()
	mustCopy(t, simple(t, "old"), outputs(old)...)
	fresh := t.TempDir()
	cases := map[string]func(*fixture, context.CancelFunc){
		"truncated layer": func(f *fixture, _ context.CancelFunc) {
			var m v1.Manifest
			_ = json.Unmarshal(f.manifest, &m)
			f.broken = m.Layers[1].Digest
		},
		"cancelled": func(f *fixture, cancel context.CancelFunc) {
			f.opened = func(digest.Digest) { cancel() }
		},
	}
	for name, breakIt := range cases {
		for _, dir := range []string{old, fresh} {
			for _, dest := range outputs(dir) {
				t.Run(name+" "+dest[:6], func(t *testing.T) {
					before := snapshot(t, dir)
					src := simple(t, "new")
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					breakIt(src, cancel)
					scratch := t.TempDir()
					if _, err := copyOf(ctx, of(t, src), dests(t, dest), CopyOptions{Options: registries.Options{Temp: scratch}}); err == nil {
						t.Fatal("no error")
					} else if name == "cancelled" && !errors.Is(err, context.Canceled) {
						t.Errorf("got %v", err)
					}
					if after := snapshot(t, dir); after != before {
						t.Errorf("before\n%s\nafter\n%s", before, after)
					}
					if left, _ := os.ReadDir(scratch); len(left) > 0 {
						t.Errorf("left in the temporary directory: %v", left)
					}
				})
			}
		}
	}
}

// One bad destination of several: none of the local ones changes.
func TestNoLocalOutputChangesWhenOneFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	if _, err := copyTo(t, simple(t, "x"), "oci:"+dir+"/new/sub/layout:v1", "dir:"+dir+"/file"); err == nil {
		t.Fatal("no error")
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func TestOutputsAreNeverWrittenThroughLinks(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"canary", "canary/dir"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/canary/file", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"layout": "canary/dir", "dir": "canary/dir", "oci.tar": "canary/file",
		"docker.tar": "canary/absent"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, dir)
	for _, dest := range outputs(dir) {
		if _, err := copyTo(t, simple(t, "x"), dest); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s: got %v", dest, err)
		}
	}
	if after := snapshot(t, dir); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func TestDirectoriesOfOthersAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/thesis.txt", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dest := range []string{"oci:" + dir + ":v1", "dir:" + dir} {
		if _, err := copyTo(t, simple(t, "x"), dest); err == nil || !strings.Contains(err.Error(),
			"neither empty nor") {
			t.Errorf("%s: got %v", dest, err)
		}
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("left behind: %v", names)
	}
}

func TestLayoutIntoAnExistingEmptyDirectory(t *testing.T) {
	dir := t.TempDir()
	mustCopy(t, simple(t, "x"), "oci:"+dir+":v1")
	if got := tags(t, dir); len(got) != 1 {
		t.Errorf("tags: %v", got)
	}
	mustCopy(t, simple(t, "x"), "dir:"+t.TempDir())
}

// A killed run leaves its stage, and perhaps blobs that no index names; the next run removes both, and only these.
func TestNextRunCleansUpAfterAKilledOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	mustCopy(t, simple(t, "one"), "oci:"+dir+":a")
	clean := snapshot(t, dir)
	stage := filepath.Join(dir, layouts.StagePrefix+"dead")
	staged := filepath.Join(stage, "layout", v1.ImageBlobsDir, "sha256")
	if err := os.MkdirAll(staged, 0o755); err != nil {
		t.Fatal(err)
	}
	orphan := digest.FromString("orphan")
	if err := os.WriteFile(filepath.Join(staged, orphan.Encoded()), []byte("orphan"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(staged, orphan.Encoded()), layouts.BlobPath(dir, orphan)); err != nil {
		t.Fatal(err)
	}
	used := tags(t, dir)["a"]
	if err := os.Link(layouts.BlobPath(dir, used), filepath.Join(staged, used.Encoded())); err != nil {
		t.Fatal(err)
	}
	live, err := layouts.NewStage(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	mustCopy(t, simple(t, "one"), "oci:"+dir+":a")
	if got := snapshot(t, dir); got != clean {
		t.Errorf("got\n%s\nwant\n%s", got, clean)
	}
}

func TestStagesOfTheLivingAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	live, err := layouts.NewStage(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	other, err := layouts.NewStage(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(live.Path); err != nil {
		t.Error(err)
	}
	if err := errors.Join(live.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

// Damage in an old layout does not get into a new image, and is healed where the blob is written again.
func TestDamagedBlobsAreReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	src := simple(t, "one")
	mustCopy(t, src, "oci:"+dir+":a")
	var m v1.Manifest
	if err := json.Unmarshal(src.manifest, &m); err != nil {
		t.Fatal(err)
	}
	path := layouts.BlobPath(dir, m.Layers[0].Digest)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	r := mustCopy(t, src, "oci:"+dir+":b")
	healed, err := os.ReadFile(path)
	if err != nil || digest.FromBytes(healed) != m.Layers[0].Digest {
		t.Errorf("not healed: %v", err)
	}
	if want := []digest.Digest{m.Layers[1].Digest, m.Config.Digest}; !slices.Equal(r[0].Reused, want) {
		t.Errorf("reused %v, want what is intact, %v", r[0].Reused, want)
	}
}

func TestHostileIndexIsRefused(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "text": "hello", "schema 1": `{"schemaVersion":1}`,
		"huge": strings.Repeat(" ", limit.MaxManifest+1)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, v1.ImageIndexFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, dir)
		if _, err := copyTo(t, simple(t, "x"), "oci:"+dir+":v1"); err == nil {
			t.Errorf("%s: no error", name)
		}
		if snapshot(t, dir) != before {
			t.Errorf("%s: the directory changed", name)
		}
	}
}

func TestSameFileTwiceIsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := copyTo(t, simple(t, "x"), "oci-archive:"+dir+"/x:a", "oci-archive:"+dir+"/x:b"); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
}

// An image without a tag stands beside the other entries without, and takes the place only of itself. Which one is read
// has to be said where there are several; signatures and attestations, which name a subject, are not among them.
func TestUntaggedImagesOfALayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layout")
	one, two := simple(t, "one"), simple(t, "two")
	first := digest.FromBytes(one.manifest)
	open := func(name string) (digest.Digest, error) {
		img, err := quick(t, ClientOptions{NoPolicy: true}).Image(t.Context(), "oci:"+dir+name, v1.Platform{})
		if err != nil {
			return "", err
		}
		defer img.Close()
		return img.Digest, nil
	}
	mustCopy(t, one, "oci:"+dir)
	x, err := layouts.ReadIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	signature := []byte(`{"schemaVersion":2,"mediaType":"` + v1.MediaTypeImageManifest + `","subject":` + string(
		x.Entries[0].Text) + `,"layers":[]}`)
	d := v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromBytes(signature),
		Size: int64(len(signature))}
	if err := os.WriteFile(layouts.BlobPath(dir, d.Digest), signature, 0o644); err != nil {
		t.Fatal(err)
	}
	x.Fields["manifests"] = mustJSON(t, []any{d, x.Entries[0].Text})
	if err := os.WriteFile(filepath.Join(dir, v1.ImageIndexFile), mustJSON(t, x.Fields), 0o644); err != nil {
		t.Fatal(err)
	}
	mustCopy(t, one, "oci:"+dir, "oci:"+dir+":v1") // again, and under a name
	if got, err := open(""); got != first || err != nil {
		t.Errorf("one image and its signature: got %s, %v", got, err)
	}
	mustCopy(t, two, "oci:"+dir)
	x, err = layouts.ReadIndex(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []digest.Digest
	for _, d := range x.Entries {
		got = append(got, d.Digest)
	}
	if want := []digest.Digest{d.Digest, first, first, digest.FromBytes(two.manifest)}; !slices.Equal(got, want) {
		t.Fatalf("entries %v, want %v", got, want)
	}
	if _, err := open(""); err == nil || !strings.Contains(err.Error(), `holds 3 images`) ||
		!strings.Contains(err.Error(), `@1, "v1", @3`) {
		t.Errorf("got %v", err)
	}
	if got, err := open(":@1"); got != first || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := open(":@3"); got != digest.FromBytes(two.manifest) || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}
