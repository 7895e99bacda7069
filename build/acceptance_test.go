package build

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/layers"
)

// client runs another program on the built image. The test is skipped if the program is not installed.
func client(t testing.TB, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "STORAGE_DRIVER=vfs")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return string(out)
}

// built builds the sample catalog as an image in a layout.
func built(t testing.TB, o Options) (*Image, string) {
	t.Helper()
	o.Servers = []Server{server(t, "amd64", elf.EM_X86_64)}
	img := catalog(t, CatalogInput{FS: sampleFS()}, o)
	name := "oci:" + filepath.Join(t.TempDir(), "out") + ":v1"
	push(t, img, name)
	return img, name
}

func TestSkopeoReadsAndCopiesTheImage(t *testing.T) {
	for _, c := range []layers.Compression{layers.Gzip, layers.Zstd} {
		img, name := built(t, Options{Compression: c})
		var seen struct {
			Digest string
			Labels map[string]string
			Layers []string
		}
		if err := json.Unmarshal([]byte(client(t, "skopeo", "inspect", name)), &seen); err != nil {
			t.Fatal(err)
		}
		if seen.Digest != img.Digest.String() || seen.Labels[ConfigsLabel] != "/configs" ||
			len(seen.Layers) != len(img.Layers) {
			t.Errorf("skopeo sees %+v", seen)
		}
		copied := filepath.Join(t.TempDir(), "copied")
		client(t, "skopeo", "--insecure-policy", "copy", "--preserve-digests", name, "dir:"+copied)
		text, err := os.ReadFile(filepath.Join(copied, "manifest.json"))
		if err != nil || !bytes.Equal(text, img.Manifest()) {
			t.Errorf("%s: skopeo's copy has another manifest: %v", c, err)
		}
	}
}

func TestUmociUnpacksTheImage(t *testing.T) {
	_, name := built(t, Options{})
	bundle := filepath.Join(t.TempDir(), "bundle")
	client(t, "umoci", "unpack", "--rootless", "--image", strings.TrimPrefix(name, "oci:"), bundle)
	root := filepath.Join(bundle, "rootfs")
	for path, mode := range map[string]fs.FileMode{
		"bin/opm": 0o755, "bin/grpc_health_probe": 0o755, "etc/nsswitch.conf": 0o644,
		"tmp":     fs.ModeDir | fs.ModeSticky | 0o777,
		"configs": fs.ModeDir | 0o755, "configs/foo": fs.ModeDir | 0o755, "configs/foo/catalog.yaml": 0o644,
	} {
		info, err := os.Lstat(filepath.Join(root, path))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, want %v: %v", path, info.Mode(), mode, err)
		}
	}
	a, err1 := os.Stat(filepath.Join(root, cataloglayer.ServerPath))
	b, err2 := os.Stat(filepath.Join(root, cataloglayer.ProbePath))
	if err1 != nil || err2 != nil || !os.SameFile(a, b) {
		t.Errorf("the probe is not the server: %v, %v", err1, err2)
	}
	if got, want := text(t, os.DirFS(filepath.Join(root, "configs"))), text(t, sampleFS()); got != want {
		t.Error("the unpacked catalog is another")
	}
}

func TestPodmanLoadsTheArchives(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("podman's store needs root here")
	}
	dir := t.TempDir()
	img := catalog(t, CatalogInput{FS: sampleFS()}, Options{})
	push(t, img, "docker-archive:"+dir+"/docker.tar:localhost/sample:v1",
		"oci-archive:"+dir+"/oci.tar:localhost/sample:v2")
	store := []string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver", "vfs"}
	for _, archive := range []string{"docker.tar", "oci.tar"} {
		if out := client(t, "podman", append(store, "load", "-q", "-i", dir+"/"+archive)...); !strings.Contains(out,
			"sample") {
			t.Errorf("%s: podman says %q", archive, out)
		}
	}
}

// debianRegistry starts a real registry on the loopback interface, behind a proxy that records the requests.
func debianRegistry(t *testing.T) (host string, requests func() []string) {
	t.Helper()
	path, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("docker-registry is not installed")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	config := fmt.Sprintf(
		"version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s/data}, delete: {enabled: "+
			"true}}\nhttp: {addr: %q}\n", dir, addr)
	if err := os.WriteFile(dir+"/config.yml", []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "serve", dir+"/config.yml")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
		r, err := http.Get("http://" + addr + "/v2/")
		if err == nil {
			r.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the registry does not answer: %v", err)
		}
	}
	var mu sync.Mutex
	var seen []string
	proxy := &http.Server{Handler: func() http.Handler {
		to := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: addr})
			r.Out.Host = r.In.Host
		}}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen = append(seen, r.Method+" "+r.URL.Path)
			mu.Unlock()
			to.ServeHTTP(w, r)
		})
	}()}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = proxy.Serve(front) }()
	t.Cleanup(func() { proxy.Close() })
	return front.Addr().String(), func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := seen
		seen = nil
		return out
	}
}

func TestRegistry(t *testing.T) {
	host, requests := debianRegistry(t)
	yes := true
	insecure := registries.Config{SkipTLSVerify: &yes, PlainHTTP: true}
	to := func(img *Image, name string) images.Result {
		t.Helper()
		d, err := images.BuiltIn().Parse("docker://" + host + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := images.Copy(t.Context(), img.Store(), img.Top(), []transport.Destination{d},
			images.CopyOptions{Options: registries.Options{Registry: insecure, Temp: t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		return r[0]
	}
	for _, f := range []Format{FormatOCI, FormatDocker} {
		img, _ := builtFor(t, f)
		r := to(img, "a/catalog:"+string(f))
		if r.Digest != img.Digest {
			t.Errorf("%s: digest %s, announced %s", f, r.Digest, img.Digest)
		}
		var seen struct{ Digest string }
		if err := json.Unmarshal([]byte(client(t, "skopeo", "inspect", "--tls-verify=false", "docker://"+r.Reference)),
			&seen); err != nil || seen.Digest != img.Digest.String() {
			t.Errorf("%s: skopeo sees %+v, %v", f, seen, err)
		}
	}
	zstd := catalog(t, CatalogInput{FS: sampleFS()}, Options{Compression: layers.Zstd})
	if r := to(zstd, "a/catalog:zstd"); r.Digest != zstd.Digest {
		t.Errorf("zstd: digest %s, announced %s", r.Digest, zstd.Digest)
	}
	two := catalog(t, CatalogInput{FS: sampleFS()},
		Options{Servers: []Server{server(t, "amd64", elf.EM_X86_64), server(t, "ppc64le", elf.EM_PPC64)}})
	if r := to(two, "a/catalog:two"); r.Digest != two.Digest {
		t.Errorf("index: digest %s, announced %s", r.Digest, two.Digest)
	}

	// A base that is already in the repository is neither downloaded nor uploaded.
	client, err := images.NewClient(images.ClientOptions{NoPolicy: true,
		Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &yes, PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ref, err := NamedBase(client, host+"/a/catalog:oci")
	if err != nil {
		t.Fatal(err)
	}
	img := catalog(t, CatalogInput{FS: sampleFS()}, Options{Base: ref})
	requests()
	to(img, "a/catalog:on-base")
	for _, r := range requests() {
		if strings.HasPrefix(r, "GET") && strings.Contains(r, "/blobs/") {
			t.Errorf("downloaded: %s", r)
		}
	}
}

func builtFor(t testing.TB, f Format) (*Image, string) {
	t.Helper()
	if f == FormatOCI {
		return built(t, Options{})
	}
	return catalog(t, CatalogInput{FS: sampleFS()},
		Options{Format: f, Servers: []Server{server(t, "amd64", elf.EM_X86_64)}}), ""
}

// assembler builds the program of hack/assemble, to be killed and run on a full disk.
func assembler(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assemble")
	cmd := exec.Command("go", "build", "-o", path, "../hack/assemble")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// bulky writes a catalog directory whose image has some megabytes.
func bulky(t *testing.T, seed uint64) string {
	t.Helper()
	dir := t.TempDir()
	rng := rand.NewChaCha8([32]byte{byte(seed)})
	for i := range 8 {
		name := fmt.Sprintf("op-%d", i)
		noise := make([]byte, 100<<10)
		_, _ = rng.Read(noise)
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		text := pkg(name) + fmt.Sprintf("---\nschema: noise\npackage: %s\ndata: %x\n", name, noise)
		if err := os.WriteFile(filepath.Join(dir, name, "catalog.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// After a kill at any moment the old or the new image is there, and the next run leaves nothing else.
func TestKilledRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills many programs")
	}
	program := assembler(t)
	one, two := bulky(t, 1), bulky(t, 2)
	parent := t.TempDir()
	dir := filepath.Join(parent, "layout")
	run := func(in string) *exec.Cmd { return exec.Command(program, in, "oci:"+dir+":v1") }
	start := time.Now()
	if out, err := run(one).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	length := time.Since(start)
	read := func() string {
		img, tr := tree(t, "oci:"+dir+":v1", v1.Platform{}, ".")
		_ = tr
		return img.Digest.String()
	}
	old := read()
	kills, finished := 0, 0
	var fresh string
	for i := range 60 {
		cmd := run(two)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(length*time.Duration(i%30+1)/24, func() { _ = cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil {
			kills++
		}
		kill.Stop()
		switch got := read(); {
		case got == old:
		case fresh == "" || got == fresh:
			fresh = got
			finished++
			// Restore the old image, so that the next kill meets a layout with one image again.
			if out, err := run(one).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		default:
			t.Fatalf("run %d left %s", i, got)
		}
	}
	t.Logf("%d killed, %d of them with the new image in place", kills, finished)
	if out, err := run(two).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, d := range []string{parent, dir} {
		entries, err := os.ReadDir(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") {
				t.Errorf("left behind: %s", e.Name())
			}
		}
	}
}

// If the disk becomes full at any point, the old image stays and no other files are left.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	program := assembler(t)
	one, two := bulky(t, 1), bulky(t, 2)
	for _, kind := range []string{"oci:%s/out:v1", "oci-archive:%s/out:v1", "docker-archive:%s/out:localhost/x:v1",
		"dir:%s/out"} {
		failed := 0
		for size := 1000; size <= 4200; size += 400 {
			disk := t.TempDir()
			if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dk", size)); err != nil {
				t.Skipf("mounting: %v", err)
			}
			dest := fmt.Sprintf(kind, disk)
			_, _ = exec.Command(program, one, dest).CombinedOutput()
			before := contents(t, disk)
			out, err := exec.Command(program, two, dest).CombinedOutput()
			if err != nil {
				failed++
				if !strings.Contains(string(out), "no space left") {
					t.Errorf("%s in %d kB: %s", dest, size, out)
				}
				if after := contents(t, disk); after != before {
					t.Errorf("%s in %d kB:\nbefore\n%s\nafter\n%s\n%s", dest, size, before, after, out)
				}
			}
			if err := syscall.Unmount(disk, 0); err != nil {
				t.Fatal(err)
			}
		}
		if failed == 0 {
			t.Errorf("%s: no disk was too small", kind)
		}
	}
}

// contents lists the names and sizes below a directory.
func contents(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := io.Copy(io.Discard, f)
		fmt.Fprintln(&b, strings.TrimPrefix(path, dir), n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
