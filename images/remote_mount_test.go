package images_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A blob that several repositories need at the same time is sent once and mounted in the others; a registry that does
// not mount blobs gets it once for each repository.
func TestSharedBlobsAreSentOnce(t *testing.T) {
	const repositories, size = 6, 1 << 20
	from := testregistry.New(t)
	addLarge(t, from, "app", size)
	src := openForCopy(t, newSourceClient(t), "docker://"+from.Host()+"/app:v1")
	for _, mounts := range []bool{true, false} {
		to := testregistry.New(t)
		to.Separate(mounts)
		remote := newRemote(t, registries.Options{})
		accounts := make([]store.Account, repositories)
		var g guard.Group
		for i := range repositories {
			g.Go(func() (err error) {
				dest, err := remote.Repository(fmt.Sprintf("%s/r%d", to.Host(), i))
				if err != nil {
					return err
				}
				accounts[i], err = store.CopyOne(t.Context(), src, src.Top, dest, "v1",
					store.CopyOptions{})
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		sent, mounted := int64(0), int64(0)
		for i, a := range accounts {
			sent, mounted = sent+a.Sent, mounted+a.Mounted
			if digest.FromBytes(to.Manifest(fmt.Sprintf("r%d", i), "v1")) != src.Top.Digest {
				t.Errorf("r%d lacks the image", i)
			}
		}
		want := int64(1)
		if !mounts {
			want = repositories
		}
		if sent < want*size || sent > want*size+repositories*4096 || mounts != (mounted >= (repositories-1)*size) {
			t.Errorf("mounts %v: %d bytes sent, %d mounted", mounts, sent, mounted)
		}
		if n := to.Count("PATCH"); int64(n) != want {
			t.Errorf("mounts %v: sent %d times", mounts, n)
		}
	}
}

// What the caller knows of other repositories is used too.
func TestMountFrom(t *testing.T) {
	to := testregistry.New(t)
	to.Separate(true)
	content := strings.Repeat("x", 100<<10)
	d := v1.Descriptor{Digest: digest.FromString(content), Size: int64(len(content))}
	open := func(context.Context, int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}
	if _, err := repositoryOf(t, newRemote(t, registries.Options{}), to.Host()+"/first").WriteBlob(t.Context(), d,
		store.Content{Open: open}); err != nil {
		t.Fatal(err)
	}
	second := repositoryOf(t, newRemote(t, registries.Options{}), to.Host()+"/second")
	from, err := second.WriteBlob(t.Context(), d,
		store.Content{Repositories: []string{to.Host() + "/none", to.Host() + "/first"}}) // it is not opened
	if err != nil || from != to.Host()+"/first" {
		t.Errorf("%q, %v", from, err)
	}
	if there, err := second.HasBlob(t.Context(), d); err != nil || !there {
		t.Error(there, err)
	}
}

// A store of uploads returns what was kept, and what it cannot read counts as nothing.
func TestUploadStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	store, err := registries.NewUploadStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := digest.FromString("a")
	if _, ok := store.Load("host/a", d); ok {
		t.Error("something is there")
	}
	store.Save("host/a", d, "http://host/one")
	store.Save("host/a", d, "http://host/two?_state=secret")
	again, err := registries.NewUploadStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := again.Load("host/a", d); !ok || at != "http://host/two?_state=secret" {
		t.Errorf("%q", at)
	}
	for _, name := range []string{"host/b", "host/a@"} {
		if at, ok := again.Load(name, d); ok {
			t.Errorf("%s: %q", name, at)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, text := range []string{"", "{", `{"repository":"host/b"}`, strings.Repeat(" ", 1<<20)} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if at, ok := again.Load("host/a", d); ok {
			t.Errorf("%q", at)
		}
	}
	again.Forget("host/a", d)
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 0 {
		t.Errorf("%q, %v", files, err)
	}
}

// keptUploads is a store with one location.
type keptUploads string

func (k keptUploads) Load(string, digest.Digest) (string, bool) { return string(k), true }
func (k keptUploads) Save(string, digest.Digest, string)        {}
func (k keptUploads) Forget(string, digest.Digest)              {}

// A location in a store that leads elsewhere is not followed: the blob is sent from its start.
func TestUploadsElsewhere(t *testing.T) {
	from := testregistry.New(t)
	addLarge(t, from, "app", 9<<20)
	src := openForCopy(t, newSourceClient(t), "docker://"+from.Host()+"/app:v1")
	for _, location := range []string{"http://169.254.169.254/latest", "file:///etc/passwd", "::",
		"/v2/app/blobs/uploads/gone"} {
		to := testregistry.New(t)
		dest := repositoryOf(t, newRemote(t, registries.Options{Uploads: keptUploads(location)}), to.Host()+"/app")
		if _, err := store.CopyOne(t.Context(), src, src.Top, dest, "v1",
			store.CopyOptions{}); err != nil {
			t.Errorf("%s: %v", location, err)
		}
	}
}
