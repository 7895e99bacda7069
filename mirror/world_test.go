package mirror_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/render"
)

// world is a source, a target and the directories of runs between them.
type world struct {
	*testing.T
	source *mirrortest.Synthetic
	target *testregistry.Registry
	dir    string
	set    string
	conf   string
	host   string // of the target
	policy string // the file of a policy; empty for that of the machine
	// change, unless nil, changes the options of each run.
	change func(*mirror.Options)
}

// all keeps every bundle of a synthetic catalog; the catalog is rebuilt.
const all = `
kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: registry.example.com/synthetic/catalog:v1
    packages: [%s]
`

func allPackages(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("{name: op%d, minVersion: 0.0.1}", i))
	}
	return fmt.Sprintf(all, strings.Join(names, ", "))
}

// small is a catalog with a bit of everything.
var small = mirrortest.Shape{Packages: 3, Bundles: 3, Images: 3, SharedLayers: 2, LayerBytes: 40_000, IndexEvery: 4,
	SignedEvery: 3, TagEvery: 5}

func newWorld(t *testing.T, s mirrortest.Shape) *world {
	t.Helper()
	w := &world{T: t, source: mirrortest.Synthesize(t, s), dir: t.TempDir(), set: allPackages(max(s.Packages, 1))}
	w.conf = w.source.RegistriesConf(t, mirrortest.Host)
	w.source.SetRules(testregistry.Rules{Ranges: true})
	w.newTarget()
	return w
}

// newTarget starts another empty target, which looks for what manifests refer to.
func (w *world) newTarget() {
	w.target = testregistry.New(w.T)
	w.target.Separate(true)
	w.target.SetRules(testregistry.Rules{Children: true})
	w.host = w.target.Host()
}

func (w *world) fatal(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// run runs once, with clients of its own, as a process does.
func (w *world) run(mode mirror.Mode, changes ...func(*mirror.Options)) (*mirror.Account, error) {
	w.Helper()
	return w.runContext(w.Context(), mode, changes...)
}

func (w *world) runContext(ctx context.Context, mode mirror.Mode, changes ...func(*mirror.Options)) (*mirror.Account,
	error) {
	w.Helper()
	o, end := w.options(ctx, mode, changes...)
	defer end()
	return o.Run(ctx)
}

// options are those of a run, with clients of its own. The function that is returned closes them.
func (w *world) options(ctx context.Context, mode mirror.Mode, changes ...func(*mirror.Options)) (o mirror.Options,
	end func()) {
	w.Helper()
	skip := true
	from := registries.Config{SkipTLSVerify: &skip, PlainHTTP: true, RegistriesConf: w.conf}
	temp := w.TempDir()
	manifests, err := blobcache.Open(filepath.Join(temp, "manifests"), blobcache.Options{MaxBlob: 64 << 10})
	w.fatal(err)
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, PolicyFile: w.policy,
		AnyPlatform: true, Options: registries.Options{Registry: from, Temp: temp, Retries: 2,
			Backoff: time.Millisecond, Cache: manifests}})
	w.fatal(err)
	uploads, err := registries.NewUploadStore(filepath.Join(w.dir, "uploads"))
	w.fatal(err)
	remote, err := registries.New(ctx, registries.Options{Registry: registries.Config{SkipTLSVerify: &skip,
		PlainHTTP: true}, Temp: temp, Retries: 2, Backoff: time.Millisecond, Uploads: uploads})
	w.fatal(err)
	workspace, err := mirror.OpenWorkspace(filepath.Join(w.dir, "workspace-"+string(mode)))
	w.fatal(err)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	o = mirror.Options{Mode: mode, Set: w.parse(w.set), Config: "imageset.yaml", Workspace: workspace, Images: client,
		Remote: remote, Archive: filepath.Join(w.dir, "medium"), Now: time.Unix(1_700_000_000, 0).UTC(), Log: log,
		With:   referrers.Kinds{Tags: true, Referrers: true},
		Render: render.Options{Images: client}, Medium: medium.Options{Form: medium.OCI},
		Spec: indeximage.Spec{Images: client, Server: "base", Embedded: &build.Embedded{}, Registry: from, Log: log,
			Build: build.Options{Dir: w.TempDir(), Compression: layers.Gzip}}}
	o.Target, err = imageset.ParseTarget("docker://" + w.host + "/to")
	w.fatal(err)
	if w.change != nil {
		w.change(&o)
	}
	for _, c := range changes {
		c(&o)
	}
	return o, func() {
		w.Helper()
		w.fatal(errors.Join(client.Close(), remote.Close(), workspace.Close()))
	}
}

// parse reads an image set.
func (w *world) parse(text string) *imageset.Set {
	w.Helper()
	set, err := imageset.Parse([]byte(text), "imageset.yaml", imageset.Image, imageset.Options{})
	w.fatal(err)
	return set
}

// must is run for what has to go well.
func (w *world) must(mode mirror.Mode, changes ...func(*mirror.Options)) *mirror.Account {
	w.Helper()
	a, err := w.run(mode, changes...)
	w.fatal(err)
	return a
}

// foreseen runs to a registry, and compares what the dry run before it has said.
func (w *world) foreseen() {
	w.Helper()
	images := func(dry bool) (lines []string) {
		for _, i := range w.must(mirror.ToMirror, func(o *mirror.Options) { o.DryRun = dry }).Images {
			copied := i.Status == mirror.Copied || i.Status == mirror.Planned
			lines = append(lines, fmt.Sprintf("%s=%s, copied: %v", i.Source, i.Destination, copied))
		}
		return lines
	}
	if before, after := images(true), images(false); !slices.Equal(before, after) {
		w.Errorf("the dry run says:\n%s\nand the run:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// incomplete is run for what ends with something lacking.
func (w *world) incomplete(mode mirror.Mode, changes ...func(*mirror.Options)) *mirror.Account {
	w.Helper()
	a, err := w.run(mode, changes...)
	var lacks *mirror.IncompleteError
	if !errors.As(err, &lacks) {
		w.Fatalf("got %v, expected an IncompleteError", err)
	}
	// Without the log this is all that a user sees.
	for _, i := range a.Images {
		if i.Status != mirror.Failed {
			continue
		}
		if !strings.Contains(err.Error(), strings.TrimPrefix(i.Source, "docker://")+": ") {
			w.Errorf("%v: it does not name %s", err, i.Source)
		}
		break
	}
	return a
}

// tags are all tags of a registry with the digests of their manifests.
func tags(r *testregistry.Registry) map[string]digest.Digest {
	out := map[string]digest.Digest{}
	for _, name := range r.Repositories() {
		for _, tag := range r.Tags(name) {
			out[name+":"+tag] = digest.FromBytes(r.Manifest(name, tag))
		}
	}
	return out
}

// same compares the tags of the target with those of another one.
func (w *world) same(want map[string]digest.Digest) {
	w.Helper()
	got := tags(w.target)
	for name, d := range want {
		if got[name] != d {
			w.Errorf("%s is %q, expected %s", name, got[name], d)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			w.Errorf("%s is too much", name)
		}
	}
}

// httpGet asks a registry, and returns the body of an answer with the status 200, else nil.
func httpGet(t *testing.T, r *testregistry.Registry, path string) []byte {
	t.Helper()
	resp, err := http.Get("http://" + r.Host() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	return text
}

// whole tells what of an image lacks at a registry: manifests, entries of indexes, blobs. It asks as clients do.
func whole(t *testing.T, r *testregistry.Registry, repository, name string) (lacks []string) {
	t.Helper()
	text := httpGet(t, r, "/v2/"+repository+"/manifests/"+name)
	if text == nil {
		return []string{repository + " " + name}
	}
	if d := digest.Digest(name); d.Validate() == nil && d != digest.FromBytes(text) {
		return []string{repository + " " + name + " has another digest"}
	}
	var m struct {
		Config            *v1.Descriptor
		Layers, Manifests []v1.Descriptor
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Manifests {
		lacks = append(lacks, whole(t, r, repository, d.Digest.String())...)
	}
	if m.Config != nil {
		m.Layers = append(m.Layers, *m.Config)
	}
	for _, d := range m.Layers {
		content := httpGet(t, r, "/v2/"+repository+"/blobs/"+d.Digest.String())
		if digest.FromBytes(content) != d.Digest || int64(len(content)) != d.Size {
			lacks = append(lacks, repository+" blob "+d.Digest.String())
		}
	}
	return lacks
}

// servable compares each tag of the target with what it refers to, and each catalog with the images that it names.
func (w *world) servable() {
	w.Helper()
	for _, lack := range lacking(w.T, w.target) {
		w.Errorf("the target lacks %s", lack)
	}
}

// lacking tells what published tags and catalogs of a target refer to and what is not there.
func lacking(t *testing.T, r *testregistry.Registry) (lacks []string) {
	t.Helper()
	for _, repository := range r.Repositories() {
		for _, tag := range r.Tags(repository) {
			lacks = append(lacks, whole(t, r, repository, tag)...)
			if repository == "to/synthetic/catalog" && !strings.HasSuffix(tag, ".sig") {
				for _, ref := range catalogRefs(t, r, repository, tag) {
					path, name := destination(ref)
					lacks = append(lacks, whole(t, r, "to/"+path, name)...)
				}
			}
		}
	}
	return lacks
}

// destination is the repository and the digest or tag by which a cluster pulls an image that a catalog names.
func destination(ref string) (path, name string) {
	rest := strings.TrimPrefix(ref, mirrortest.Host+"/")
	if path, name, ok := strings.Cut(rest, "@"); ok {
		return path, name
	}
	path, name, _ = strings.Cut(rest, ":")
	return path, name
}

// catalogRefs are the images that a published catalog names.
func catalogRefs(t *testing.T, r *testregistry.Registry, repository, tag string) (refs []string) {
	t.Helper()
	for _, b := range servedBundles(t, r, repository, tag) {
		refs = append(refs, b.Image)
		for _, i := range b.RelatedImages {
			refs = append(refs, i.Image)
		}
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// servedBundle is what a served catalog says of a bundle.
type servedBundle struct {
	Name, Package, Image string
	RelatedImages        []struct{ Image string }
}

// servedBundles reads a published catalog through a client; it must be valid.
func servedBundles(t *testing.T, r *testregistry.Registry, repository, tag string) (out []servedBundle) {
	t.Helper()
	skip := true
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read,
		Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &skip,
			PlainHTTP: true}, Temp: t.TempDir()}, AnyPlatform: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	files, err := render.Options{Images: client}.OpenCatalogImage(t.Context(), r.Host()+"/"+repository+":"+tag)
	if err != nil {
		t.Fatalf("the published catalog %s:%s: %v", repository, tag, err)
	}
	defer files.Close()
	c, err := declcfg.Load(t.Context(), files.Configs, declcfg.LoadOptions{})
	if err != nil {
		t.Fatalf("the published catalog %s:%s: %v", repository, tag, err)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("the published catalog %s:%s: %v", repository, tag, err)
	}
	for i := range c.Bundles {
		b := servedBundle{Name: c.Bundles[i].Name, Package: c.Bundles[i].Package, Image: c.Bundles[i].Image}
		for _, related := range c.Bundles[i].RelatedImages {
			b.RelatedImages = append(b.RelatedImages, struct{ Image string }{related.Image})
		}
		out = append(out, b)
	}
	return out
}

// mediumFiles are the files of the medium with their sizes.
func (w *world) mediumFiles() map[string]int64 {
	w.Helper()
	out := map[string]int64{}
	entries, err := os.ReadDir(filepath.Join(w.dir, "medium"))
	w.fatal(err)
	for _, e := range entries {
		if i, err := e.Info(); err == nil && e.Type().IsRegular() {
			out[e.Name()] = i.Size()
		}
	}
	return out
}

// mediumBytes is the size of the medium.
func (w *world) mediumBytes() (sum int64) {
	w.Helper()
	for _, n := range w.mediumFiles() {
		sum += n
	}
	return sum
}
