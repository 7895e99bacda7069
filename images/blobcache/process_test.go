//go:build linux

package blobcache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
)

// cacheWorker is an environment variable with a [workerJob] in JSON. If set, the test program only runs that job.
const cacheWorker = "BINDERY_TEST_CACHE_WORKER"

type workerJob struct {
	Dir      string
	Seed     uint64
	Rounds   int // 0 means until it is killed
	MaxBytes int64
	FileSize uint64 // of the largest file that may be written, if not 0
}

// workerReport is the result of such a process.
type workerReport struct {
	Hits, Misses int
	Warnings     []string
}

func TestMain(m *testing.M) {
	if job := os.Getenv(cacheWorker); job != "" {
		if err := useCache(job); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// sharedBlob returns one of the blobs that all processes use.
func sharedBlob(i int) ([]byte, digest.Digest) {
	return noise(uint64(5000+i), []int{100, 3000, 70_000, 200_000, 1_200_000}[i%5]+i)
}

const sharedBlobs = 40

func useCache(text string) error {
	var job workerJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		return err
	}
	if job.FileSize > 0 {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE,
			&syscall.Rlimit{Cur: job.FileSize, Max: job.FileSize}); err != nil {
			return err
		}
	}
	var report workerReport
	c, err := Open(job.Dir, Options{MaxBytes: job.MaxBytes,
		Warn: func(err error) { report.Warnings = append(report.Warnings, err.Error()) }})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(job.Seed, 0))
	for round := 0; job.Rounds == 0 || round < job.Rounds; round++ {
		want, d := sharedBlob(rng.IntN(sharedBlobs))
		r, hit := c.Open(context.Background(), d, int64(len(want)))
		if hit {
			report.Hits++
		} else {
			report.Misses++
			r = c.Tee(d, int64(len(want)), io.NopCloser(bytes.NewReader(want)))
		}
		got, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return fmt.Errorf("hit %v: %w", hit, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("hit %v: %d bytes that are wrong", hit, len(got))
		}
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

// worker returns a process that uses a cache.
func worker(t *testing.T, job workerJob) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), cacheWorker+"="+string(text))
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

func work(t *testing.T, job workerJob) (report workerReport) {
	t.Helper()
	cmd, stdout, stderr := worker(t, job)
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%.2000s", err, stderr)
		return report
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Errorf("%v: %s", err, stdout)
	}
	return report
}

// Eight processes read and write one cache that is too small for their blobs, while another damages and removes
// entries: no process reads wrong bytes, fails or hangs, and the size limit holds.
func TestManyProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	const bound = 4 << 20
	const processes = 8
	var wg sync.WaitGroup
	reports := make([]workerReport, processes)
	for i := range processes {
		wg.Go(func() { reports[i] = work(t, workerJob{Dir: dir, Seed: uint64(i), Rounds: 400, MaxBytes: bound}) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	c := cacheIn(t, dir, Options{MaxBytes: bound})
	rng := rand.New(rand.NewPCG(1, 2))
	damaged, pruned := 0, 0
	for busy := true; busy; {
		if rng.IntN(40) == 0 {
			p, err := c.Prune(t.Context(), PruneOptions{MaxBytes: int64(rng.IntN(bound))})
			if err != nil {
				t.Error(err)
			}
			pruned += p.Blobs
		}
		_, d := sharedBlob(rng.IntN(sharedBlobs))
		if damage(rng, entryPath(c, d)) == nil {
			damaged++
		}
		select {
		case <-done:
			busy = false
		case <-time.After(time.Millisecond):
		}
	}
	hits, misses := 0, 0
	for _, r := range reports {
		hits += r.Hits
		misses += r.Misses
		if len(r.Warnings) > 0 {
			t.Errorf("warnings: %v", r.Warnings)
		}
	}
	if hits == 0 || misses < sharedBlobs || damaged == 0 || pruned == 0 {
		t.Errorf("%d hits, %d misses, %d damaged, %d pruned: not what was to be tried", hits, misses, damaged, pruned)
	}
	t.Logf("%d hits, %d misses, %d damaged, %d pruned", hits, misses, damaged, pruned)
	if info, err := c.Info(); err != nil || info.Bytes > bound*9/8 {
		t.Errorf("%+v, %v", info, err)
	}
	noPartials(t, dir)
}

// damage corrupts an entry in one of several ways, if it exists.
func damage(rng *rand.Rand, path string) error {
	info, err := os.Lstat(path) // it may be damaged already
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > 2<<20 {
		return fmt.Errorf("%s is of another kind", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return nil
	}
	aside := filepath.Join(filepath.Dir(path), "aside")
	switch rng.IntN(5) {
	case 0:
		text[rng.IntN(len(text))] ^= 1 << rng.IntN(8)
		return errors.Join(os.WriteFile(aside, text, 0o600), os.Rename(aside, path))
	case 1:
		return errors.Join(os.WriteFile(aside, text[:rng.IntN(len(text))], 0o600), os.Rename(aside, path))
	case 2:
		return errors.Join(os.Symlink("/dev/zero", aside), os.Rename(aside, path))
	case 3:
		return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
	default:
		return errors.Join(mkfifo(aside), os.Rename(aside, path))
	}
}

// After processes were killed at random moments the cache returns no wrong bytes, and the next process removes their
// temporary files.
func TestKilledProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	const bound = 6 << 20
	partials := 0
	for round := range 25 {
		var running []*exec.Cmd
		for i := range 3 {
			cmd, _, stderr := worker(t, workerJob{Dir: dir, Seed: uint64(round*10 + i), MaxBytes: bound})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			running = append(running, cmd)
			defer func() {
				if stderr.Len() > 0 {
					t.Errorf("round %d: %.500s", round, stderr)
				}
			}()
		}
		kill := time.AfterFunc(time.Duration(5+3*round)*time.Millisecond, func() {
			for _, cmd := range running {
				_ = cmd.Process.Kill()
			}
		})
		for _, cmd := range running {
			_ = cmd.Wait()
		}
		kill.Stop()
		if entries, err := os.ReadDir(filepath.Join(dir, cachePartial)); err == nil {
			partials += len(entries)
		}
	}
	t.Logf("%d files were left unfinished in between", partials)
	report := work(t, workerJob{Dir: dir, Seed: 999, Rounds: 300, MaxBytes: bound})
	if report.Hits == 0 || len(report.Warnings) > 0 {
		t.Errorf("%+v", report)
	}
	noPartials(t, dir)
	c := cacheIn(t, dir, Options{MaxBytes: bound})
	if info, err := c.Info(); err != nil || info.Bytes > bound*9/8 {
		t.Errorf("%+v, %v", info, err)
	}
}

// If files cannot grow, there is one warning, and every blob is delivered.
func TestLimitedFileSize(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	report := work(t, workerJob{Dir: dir, Rounds: 200, MaxBytes: 1 << 30, FileSize: 150_000})
	if len(report.Warnings) != 1 || !strings.Contains(report.Warnings[0], "file too large") {
		t.Errorf("%+v", report)
	}
	noPartials(t, dir)
}

// On a full or read-only disk there is one warning, every blob is delivered, and existing entries are used.
func TestFullCacheDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("mounting: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(disk, "cache")
	for _, state := range []struct{ name, want string }{{"full", "no space left on device"},
		{"still full", "no space left on device"}, {"read-only", "read-only file system"}} {
		if state.name == "read-only" {
			if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=2m"); err != nil {
				t.Skipf("remounting: %v", err)
			}
		}
		var warnings []string
		c := cacheIn(t, dir, Options{Warn: func(err error) { warnings = append(warnings, err.Error()) }})
		for i := range sharedBlobs {
			text, d := sharedBlob(i)
			if _, ok := cached(t, c, d, int64(len(text))); !ok {
				fetch(t, c, text)
			}
		}
		if len(warnings) != 1 || !strings.Contains(warnings[0], state.want) {
			t.Errorf("%s: %d warnings: %v", state.name, len(warnings), warnings)
		}
		found := 0
		for i := range sharedBlobs {
			text, d := sharedBlob(i)
			if _, ok := cached(t, c, d, int64(len(text))); ok {
				found++
			}
		}
		if found < 4 {
			t.Errorf("%s: only %d blobs are found", state.name, found)
		}
		noPartials(t, dir)
		c.Close()
	}
}

func BenchmarkBlobCache(b *testing.B) {
	for _, size := range []int{10_000, 1 << 20, 16 << 20} {
		text, d := noise(1, size)
		read := func(b *testing.B, r io.ReadCloser) {
			if _, err := io.Copy(io.Discard, struct{ io.Reader }{r}); err != nil {
				b.Fatal(err)
			}
			r.Close()
		}
		c := cacheIn(b, b.TempDir(), Options{MaxBytes: 1 << 30})
		b.Run(fmt.Sprintf("Tee/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				read(b, c.Tee(d, int64(size), io.NopCloser(bytes.NewReader(text))))
			}
		})
		b.Run(fmt.Sprintf("Open/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				r, ok := c.Open(context.Background(), d, int64(size))
				if !ok {
					b.Fatal("not found")
				}
				read(b, r)
			}
		})
	}
}
