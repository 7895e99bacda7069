package images_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

func plainRegistry() registries.Config {
	skip := true
	return registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}
}

func newRemote(t *testing.T, o registries.Options) *registries.Client {
	t.Helper()
	o.Registry, o.Temp = plainRegistry(), t.TempDir()
	r, err := registries.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func newSourceClient(t *testing.T) *images.Client {
	t.Helper()
	c, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: plainRegistry(), Temp: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func repositoryOf(t *testing.T, r *registries.Client, name string) *registries.Repository {
	t.Helper()
	repository, err := r.Repository(name)
	if err != nil {
		t.Fatal(err)
	}
	return repository
}

func openForCopy(t *testing.T, c *images.Client, name string) *images.Source {
	t.Helper()
	r, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func layer(name string) []map[string]string {
	return []map[string]string{{name: strings.Repeat(name, 1000)}}
}

var (
	amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64 = v1.Platform{OS: "linux", Architecture: "arm64"}
	s390x = v1.Platform{OS: "linux", Architecture: "s390x"}
)

// A copy from registry to registry: the same bytes, each once, and as few requests as it takes.
func TestCopyImageBetweenRegistries(t *testing.T) {
	from, to := testregistry.New(t), testregistry.New(t)
	to.Separate(true)
	d := from.AddImage(t, "acme/app", "v1", testregistry.Image{Layers: layer("one")})
	c, remote := newSourceClient(t), newRemote(t, registries.Options{})
	src := openForCopy(t, c, "docker://"+from.Host()+"/acme/app:v1")
	if n := from.Count("GET /v2/acme/app/manifests/"); n != 1 || src.Top.Digest != d {
		t.Fatalf("%d requests of the manifest, %s", n, src.Top.Digest)
	}
	dest := repositoryOf(t, remote, to.Host()+"/mirror/app")
	got, err := store.CopyOne(t.Context(), src, src.Top, dest, "v1", store.CopyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != d || got.Manifests != 1 || got.Blobs != 2 || got.Sent == 0 || got.Present ||
		got.Bytes != got.Sent {
		t.Errorf("%+v", got)
	}
	if n := from.Count("GET /v2/acme/app/manifests/"); n != 1 {
		t.Errorf("%d requests of the manifest", n)
	}
	if text := to.Manifest("mirror/app", "v1"); digest.FromBytes(text) != d {
		t.Errorf("%s", text)
	}
	// Another repository has the blobs by mounts.
	other := repositoryOf(t, remote, to.Host()+"/mirror/other")
	got, err = store.CopyOne(t.Context(), src, src.Top, other, "v1", store.CopyOptions{})
	if err != nil || got.Mounted == 0 || got.Sent >= got.Bytes {
		t.Errorf("%+v, %v", got, err)
	}
	// The second run asks once and reads nothing.
	to.Forget()
	from.Forget()
	is, err := dest.Head(t.Context(), "v1")
	if err != nil || is.Digest != d || is.Size == 0 || is.MediaType != v1.MediaTypeImageManifest {
		t.Errorf("%+v, %v", is, err)
	}
	if all := to.Requests(); len(all) != 1 || len(from.Requests()) != 0 {
		t.Errorf("%q, %q", all, from.Requests())
	}
	got, err = store.CopyOne(t.Context(), src, src.Top, dest, "v1", store.CopyOptions{})
	if err != nil || !got.Present || got.Sent != 0 || len(to.Requests()) != 3 {
		t.Errorf("%+v, %v, %q", got, err, to.Requests())
	}
}

// What the image before had is taken for there. If it is not, the tag is refused, and everything is asked for.
func TestCopyImageOverOneThatIsIncomplete(t *testing.T) {
	from, to := testregistry.New(t), testregistry.New(t)
	to.Separate(true)
	c, remote := newSourceClient(t), newRemote(t, registries.Options{})
	dest := repositoryOf(t, remote, to.Host()+"/mirror/app")
	var layers []map[string]string
	for n := range 6 {
		layers = append(layers, layer(fmt.Sprint("layer ", n))...)
		if n < 4 {
			continue // two images, one above the other
		}
		d := from.AddImage(t, "acme/app", "v1", testregistry.Image{Layers: layers})
		src := openForCopy(t, c, "docker://"+from.Host()+"/acme/app:v1")
		if n == 5 {
			parts, err := store.PartsOf(to.Manifest("mirror/app", "v1"))
			if err != nil {
				t.Fatal(err)
			}
			to.DeleteBlob(parts.Layers[0].Digest)
			remote = newRemote(t, registries.Options{})
			dest = repositoryOf(t, remote, to.Host()+"/mirror/app")
		}
		got, err := store.CopyOne(t.Context(), src, src.Top, dest, "v1", store.CopyOptions{})
		if err != nil || got.Digest != d || got.Tagged != 1 || digest.FromBytes(to.Manifest("mirror/app", "v1")) != d {
			t.Fatalf("%+v, %v", got, err)
		}
	}
}

// Of an index the images of the platforms are copied, and the index as it is; a registry that looks for all images is
// told apart, and gets a smaller index if that is wanted.
func TestCopyImagePlatforms(t *testing.T) {
	from := testregistry.New(t)
	index := from.AddIndex(t, "acme/app", "v1", map[string]string{"a": "b"}, []testregistry.Image{
		{Platform: amd64, Layers: layer("amd64")}, {Platform: arm64, Layers: layer("arm64")}})
	src := openForCopy(t, newSourceClient(t), "docker://"+from.Host()+"/acme/app:v1")
	only := store.CopyOptions{Platforms: []v1.Platform{amd64}}
	trim, byDigest, refuse, none := only, only, only, only
	trim.Sparse, byDigest.Sparse, refuse.Sparse = store.SparseTrim, store.SparseTrim, store.SparseRefuse
	byDigest.ByDigest = true
	none.Platforms = []v1.Platform{s390x}
	for _, test := range []struct {
		name    string
		options store.CopyOptions
		checks  bool // the registry looks for the images
		sparse  bool // a SparseError
		says    string
		trimmed bool
	}{
		{name: "kept", options: only},
		{name: "kept and refused", options: only, checks: true, sparse: true, says: "linux/arm64"},
		{name: "trimmed", options: trim, checks: true, trimmed: true},
		{name: "trimmed by digest", options: byDigest},
		{name: "trimmed by digest and refused", options: byDigest, checks: true, sparse: true, says: "by its digest"},
		{name: "an error", options: refuse, sparse: true, says: "linux/arm64"},
		{name: "no such platform", options: none, says: "linux/s390x: it has those for linux/amd64, linux/arm64"},
	} {
		t.Run(test.name, func(t *testing.T) {
			to := testregistry.New(t)
			if test.checks {
				to.Separate(false)
			}
			dest := repositoryOf(t, newRemote(t, registries.Options{}), to.Host()+"/app")
			got, err := store.CopyOne(t.Context(), src, src.Top, dest, "v1", test.options)
			var sparse *store.SparseError
			if errors.As(err, &sparse) != test.sparse {
				t.Fatalf("%v", err)
			}
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%v", err)
				}
				if n := to.Count("PUT /v2/app/manifests/v1"); n > 1 {
					t.Errorf("%d attempts", n)
				}
				if test.checks {
					// The next such image is refused before anything is sent.
					to.Forget()
					_, err := store.CopyOne(t.Context(), src, src.Top, dest, "v1", test.options)
					if all := to.Requests(); !errors.As(err, &sparse) || to.Count("P") > 0 {
						t.Errorf("%v, %q", err, all)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if test.trimmed != (got.Digest != index) || got.Trimmed != test.trimmed || len(got.Instances) != 1 ||
				len(got.LeftOut) != 1 || got.LeftOut[0].Platform.Architecture != "arm64" {
				t.Errorf("%+v", got)
			}
			text := to.Manifest("app", "v1")
			if digest.FromBytes(text) != got.Digest || strings.Contains(string(text), "arm64") == test.trimmed ||
				!strings.Contains(string(text), `"annotations":{"a":"b"}`) {
				t.Errorf("%s", text)
			}
			if all := to.Digests("app"); len(all) != 2 {
				t.Errorf("%q", all)
			}
		})
	}
}

// An index that the destination has is not assumed to be complete: its images are requested.
func TestCopyImageCompletesIndex(t *testing.T) {
	from, to := testregistry.New(t), testregistry.New(t)
	from.AddIndex(t, "app", "v1", nil, []testregistry.Image{{Platform: amd64, Layers: layer("amd64")},
		{Platform: arm64, Layers: layer("arm64")}})
	src := openForCopy(t, newSourceClient(t), "docker://"+from.Host()+"/app:v1")
	dest := repositoryOf(t, newRemote(t, registries.Options{}), to.Host()+"/app")
	for i, o := range []store.CopyOptions{{Platforms: []v1.Platform{amd64}}, {}, {}} {
		got, err := store.CopyOne(t.Context(), src, src.Top, dest, "v1", o)
		if err != nil || got.Present != (i == 2) || len(to.Digests("app")) != min(i+2, 3) {
			t.Errorf("%+v, %v, %q", got, err, to.Digests("app"))
		}
	}
}

// A tag that is derived from a digest is the list of referrers of a registry without the referrers API, or it is the
// image. Neither is overwritten by the other.
func TestCopyImageDigestTag(t *testing.T) {
	from := testregistry.New(t)
	d := from.AddIndex(t, "app", "v1", nil, []testregistry.Image{{Platform: amd64}})
	src := openForCopy(t, newSourceClient(t), "docker://"+from.Host()+"/app:v1")
	tag := referrers.TagOf(d, "")
	for name, attach := range map[string]bool{"the list first": true, "the image first": false} {
		t.Run(name, func(t *testing.T) {
			to := testregistry.New(t)
			dest := repositoryOf(t, newRemote(t, registries.Options{}), to.Host()+"/app")
			document := func(ctx context.Context, to store.Writer, i store.Image) error {
				_, err := referrers.Attach(ctx, to, i.Top, referrers.Artifact{Type: "a/b", Content: []byte("text")})
				return err
			}
			o := store.CopyOptions{}
			if attach {
				o.Attach = document
			}
			got, err := store.CopyOne(t.Context(), src, src.Top, dest, tag, o)
			if err != nil || got.TagKept != attach {
				t.Fatalf("%+v, %v", got, err)
			}
			if !attach {
				if err := document(t.Context(), dest, store.Image{Top: src.Top}); !errors.Is(err, images.ErrInvalid) {
					t.Errorf("%v", err)
				}
			}
			if is := digest.FromBytes(to.Manifest("app", tag)) == d; is == attach {
				t.Errorf("%s", to.Manifest("app", tag))
			}
			listed, err := dest.Referrers(t.Context(), d, nil)
			if err != nil || len(listed) != map[bool]int{true: 1}[attach] {
				t.Errorf("%v, %v", listed, err)
			}
			if !slices.Contains(to.Digests("app"), d.String()) {
				t.Error("the image is not there")
			}
		})
	}
}

// Names that are none are refused, and what is not there differs from what fails.
func TestRemoteNames(t *testing.T) {
	to := testregistry.New(t)
	remote := newRemote(t, registries.Options{})
	for _, name := range []string{"", "host/x:tag", "host/x@" + digest.FromString("").String(), "HOST/../x", "app",
		"acme/app"} {
		if _, err := remote.Repository(name); !errors.Is(err, images.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	dest := repositoryOf(t, remote, to.Host()+"/app")
	if again := repositoryOf(t, remote, to.Host()+"/app"); again != dest {
		t.Error("two repositories of one name")
	}
	if _, err := dest.Head(t.Context(), "v1"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := remote.Ping(t.Context(), to.Host()); err != nil {
		t.Error(err)
	}
}
