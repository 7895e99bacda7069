package images

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// lent is an image whose source knows where its blobs are.
type lent struct {
	*fixture
	by []string
}

func (l lent) NewImageSource(context.Context, *types.SystemContext) (types.ImageSource, error) {
	return l, nil
}
func (l lent) BlobRepositories(digest.Digest) []string { return l.by }

func TestBlobsAreMounted(t *testing.T) {
	type want struct{ pushed, mounted, asked int }
	for name, c := range map[string]struct {
		mounts bool
		by     func(host string) []string
		want   want
	}{
		"a registry that lends": {true, func(h string) []string { return []string{h + "/base/image"} },
			want{1, 3, 4}},
		"the second lender has it": {true, func(h string) []string { return []string{h + "/other", h + "/base/image"} },
			want{1, 3, 0}},
		"a registry that does not": {false, func(h string) []string { return []string{h + "/base/image"} },
			want{4, 0, 0}},
		"another registry": {true, func(string) []string { return []string{"registry.example.com/base/image"} },
			want{4, 0, -1}},
		"the repository itself": {true, func(h string) []string { return []string{h + "/a/b"} }, want{4, 0, -1}},
		"names that are none": {true, func(h string) []string {
			return []string{"", "/", h, h + "/base/image:tag", h + "/BASE", "http://" + h + "/x"}
		}, want{4, 0, -1}},
		"no repository is known": {true, func(string) []string { return nil }, want{4, 0, -1}},
		"a wrong one and a good one": {true,
			func(h string) []string { return []string{"registry.example.com/base/image", h + "/base/image"} },
			want{1, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			reg.Separate(c.mounts)
			if _, err := pushTo(t, packages(t, "a", "b", "c"), CopyOptions{}, reg.Host()+"/base/image:v1"); err != nil {
				t.Fatal(err)
			}
			var asked atomic.Int32
			reg.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.URL.Query().Has("mount") {
					asked.Add(1)
				}
				return false
			})
			reg.Forget()
			f := packages(t, "a", "b", "c").change(t,
				func(m *v1.Manifest) { m.Annotations = map[string]string{"other": "manifest"} })
			config := []byte(
				`{"architecture":"amd64","os":"linux","created":"1970-01-01T00:00:00Z","rootfs":{"type":"layers","diff_ids":null}}`)
			f.blobs[digest.FromBytes(config)] = config
			f = f.change(t,
				func(m *v1.Manifest) { m.Config.Digest, m.Config.Size = digest.FromBytes(config), int64(len(config)) })
			seen := reads(f)
			r, err := pushTo(t, lent{f, c.by(reg.Host())}, CopyOptions{}, reg.Host()+"/a/b:v1")
			if err != nil {
				t.Fatal(err)
			}
			if r[0].Traffic.Pushed.Count != c.want.pushed || r[0].Traffic.Mounted.Count != c.want.mounted ||
				len(seen()) != c.want.pushed {
				t.Errorf("got %+v, read %d", *r[0].Traffic, len(seen()))
			}
			if c.want.asked > 0 && int(asked.Load()) != c.want.asked || c.want.asked < 0 && asked.Load() > 0 {
				t.Errorf("asked for %d mounts", asked.Load())
			}
			for _, b := range r[0].Blobs {
				if (b.How == store.Mounted) != (b.From == reg.Host()+"/base/image") {
					t.Errorf("%+v", b)
				}
			}
			if c.want.mounted == 0 && reg.Count("POST ") != 4 {
				t.Errorf("%d uploads begun for 4 blobs", reg.Count("POST "))
			}
		})
	}
}

// The second repository of a run takes from the first what that has.
func TestRepositoriesOfOneRunLend(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(true)
	f := packages(t, "a", "b")
	seen := reads(f)
	r, err := pushTo(t, f, CopyOptions{}, reg.Host()+"/a/b:v1", reg.Host()+"/c/d:v1", reg.Host()+"/a/b:v2")
	if err != nil {
		t.Fatal(err)
	}
	if len(seen()) != 3 || len(r[0].Written) != 3 || len(r[1].Mounted) != 3 || len(r[2].Reused) != 3 {
		t.Errorf("read %v: %+v", seen(), r)
	}
}

func TestUselessLendersAreAskedNoMore(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(false)
	var asked atomic.Int32
	reg.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("mount") {
			asked.Add(1)
		}
		return false
	})
	var contents []string
	for i := range 30 {
		contents = append(contents, fmt.Sprint(i))
	}
	if _, err := pushTo(t, lent{packages(t, contents...), []string{reg.Host() + "/other"}}, CopyOptions{},
		reg.Host()+"/a/b:v1"); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n < 1 || n > 3+5 {
		t.Errorf("asked %d times", n)
	}
}

// What a registry says it has mounted and does not have is sent.
func TestMountsThatAreNone(t *testing.T) {
	reg := testregistry.New(t)
	reg.Separate(false)
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if !r.URL.Query().Has("mount") {
			return false
		}
		w.WriteHeader(http.StatusCreated)
		return true
	})
	f := packages(t, "a", "b")
	r, err := pushTo(t, lent{f, []string{reg.Host() + "/base/image"}}, CopyOptions{}, reg.Host()+"/a/b:v1")
	if err != nil || len(r[0].Written) != 3 || len(r[0].Mounted) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A registry that says yes to everything, and not of what, has nothing.
func TestAnswersThatSayNothing(t *testing.T) {
	for name, interfere := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"every blob is there": func(_ http.ResponseWriter, r *http.Request) bool { return r.Method == http.MethodHead },
		"another blob is mounted": func(w http.ResponseWriter, r *http.Request) bool {
			if !r.URL.Query().Has("mount") {
				return false
			}
			w.Header().Set("Docker-Content-Digest", digest.FromString("other").String())
			w.WriteHeader(http.StatusCreated)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := testregistry.New(t)
			reg.Interfere(interfere)
			r, err := pushTo(t, lent{packages(t, "a", "b"), []string{reg.Host() + "/base/image"}}, CopyOptions{},
				reg.Host()+"/a/b:v1")
			if err != nil || len(r[0].Written) != 3 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}
