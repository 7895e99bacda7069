package blobcache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// noise returns a pseudorandom blob that no other test uses.
func noise(seed uint64, size int) ([]byte, digest.Digest) {
	text := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(text)
	return text, digest.FromBytes(text)
}

func cacheIn(t testing.TB, dir string, o Options) *Cache {
	t.Helper()
	if o.Warn == nil {
		o.Warn = func(err error) { t.Errorf("warning: %v", err) }
	}
	c, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// fetch reads a blob through the cache, as if it came from a registry.
func fetch(t testing.TB, c *Cache, text []byte) {
	t.Helper()
	r := c.Tee(digest.FromBytes(text), int64(len(text)), io.NopCloser(bytes.NewReader(text)))
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("%d of %d bytes came through: %v", len(got), len(text), err)
	}
}

// cached reads a blob from the cache.
func cached(t testing.TB, c *Cache, d digest.Digest, size int64) ([]byte, bool) {
	t.Helper()
	r, ok := c.Open(context.Background(), d, size)
	if !ok {
		return nil, false
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	if digest.FromBytes(text) != d {
		t.Fatal("the cache has given what is no such blob")
	}
	return text, true
}

func entryPath(c *Cache, d digest.Digest) string { return filepath.Join(c.dir, blobEntry(d)) }

func TestBlobCacheKeepsBlobs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "cache")
	c := cacheIn(t, dir, Options{})
	sizes := []int{0, 1, cacheWriteAfter, cacheWriteAfter + 1, cacheInMemory, cacheInMemory + 1, 3 << 20}
	for i, size := range sizes {
		text, d := noise(uint64(i), size)
		if _, ok := cached(t, c, d, int64(size)); ok {
			t.Errorf("%d bytes: found before", size)
		}
		if i == 0 {
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("looking has made the directory: %v", err)
			}
		}
		fetch(t, c, text)
		for _, announced := range []int64{int64(size), -1} {
			if got, ok := cached(t, c, d, announced); !ok || !bytes.Equal(got, text) {
				t.Errorf("%d bytes, announced as %d: not found", size, announced)
			}
		}
		if _, ok := cached(t, c, d, int64(size)+1); ok {
			t.Errorf("%d bytes: found with a wrong size", size)
		}
	}
	info, err := c.Info()
	if err != nil || info.Blobs != len(sizes) || info.Dir != dir || info.Oldest.IsZero() ||
		info.Newest.Before(info.Oldest) {
		t.Errorf("%+v, %v", info, err)
	}
	for _, name := range []string{".", cacheBlobs, cachePartial} {
		if stat, err := os.Stat(filepath.Join(dir, name)); err != nil || stat.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, stat.Mode(), err)
		}
	}
	// Another process finds the blobs.
	text, d := noise(1, 1)
	if got, ok := cached(t, cacheIn(t, dir, Options{}), d, 1); !ok || !bytes.Equal(got, text) {
		t.Error("not found after opening again")
	}
	noPartials(t, dir)
}

func noPartials(t testing.TB, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(filepath.Join(dir, cachePartial)); err == nil && len(entries) > 0 {
		t.Errorf("left behind: %d files such as %s", len(entries), entries[0].Name())
	}
}

func TestNilBlobCache(t *testing.T) {
	var c *Cache
	text, d := noise(1, 100)
	fetch(t, c, text)
	if _, ok := c.Open(context.Background(), d, 100); ok {
		t.Error("found")
	}
	if info, err := c.Info(); err != nil || info.Blobs != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	if p, err := c.Prune(t.Context(), PruneOptions{}); err != nil || p.Blobs != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if err := c.Close(); err != nil || c.Dir() != "" {
		t.Error(err)
	}
}

// A blob that was not read to its end or does not match its digest is not stored, and reading it gives the same result
// as without a cache.
func TestBlobCacheKeepsNothingElse(t *testing.T) {
	broken := errors.New("broken")
	for name, tee := range map[string]func(c *Cache, text []byte, d digest.Digest) io.ReadCloser{
		"another digest": func(c *Cache, text []byte, _ digest.Digest) io.ReadCloser {
			return c.Tee(digest.FromString("other"), int64(len(text)), io.NopCloser(bytes.NewReader(text)))
		},
		"shorter": func(c *Cache, text []byte, d digest.Digest) io.ReadCloser {
			return c.Tee(d, int64(len(text)), io.NopCloser(bytes.NewReader(text[1:])))
		},
		"longer": func(c *Cache, text []byte, d digest.Digest) io.ReadCloser {
			return c.Tee(d, int64(len(text)),
				io.NopCloser(io.MultiReader(bytes.NewReader(text), strings.NewReader("x"))))
		},
		"broken off": func(c *Cache, text []byte, d digest.Digest) io.ReadCloser {
			return c.Tee(d, -1, io.NopCloser(io.MultiReader(bytes.NewReader(text[1:]), errReader{broken})))
		},
		"closed early": func(c *Cache, text []byte, d digest.Digest) io.ReadCloser {
			return c.Tee(d, -1, io.NopCloser(io.LimitReader(bytes.NewReader(text), int64(len(text)-1))))
		},
		"too large": func(c *Cache, text []byte, d digest.Digest) io.ReadCloser {
			return c.Tee(d, -1,
				io.NopCloser(io.MultiReader(bytes.NewReader(text), bytes.NewReader(make([]byte, 1<<20)))))
		},
	} {
		for _, size := range []int{10_000, 300_000} {
			dir := t.TempDir()
			c := cacheIn(t, dir, Options{MaxBlob: 1 << 20})
			text, d := noise(7, size)
			r := tee(c, text, d)
			if _, err := io.Copy(io.Discard, r); err != nil && !errors.Is(err, broken) {
				t.Errorf("%s: %v", name, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if info, err := c.Info(); err != nil || info.Blobs != 0 {
				t.Errorf("%s: %d bytes: %+v, %v", name, size, info, err)
			}
			noPartials(t, dir)
		}
	}
}

type errReader struct{ err error }

func (e errReader) Read([]byte) (int, error) { return 0, e.err }

// A consumer that knows the size does not read up to the end of the file; the blob is stored anyway.
func TestBlobCacheKeepsWhatWasReadToTheLastByte(t *testing.T) {
	c := cacheIn(t, t.TempDir(), Options{})
	text, d := noise(3, 100_000)
	r := c.Tee(d, int64(len(text)), io.NopCloser(bytes.NewReader(text)))
	if _, err := io.ReadFull(r, make([]byte, len(text))); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := cached(t, c, d, int64(len(text))); !ok {
		t.Error("not kept")
	}
}

// A damaged entry counts as missing, and the next fetch repairs it.
func TestDamagedEntries(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a flipped bit": func(path string) error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 4
			return os.WriteFile(path, text, 0o600)
		},
		"cut short": func(path string) error { return os.Truncate(path, 10) },
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"longer":    func(path string) error { return os.Truncate(path, 1<<40) },
		"no permissions": func(path string) error {
			return os.Chmod(path, 0)
		},
		"a link outside": func(path string) error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			outside := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(path)))), "outside")
			return errors.Join(os.WriteFile(outside, text, 0o600), os.Remove(path), os.Symlink(outside, path))
		},
		"a directory": func(path string) error {
			return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "sub"), 0o700))
		},
		"a dangling link": func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nowhere", path)) },
		"its directory is a file": func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		},
		"its directory is a link outside": func(path string) error {
			dir := filepath.Dir(path)
			return errors.Join(os.RemoveAll(dir), os.Symlink(os.TempDir(), dir))
		},
		"everything is gone": func(path string) error { return os.RemoveAll(filepath.Dir(filepath.Dir(path))) },
	} {
		for _, size := range []int{5_000, 3 << 20} {
			for _, announced := range []int64{int64(size), -1} {
				dir := filepath.Join(t.TempDir(), "cache")
				c := cacheIn(t, dir, Options{})
				text, d := noise(9, size)
				fetch(t, c, text)
				if err := damage(entryPath(c, d)); err != nil {
					t.Fatal(err)
				}
				if _, ok := cached(t, c, d, announced); ok && (name != "no permissions" || os.Geteuid() != 0) {
					t.Errorf("%s: found", name)
				}
				fetch(t, c, text)
				if _, ok := cached(t, c, d, announced); !ok {
					t.Errorf("%s: %d bytes: not repaired", name, size)
				}
				if info, err := os.Lstat(entryPath(c, d)); err != nil || !info.Mode().IsRegular() {
					t.Errorf("%s: the entry is %v, %v", name, info, err)
				}
			}
		}
	}
}

// A change of an entry while it is read is detected.
func TestEntryChangedWhileRead(t *testing.T) {
	c := cacheIn(t, t.TempDir(), Options{})
	text, d := noise(9, 3<<20)
	fetch(t, c, text)
	r, ok := c.Open(context.Background(), d, int64(len(text)))
	if !ok {
		t.Fatal("not found")
	}
	defer r.Close()
	f, err := os.OpenFile(entryPath(c, d), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("changed"), 2<<20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, fault.ErrIntegrity) {
		t.Errorf("got %v", err)
	}
}

func TestPlacesThatAreNoCache(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	tag := t.TempDir()
	if err := os.WriteFile(filepath.Join(tag, cacheTag),
		[]byte("Signature: 8a477f597d28d172789f06886806bc55\n# another's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{file: "not a directory", filepath.Join(dir, "link"): "symbolic link",
		dir: "holds other files", tag: "another program"}
	if os.Geteuid() == 0 {
		foreign := t.TempDir()
		if err := os.Chown(foreign, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		want[foreign] = "another user"
	}
	for place, message := range want {
		if _, err := Open(place, Options{}); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, want %q", place, err, message)
		}
	}
	// The directory becomes unusable after it was opened: there is one warning, and blobs are still delivered.
	late := filepath.Join(t.TempDir(), "late")
	var warnings []error
	c := cacheIn(t, late, Options{Warn: func(err error) { warnings = append(warnings, err) }})
	if err := os.Symlink(dir, late); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		text, d := noise(seed, 1000)
		fetch(t, c, text)
		if _, ok := cached(t, c, d, 1000); ok {
			t.Error("kept")
		}
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Error(), "symbolic link") {
		t.Errorf("warnings: %v", warnings)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("something was written through the link: %v", entries)
	}
}

// On a volume that another user has used first, a user has an own directory.
func TestDefaultCacheDirOfMany(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	volume := t.TempDir()
	dir := filepath.Join(volume, "bindery")
	if err := errors.Join(os.Chmod(volume, 0o777), os.Mkdir(dir, 0o700), os.Chown(dir, 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	got, ok := DefaultDir(func(name string) string { return map[string]string{"XDG_CACHE_HOME": volume}[name] })
	if want := filepath.Join(volume, "bindery-0", "blobs"); !ok || got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	text, d := noise(1, 100)
	c := cacheIn(t, got, Options{})
	fetch(t, c, text)
	if _, ok := cached(t, c, d, 100); !ok {
		t.Error("not kept")
	}
}

func TestDefaultCacheDir(t *testing.T) {
	for _, c := range []struct{ xdg, home, want string }{
		{"/x", "/h", "/x/bindery/blobs"},
		{"", "/h", "/h/.cache/bindery/blobs"},
		{"relative", "/h", "/h/.cache/bindery/blobs"},
		{"", "", ""},
		{"", "relative", ""},
	} {
		got, ok := DefaultDir(func(name string) string {
			return map[string]string{"XDG_CACHE_HOME": c.xdg, "HOME": c.home}[name]
		})
		if filepath.ToSlash(got) != c.want || ok != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, got, ok)
		}
	}
}

// The least recently used blobs are removed first.
func TestPruning(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := cacheIn(t, t.TempDir(), Options{Now: func() time.Time { return now }})
	var digests []digest.Digest
	for i := range 10 {
		text, d := noise(uint64(i), 4096)
		fetch(t, c, text)
		digests = append(digests, d)
		stamp := now.Add(time.Duration(i-20) * time.Hour)
		if i == 9 {
			stamp = now.AddDate(70, 0, 0) // a time stamp of a wrong clock
		}
		if err := os.Chtimes(entryPath(c, d), stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := cached(t, c, digests[0], 4096); !ok { // this one is used now
		t.Fatal("not found")
	}
	for _, path := range []string{"sha256/stray", "sha256/ab/stray", "sha256/ab/" + digests[0].Encoded()} {
		path = filepath.Join(c.dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dry := range []bool{true, false} {
		p, err := c.Prune(t.Context(), PruneOptions{MaxBytes: 4 * 4096, DryRun: dry})
		if want := (Pruned{Blobs: 6, Bytes: 6 * 4096, LeftBlobs: 4, LeftBytes: 4 * 4096}); err != nil || p != want {
			t.Errorf("dry %v: %+v, %v", dry, p, err)
		}
		if info, _ := c.Info(); dry && info.Blobs != 10 {
			t.Errorf("the dry run has removed something: %+v", info)
		}
	}
	for i, d := range digests {
		_, err := os.Lstat(entryPath(c, d))
		if kept := err == nil; kept != (i == 0 || i >= 6 && i < 9) {
			t.Errorf("blob %d: kept %v", i, kept)
		}
	}
	if _, err := os.Lstat(filepath.Join(c.dir, "sha256/stray")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stray file: %v", err)
	}
	if p, err := c.Prune(t.Context(), PruneOptions{}); err != nil || p.LeftBlobs != 0 {
		t.Errorf("all: %+v, %v", p, err)
	}
}

func TestReadersOutliveEviction(t *testing.T) {
	c := cacheIn(t, t.TempDir(), Options{})
	text, d := noise(5, 3<<20)
	fetch(t, c, text)
	r, ok := c.Open(context.Background(), d, int64(len(text)))
	if !ok {
		t.Fatal("not found")
	}
	defer r.Close()
	if p, err := c.Prune(t.Context(), PruneOptions{}); err != nil || p.Blobs != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// The size limit holds without explicit pruning, for all processes together.
func TestBound(t *testing.T) {
	dir := t.TempDir()
	const bound = 1 << 20
	for run := range 20 {
		c := cacheIn(t, dir, Options{MaxBytes: bound})
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for i := range 10 {
					text, _ := noise(uint64(run*1000+worker*100+i), 1000+i*1000)
					fetch(t, c, text)
				}
			})
		}
		wg.Wait()
		if info, err := c.Info(); err != nil || info.Bytes > bound*9/8 || run > 3 && info.Bytes < bound/2 {
			t.Errorf("run %d: %+v, %v", run, info, err)
		}
	}
}

// Unexpected files in place of the cache's own do not make it fail.
func TestOddFilesInTheCache(t *testing.T) {
	for _, name := range []string{cacheAccount, cachePartial, cacheBlobs, cachePartial + "/x"} {
		for kind, put := range map[string]func(path string) error{
			"a link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
			"a directory": func(path string) error { return os.MkdirAll(filepath.Join(path, "x", "y"), 0o700) },
			"a FIFO":      mkfifo,
		} {
			c := cacheIn(t, t.TempDir(), Options{})
			text, d := noise(1, 200_000)
			fetch(t, c, text)
			path := filepath.Join(c.dir, name)
			if err := errors.Join(os.RemoveAll(path), put(path)); err != nil {
				t.Fatal(err)
			}
			again := cacheIn(t, c.dir, Options{})
			fetch(t, again, text)
			if _, err := again.Prune(t.Context(), PruneOptions{MaxBytes: 1 << 30}); err != nil {
				t.Errorf("%s is %s: %v", name, kind, err)
			}
			fetch(t, again, text)
			if _, ok := cached(t, again, d, -1); !ok {
				t.Errorf("%s is %s: not kept", name, kind)
			}
		}
	}
}

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }

func TestCopyToFile(t *testing.T) {
	for _, size := range []int{10, cacheInMemory + 10} {
		dir := t.TempDir()
		c := cacheIn(t, filepath.Join(dir, "cache"), Options{})
		text, d := noise(5, size)
		to := filepath.Join(dir, "blob")
		if c.CopyTo(t.Context(), d, int64(size), to) {
			t.Error("copied what is not there")
		}
		fetch(t, c, text)
		if c.CopyTo(t.Context(), d, int64(size)+1, to) {
			t.Error("copied a blob of another size")
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if c.CopyTo(cancelled, d, int64(size), to) {
			t.Error("copied though it was cancelled")
		}
		if !c.CopyTo(t.Context(), d, int64(size), to) {
			t.Error("not copied")
		}
		got, err := os.ReadFile(to)
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("another blob: %v", err)
		}
		if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		entry := filepath.Join(dir, "cache", filepath.FromSlash(blobEntry(d)))
		text[3] ^= 1
		if err := os.WriteFile(entry, text, 0o600); err != nil {
			t.Fatal(err)
		}
		again := filepath.Join(dir, "again")
		if c.CopyTo(t.Context(), d, int64(size), again) {
			t.Error("copied a damaged blob")
		}
		names, err := os.ReadDir(dir)
		if _, gone := os.Stat(entry); err != nil || len(names) != 2 || gone == nil {
			t.Errorf("%d files are left, the damaged one: %v", len(names), gone)
		}
	}
}

// The directory above the cache must belong to this user; those above it may be anyone's.
func TestPlacesAboveTheCache(t *testing.T) {
	place := func(change func(parent string) error) string {
		dir := filepath.Join(t.TempDir(), "home", "bindery")
		if err := errors.Join(os.MkdirAll(dir, 0o700), change(dir)); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "blobs")
	}
	chown := func(path string, uid int, mode os.FileMode) error {
		return errors.Join(os.Chown(path, uid, -1), os.Chmod(path, mode))
	}
	want := map[string]string{
		place(func(dir string) error { return nil }):                  "",
		place(func(dir string) error { return os.Chmod(dir, 0o777) }): "", // owned by this user
		place(func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"2"), os.Symlink(dir+"2", dir))
		}): "bindery is a symbolic link",
	}
	if os.Geteuid() == 0 {
		want[place(func(dir string) error { return chown(dir, 12345, 0o777) })] = "bindery belongs to another user"
		want[place(func(dir string) error { return chown(dir, 12345, 0o700) })] = "bindery belongs to another user"
		want[place(func(dir string) error { return chown(filepath.Dir(dir), 12345, 0o777) })] = ""
	}
	for dir, message := range want {
		_, err := Open(dir, Options{})
		if (err == nil) != (message == "") || err != nil && !strings.Contains(err.Error(), message) {
			t.Errorf("%s: got %v, want %q", dir, err, message)
		}
		// A cache that was opened before the directory existed does not write there either.
		if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) > 0 {
			t.Errorf("%s: %v", dir, left)
		}
	}
}
