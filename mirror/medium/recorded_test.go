package medium_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror/medium"
)

var (
	peerBlob = regexp.MustCompile(`^docker/registry/v2/blobs/sha256/../([0-9a-f]{64})/data$`)
	rebuilt  = regexp.MustCompile(`/tags/[0-9a-f]{32}/`)
	anyHex   = regexp.MustCompile(`[0-9a-f]{64}`)
)

// recorded is an archive that oc-mirror made: the names and lengths of its members.
type recorded struct {
	names []string
	sizes map[string]int64
	// tags are by repository and tag, without those of catalogs that were rebuilt.
	tags map[string]map[string]digest.Digest
}

func recording(t testing.TB, name string) *recorded {
	t.Helper()
	text, ok := mirrortest.Runs(t)[name]
	if !ok {
		t.Fatal("no recording", name)
	}
	r := &recorded{sizes: map[string]int64{}, tags: map[string]map[string]digest.Digest{}}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] == "==" {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			t.Fatal(line)
		}
		r.names = append(r.names, fields[0])
		r.sizes[fields[0]] = n
		rest, link := strings.CutPrefix(fields[0], "docker/registry/v2/repositories/")
		path, rest, tagged := strings.Cut(rest, "/_manifests/tags/")
		tag, rest, index := strings.Cut(rest, "/index/sha256/")
		if link && tagged && index && !rebuilt.MatchString(fields[0]) {
			if r.tags[path] == nil {
				r.tags[path] = map[string]digest.Digest{}
			}
			r.tags[path][tag] = digest.Digest("sha256:" + anyHex.FindString(rest))
		}
	}
	return r
}

// archive makes the archive in its order: links and names are recorded, blobs are those of the source registry. What
// the registry does not have, of catalogs that were rebuilt, has other content, and their tags are left out.
func (r *recorded) archive(t testing.TB, from *testregistry.Registry, history string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	seen := map[string]bool{}
	for _, n := range r.names {
		content := make([]byte, r.sizes[n])
		switch all := anyHex.FindAllString(n, -1); {
		case rebuilt.MatchString(n), seen[n]: // stamps are replaced in the recording
			continue
		case peerBlob.MatchString(n):
			if is := fetch(t, from, all[0]); is != nil {
				content = is
			}
		case strings.HasSuffix(n, "/current/link"):
			path, tag, _ := strings.Cut(strings.TrimPrefix(n, "docker/registry/v2/repositories/"), "/_manifests/tags/")
			content = []byte(r.tags[path][strings.TrimSuffix(tag, "/current/link")])
		case strings.HasSuffix(n, "/link"):
			content = []byte("sha256:" + all[len(all)-1])
		case strings.Contains(n, ".history-"):
			content = []byte(history)
		}
		seen[n] = true
		n = strings.Replace(n, "<rfc3339>", "2026-08-01T10:00:00Z", 1)
		if err := w.WriteHeader(&tar.Header{Name: n, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mirror_000001.tar"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fetch returns a blob or manifest of a registry; nil if it has none.
func fetch(t testing.TB, from *testregistry.Registry, hex string) []byte {
	t.Helper()
	for _, m := range mirrortest.Manifests(t) {
		if m.Digest == "sha256:"+hex {
			return from.Manifest(m.Repository, m.Digest)
		}
	}
	resp, err := http.Get("http://" + from.Host() + "/v2/acme/catalog/blobs/sha256:" + hex)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	return content
}

func remote(t testing.TB) *registries.Client {
	t.Helper()
	skip := true
	r, err := registries.New(context.Background(), registries.Options{Temp: t.TempDir(),
		Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}})
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

// carry copies all tagged images from one place to another.
func carry(t testing.TB, tags map[string]map[string]digest.Digest, from func(path string) store.Reader,
	to func(path string) store.Writer) {
	t.Helper()
	ctx := context.Background()
	for _, path := range slices.Sorted(maps.Keys(tags)) {
		for _, tag := range slices.Sorted(maps.Keys(tags[path])) {
			top, err := from(path).Head(ctx, tags[path][tag].String())
			if err != nil {
				t.Fatalf("%s:%s: %v", path, tag, err)
			}
			_, err = store.CopyOne(ctx, from(path), top, to(path), tag, store.CopyOptions{})
			if err != nil {
				t.Fatalf("%s:%s: %v", path, tag, err)
			}
		}
	}
}

func registryAt(t testing.TB, r *registries.Client, name string) *registries.Repository {
	t.Helper()
	repository, err := r.Repository(name)
	if err != nil {
		t.Fatal(err)
	}
	return repository
}

// Archives of oc-mirror are read: what they hold reaches a registry as that program puts it there. Runs that wrote
// signatures again are left out, as their manifests are not in the source registry.
func TestArchivesOfThePeer(t *testing.T) {
	source := mirrortest.Source(t)
	for name, after := range map[string]string{"02-m2d-d2m/01-m2d.archive.txt": "02-m2d-d2m/03-d2m.registry.txt",
		"24-strict-archive/01-m2d.archive.txt": "", "03b-incremental-in-order/01-m2d-1.archive.txt": ""} {
		t.Run(name, func(t *testing.T) {
			rec := recording(t, name)
			r := read(t, rec.archive(t, source, ""))
			if r.Form() != medium.OCMirror || r.Contents() != nil {
				t.Error(r.Form(), r.Contents())
			}
			for path, tags := range rec.tags {
				if got := r.Tags(path); !maps.Equal(got, tags) {
					t.Errorf("%s: %v instead of %v", path, got, tags)
				}
			}
			if list, err := r.LeftOut(context.Background()); err != nil || len(list) != 0 {
				t.Error(list, err)
			}
			dest, to := testregistry.New(t), remote(t)
			carry(t, rec.tags, func(path string) store.Reader { return r.Repository(path) },
				func(path string) store.Writer { return registryAt(t, to, dest.Host()+"/m/"+path) })
			for line := range strings.Lines(string(mirrortest.Runs(t)[after])) {
				fields := strings.Fields(line)
				path, tag, _ := strings.Cut(fields[0], ":")
				if path == "m/acme/catalog" {
					continue // rebuilt
				}
				if got := digest.FromBytes(dest.Manifest(path, tag)); got.String() != fields[1] {
					t.Errorf("%s: %s instead of %s", fields[0], got, fields[1])
				}
			}
		})
	}
}

// The second archive of a pair alone says what it counts on, and since when; with the first one nothing is missing.
func TestArchivesOfThePeerInOrder(t *testing.T) {
	source := mirrortest.Source(t)
	first := recording(t, "03b-incremental-in-order/01-m2d-1.archive.txt")
	second := recording(t, "03b-incremental-in-order/03-m2d-2.archive.txt")
	var history strings.Builder
	for _, n := range first.names {
		if m := peerBlob.FindStringSubmatch(n); m != nil {
			history.WriteString("sha256:" + m[1] + "\n")
		}
	}
	one, two := first.archive(t, source, ""), second.archive(t, source, history.String())
	list, err := read(t, two).LeftOut(context.Background())
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	for _, l := range list {
		if l.Since == nil || l.Since.Format("2006-01-02") != "2026-08-01" {
			t.Errorf("%+v", l)
		}
	}
	both := read(t, two, one)
	if list, err := both.LeftOut(context.Background()); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	dest, to := testregistry.New(t), remote(t)
	carry(t, second.tags, func(path string) store.Reader { return both.Repository(path) },
		func(path string) store.Writer { return registryAt(t, to, dest.Host()+"/m/"+path) })
	// A directory of both, in the order of their names, is the same.
	parent := t.TempDir()
	for name, dir := range map[string]string{"2026-08-01": one, "2026-08-02": two} {
		if err := os.Mkdir(filepath.Join(parent, name), 0o755); err != nil {
			t.Fatal(err)
		}
		copyFile(t, filepath.Join(dir, "mirror_000001.tar"), filepath.Join(parent, name, "mirror_000001.tar"))
	}
	if list, err := read(t, parent).LeftOut(context.Background()); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
}

// An archive of oc-mirror stays when another one is written beside it, in either form, and both are read as one.
func TestArchiveOfThePeerIsKept(t *testing.T) {
	source := mirrortest.Source(t)
	for _, form := range []medium.Form{medium.OCI, medium.OCMirror} {
		rec := recording(t, "02-m2d-d2m/01-m2d.archive.txt")
		dir := rec.archive(t, source, "")
		s := newSample(t)
		w := create(t, dir, medium.Options{Form: form, Keep: true, Beside: true})
		s.write(t, w)
		account := finish(t, w, medium.Contents{})
		if !slices.Equal(account.Kept, []string{"mirror_000001.tar"}) || account.Segments[0].Name != "mirror_000002.tar" {
			t.Errorf("%s: %+v", form, account)
		}
		r := read(t, dir)
		for path, tags := range rec.tags {
			for tag, d := range tags {
				if got := r.Tags(path)[tag]; got != d {
					t.Errorf("%s: %s:%s is %s and not %s", form, path, tag, got, d)
				}
			}
		}
		if r.Form() != form || r.Contents() == nil || len(r.Tags("acme/multi")) == 0 {
			t.Errorf("%s: %s, %v", form, r.Form(), r.Contents())
		}
		if list, err := r.LeftOut(context.Background()); err != nil || len(list) != 0 {
			t.Error(list, err)
		}
	}
}

// In the form of oc-mirror the members have the names and lengths that the program gives them.
func TestMembersOfThePeer(t *testing.T) {
	source := mirrortest.Source(t)
	from := remote(t)
	for _, name := range []string{"02-m2d-d2m/01-m2d.archive.txt", "24-strict-archive/01-m2d.archive.txt"} {
		rec := recording(t, name)
		delete(rec.tags, "acme/catalog") // rebuilt
		dir := t.TempDir()
		w := create(t, dir, medium.Options{Form: medium.OCMirror})
		carry(t, rec.tags, func(path string) store.Reader { return registryAt(t, from, source.Host()+"/"+path) },
			func(path string) store.Writer { return w.Repository(path) })
		finish(t, w, medium.Contents{})
		content, err := os.ReadFile(filepath.Join(dir, "mirror_000001.tar"))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int64{}
		tr := tar.NewReader(bytes.NewReader(content))
		for h, err := tr.Next(); err != io.EOF; h, err = tr.Next() {
			if err != nil {
				t.Fatal(err)
			}
			got[h.Name] = h.Size
		}
		for n, size := range got {
			if n == "working-dir/bindery-mirror.json" {
				continue
			}
			if rec.sizes[n] != size {
				t.Errorf("%s: %d bytes instead of %d", n, size, rec.sizes[n])
			}
		}
		ofCatalog := map[string]bool{}
		for _, n := range rec.names {
			if strings.Contains(n, "/acme/catalog/") {
				for _, hex := range anyHex.FindAllString(n, -1) {
					ofCatalog[hex] = true
				}
			}
		}
		for _, n := range rec.names {
			blob := peerBlob.FindStringSubmatch(n)
			if _, has := got[n]; !has && (blob != nil && !ofCatalog[blob[1]] ||
				strings.Contains(n, "/repositories/") && !strings.Contains(n, "/acme/catalog/")) {
				t.Errorf("%s is missing", n)
			}
		}
	}
}
