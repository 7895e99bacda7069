//go:build hostile

package hostile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// registry is a real registry behind a proxy that counts requests and can answer instead of it.
type registry struct {
	t     *testing.T
	addr  string // of the proxy
	real  string
	count atomic.Int32
	// hook is called before each request; it returns true if it has answered.
	hook func(n int, w http.ResponseWriter, r *http.Request) bool
}

func startRegistry(t *testing.T) *registry {
	t.Helper()
	need(t, "docker-registry")
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	r := &registry{t: t, real: l.Addr().String()}
	check(t, l.Close())
	config := filepath.Join(dir, "config.yml")
	check(t,
		os.WriteFile(config,
			[]byte(
				fmt.Sprintf(
					"version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n",
					filepath.Join(dir, "data"), r.real)), 0o644))
	cmd := exec.Command("docker-registry", "serve", config)
	cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the only way to end it
		_ = cmd.Wait()
	})
	for range 500 {
		if c, err := net.Dial("tcp", r.real); err == nil {
			c.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: r.real})
	// the Host header keeps the proxy's name, so that uploads continue here
	proxy.Director = func(q *http.Request) { q.URL.Scheme, q.URL.Host = "http", r.real }
	proxy.ErrorLog = nil
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		n := int(r.count.Add(1))
		if r.hook != nil && r.hook(n, w, q) {
			return
		}
		proxy.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	r.addr = server.Listener.Addr().String()
	return r
}

func (r *registry) get(path string) (int, []byte) {
	r.t.Helper()
	q, err := http.NewRequest(http.MethodGet, "http://"+r.real+path, nil)
	check(r.t, err)
	q.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	res, err := http.DefaultClient.Do(q)
	check(r.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	check(r.t, err)
	return res.StatusCode, body
}

// whole requires that everything a tag names is in the registry. It returns false if there is no such tag.
func (r *registry) whole(label, repository, tag string) bool {
	r.t.Helper()
	status, text := r.get("/v2/" + repository + "/manifests/" + tag)
	if status == http.StatusNotFound {
		return false
	}
	var m struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	if status != 200 || json.Unmarshal(text, &m) != nil || m.Config.Digest == "" {
		r.t.Fatalf("%s: %d %s", label, status, text)
	}
	blobs := []string{m.Config.Digest}
	for _, l := range m.Layers {
		blobs = append(blobs, l.Digest)
	}
	for _, d := range blobs {
		status, blob := r.get("/v2/" + repository + "/blobs/" + d)
		sum := sha256.Sum256(blob)
		if status != 200 || "sha256:"+hex.EncodeToString(sum[:]) != d {
			r.t.Errorf("%s: the tag names blob %s, which is not there (%d)", label, d, status)
		}
	}
	return true
}

func (r *registry) push(b *box, tag string, more ...string) []string {
	return append([]string{"build", "catalog", "cat", "-t", r.addr + "/acme/catalog:" + tag, "--label", "tag=" + tag,
		"--server", "none", "--push", "--use-http", "--log-level", "debug"}, more...)
}

func pushBox(t *testing.T) *box {
	b := newBox(t)
	b.write("cat/foo/catalog.yaml", healthy)
	b.write("cat/bar/catalog.yaml", strings.ReplaceAll(healthy, "foo", "bar"))
	return b
}

// A push that is killed at any of its requests leaves no tag with missing blobs, and the next run uploads what is
// missing.
func TestPushKilledAtRequests(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	b := pushBox(t)
	var victim atomic.Pointer[os.Process]
	at := 0
	r.hook = func(n int, w http.ResponseWriter, q *http.Request) bool {
		if p := victim.Load(); p != nil && n == at {
			_ = p.Signal(syscall.SIGKILL) // this process is the only one that can be meant
			return n%2 == 0               // half of the requests still arrive
		}
		return false
	}
	killed := 0
	for i := 1; i < 40; i++ {
		tag := fmt.Sprintf("v%d", i)
		r.count.Store(0)
		at = i
		cmd := b.command(context.Background(), r.push(b, tag)...)
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
		check(t, cmd.Start())
		victim.Store(cmd.Process)
		err := cmd.Wait()
		victim.Store(nil)
		label := fmt.Sprintf("killed at request %d", i)
		r.whole(label, "acme/catalog", tag)
		b.run(r.push(b, tag)...)
		if !r.whole(label+", next run", "acme/catalog", tag) {
			t.Errorf("%s: the next run has not pushed", label)
		}
		b.noTemp(label)
		if err == nil {
			break
		}
		killed++
	}
	if killed < 4 {
		t.Errorf("killed %d times only", killed)
	}
}

// Permanent errors of a registry end a push within the timeout, with the network class, and the tag does not change.
func TestPushRefused(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	b := pushBox(t)
	b.accepted(r.push(b, "v1")...)
	_, old := r.get("/v2/acme/catalog/manifests/v1")
	lies := map[string]bool{"HTML for everything": true} // the content is wrong, not the connection
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name   string
		method string
		path   string
		answer func(w http.ResponseWriter, q *http.Request)
	}{
		{"500 for the manifest", "PUT", "/manifests/",
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "quota\x1b[31m exceeded", 500) }},
		{"413 for the manifest", "PUT", "/manifests/",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(413) }},
		{"403 with a long text", "PUT", "/manifests/",
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, long, 403) }},
		{"503 for every upload", "POST", "/uploads/",
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }},
		{"429 for ever", "POST", "/uploads/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
		}},
		{"upload elsewhere", "POST", "/uploads/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://169.254.169.254/x")
			w.WriteHeader(500)
		}},
		{"redirect to itself", "GET", "/v2/",
			func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, q.URL.Path, 302) }},
		{"HTML for everything", "", "/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>sign in</html>")
		}},
		{"hung up", "PUT", "/manifests/", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.t = t
			r.hook = func(_ int, w http.ResponseWriter, q *http.Request) bool {
				if (c.method == "" || q.Method == c.method) && strings.Contains(q.URL.Path, c.path) {
					c.answer(w, q)
					return true
				}
				return false
			}
			before := b.snapshot()
			o := b.run(append([]string{"--error-format=json"},
				r.push(b, "v1", "--label", "x="+c.name, "--retries", "1", "--timeout", "20s")...)...)
			if o.status != 1 || o.class != network && !(lies[c.name] && o.class == integrity) || o.stdout != "" {
				t.Errorf("status %d, class %d, stdout %q: %.1000s", o.status, o.class, o.stdout, o.stderr)
			}
			if o.took > 25*time.Second || o.memory > maxMemory || len(o.stderr) > 20_000 ||
				strings.ContainsRune(o.stderr, 0x1b) {
				t.Errorf("took %s, %d MB, %d bytes on standard error", o.took, o.memory>>20, len(o.stderr))
			}
			b.unchanged(c.name, before)
			r.hook = nil
			if _, now := r.get("/v2/acme/catalog/manifests/v1"); !bytes.Equal(now, old) {
				t.Errorf("the tag has changed")
			}
		})
	}
}

// Credentials are sent only to their host and never printed.
func TestCredentials(t *testing.T) {
	t.Parallel()
	r := startRegistry(t)
	b := pushBox(t)
	var other atomic.Int32
	var leaked atomic.Value
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		other.Add(1)
		if h := q.Header.Get("Authorization"); h != "" {
			leaked.Store(h)
		}
		w.WriteHeader(404)
	}))
	t.Cleanup(thief.Close)
	const user, password = "user-canary-4711", "password-canary-4712"
	auth := b.write("auth.json", "")
	raw, err := json.Marshal(
		map[string]any{"auths": map[string]any{r.addr: map[string]string{"auth": "dXNlci1jYW5hcnktNDcxMTpwYXNzd29yZC1jYW5hcnktNDcxMg=="}}})
	check(t, err)
	check(t, os.WriteFile(auth, raw, 0o600))
	told := func(o outcome) {
		t.Helper()
		for _, s := range []string{password, "dXNlci1jYW5hcnk", "cGFzc3dvcmQt"} {
			if strings.Contains(o.stdout+o.stderr, s) {
				t.Errorf("a secret is printed:\n%s", o.stderr)
			}
		}
	}
	seen := false
	r.hook = func(_ int, w http.ResponseWriter, q *http.Request) bool {
		if u, p, ok := q.BasicAuth(); ok {
			seen = seen || u == user && p == password
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(401)
		return true
	}
	told(b.accepted(r.push(b, "v1", "--authfile", auth)...))
	if !seen {
		t.Error("the credentials were not used")
	}
	// A registry without TLS may be impersonated: a token server on another host gets no credentials.
	r.hook = func(_ int, w http.ResponseWriter, q *http.Request) bool {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="x"`, thief.URL+"/token"))
		w.WriteHeader(401)
		return true
	}
	o := b.run(append([]string{"--error-format=json"}, r.push(b, "v3", "--authfile", auth, "--retries", "0")...)...)
	told(o)
	if o.status != 1 || o.class != network {
		t.Errorf("status %d, class %d: %s", o.status, o.class, o.stderr)
	}
	// Blobs on another host.
	tokens := other.Swap(0)
	leaked.Store("")
	r.hook = func(_ int, w http.ResponseWriter, q *http.Request) bool {
		if _, _, ok := q.BasicAuth(); !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(401)
			return true
		}
		if q.Method == http.MethodHead && strings.Contains(q.URL.Path, "/blobs/") {
			http.Redirect(w, q, strings.Replace(thief.URL, "127.0.0.1", "localhost", 1)+"/blob",
				http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	told(b.run(r.push(b, "v2", "--authfile", auth, "--retries", "0")...))
	if h := leaked.Load(); h != "" {
		t.Errorf("a host that the registry redirects to got %q", h)
	}
	if tokens > 0 || other.Load() == 0 {
		t.Errorf("%d requests for tokens and %d for blobs at the other host", tokens, other.Load())
	}
	for _, broken := range []string{`{"auths":`, `{"auths":{"` + r.addr + `":{"auth":"` + password + `"}}}`, "\x00"} {
		check(t, os.WriteFile(auth, []byte(broken), 0o600))
		o := b.run(r.push(b, "v4", "--authfile", auth, "--retries", "0")...)
		if o.status != 1 {
			t.Errorf("authfile %q: status %d", broken, o.status)
		}
		told(o)
	}
}

// layer returns a gzip-compressed tar archive.
func layer(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range entries {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content = healthy
			if h.Uname == "broken" {
				content = "schema: [\n"
			}
			h.Size = int64(len(content))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		check(t, w.WriteHeader(&h))
		_, err := io.WriteString(w, content)
		check(t, err)
	}
	check(t, w.Close())
	check(t, z.Close())
	return b.Bytes()
}

// layout writes an OCI layout of one image, tagged v1.
func (b *box) layout(dir string, label string, layers ...[]byte) {
	b.t.Helper()
	blob := func(content []byte) map[string]any {
		sum := sha256.Sum256(content)
		name := hex.EncodeToString(sum[:])
		b.write(filepath.Join(dir, "blobs/sha256", name), string(content))
		return map[string]any{"digest": "sha256:" + name, "size": len(content)}
	}
	of := func(mediaType string, v any) map[string]any {
		text, ok := v.([]byte)
		if !ok {
			var err error
			text, err = json.Marshal(v)
			check(b.t, err)
		}
		d := blob(text)
		d["mediaType"] = mediaType
		return d
	}
	var descriptors []any
	var diffs []string
	for _, l := range layers {
		descriptors = append(descriptors, of("application/vnd.oci.image.layer.v1.tar+gzip", l))
		z, err := gzip.NewReader(bytes.NewReader(l))
		check(b.t, err)
		h := sha256.New()
		_, err = io.Copy(h, z)
		check(b.t, err)
		diffs = append(diffs, "sha256:"+hex.EncodeToString(h.Sum(nil)))
	}
	config := of("application/vnd.oci.image.config.v1+json", map[string]any{"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Labels": map[string]string{"operators.operatorframework.io.index.configs.v1": label}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs}})
	manifest := of("application/vnd.oci.image.manifest.v1+json",
		map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
			"layers": descriptors})
	manifest["annotations"] = map[string]string{"org.opencontainers.image.ref.name": "v1"}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})
	check(b.t, err)
	b.write(filepath.Join(dir, "index.json"), string(index))
	b.write(filepath.Join(dir, "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`)
}

// Hostile images in OCI layouts are refused by all commands that read them, and write nothing outside.
func TestLayouts(t *testing.T) {
	t.Parallel()
	dir := tar.Header{Name: "configs/", Typeflag: tar.TypeDir, Mode: 0o755}
	file := tar.Header{Name: "configs/foo/catalog.yaml", Typeflag: tar.TypeReg}
	reg := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
	}
	images := func(label string, entries ...tar.Header) func(*testing.T, *box) {
		return func(t *testing.T, b *box) { b.layout("image", label, layer(t, entries...)) }
	}
	good := images("/configs", dir, file)
	after := func(change func(t *testing.T, b *box, index string)) func(*testing.T, *box) {
		return func(t *testing.T, b *box) {
			good(t, b)
			change(t, b, filepath.Join(b.dir, "image", "index.json"))
		}
	}
	eachBlob := func(t *testing.T, b *box, change func(path string)) {
		blobs := filepath.Join(b.dir, "image", "blobs", "sha256")
		for _, n := range names(t, blobs) {
			change(filepath.Join(blobs, n))
		}
	}
	for _, c := range []struct {
		name  string
		make  func(*testing.T, *box)
		class int
		text  string
	}{
		{"good", good, 0, ""},
		{"setuid and capabilities",
			images("/configs", dir, tar.Header{Name: "configs/foo/catalog.yaml", Typeflag: tar.TypeReg, Mode: 0o4755,
				PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x"}}), 0, ""},
		{"dotdot", images("/configs", dir, file, reg("../../canary/w")), input, "leaves the image root|path"},
		{"absolute", images("/configs", dir, file, reg("/canary/w")), input, "absolute"},
		{"link as a parent", images("/configs", link("configs", "/canary"), reg("configs/w")), input, "link"},
		{"link to a secret", images("/configs", dir, file, link("configs/z.json", "../../../home/.docker/config.json")),
			input, "link"},
		{"hard link", images("/configs", dir, file,
			tar.Header{Name: "configs/x", Typeflag: tar.TypeLink, Linkname: "/canary/secret"}), input, "link"},
		{"device", images("/configs", dir, file,
			tar.Header{Name: "configs/x", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}), input, "device"},
		{"FIFO", images("/configs", dir, file, tar.Header{Name: "configs/x", Typeflag: tar.TypeFifo}), input, "FIFO"},
		{"twice", images("/configs", dir, file, file), input, "twice"},
		{"escape sequence", images("/configs", dir, reg("configs/a\n\x1b[31m")), input, "."},
		{"name of 300 bytes", images("/configs", dir, reg("configs/"+strings.Repeat("n", 300))), limit, "255"},
		{"label with dots", images("/../../etc", dir, file), input, "label"},
		{"label that is relative", images("configs", dir, file), input, "label"},
		{"label of the root", images("/", dir, file), input, "label"},
		{"label of nothing", images("/nothing", dir, file), input, "nothing"},
		{"broken catalog", func(t *testing.T, b *box) {
			b.layout("image", "/configs",
				layer(t, dir, file, tar.Header{Name: "configs/z.yaml", Typeflag: tar.TypeReg,
					PAXRecords: map[string]string{"comment": "x"}, Uname: "broken"}))
		}, input, "z.yaml"},
		{"index is a FIFO", after(func(t *testing.T, b *box, index string) {
			check(t, os.Remove(index))
			check(t, syscall.Mkfifo(index, 0o644))
		}), input, "not a regular file"},
		{"index is a link outside", after(func(t *testing.T, b *box, index string) {
			check(t, os.Remove(index))
			check(t, os.Symlink("../../canary/secret", index))
		}), input, "not a regular file"},
		{"index is empty", after(func(t *testing.T, b *box, index string) { check(t, os.Truncate(index, 0)) }), input,
			"index"},
		{"index of 40 bytes", after(func(t *testing.T, b *box, index string) { check(t, os.Truncate(index, 40)) }),
			input, "index"},
		{"index of 1 GiB", after(func(t *testing.T, b *box, index string) { check(t, os.Truncate(index, 1<<30)) }),
			limit, "4194304"},
		{"no index", after(func(t *testing.T, b *box, index string) { check(t, os.Remove(index)) }), 0, "index.json"},
		{"blobs are FIFOs", after(func(t *testing.T, b *box, _ string) {
			eachBlob(t, b, func(path string) {
				check(t, os.Remove(path))
				check(t, syscall.Mkfifo(path, 0o644))
			})
		}), input, "not a regular file"},
		{"blobs are links outside", after(func(t *testing.T, b *box, _ string) {
			eachBlob(t, b, func(path string) {
				check(t, os.Remove(path))
				check(t, os.Symlink("../../../../canary/secret", path))
			})
		}), input, "not a regular file"},
		{"blobs are damaged", after(func(t *testing.T, b *box, _ string) {
			eachBlob(t, b, func(path string) {
				data, err := os.ReadFile(path)
				check(t, err)
				data[len(data)-1] ^= 1
				check(t, os.WriteFile(path, data, 0o644))
			})
		}), integrity, "digest"},
		{"blobs are gone", after(func(t *testing.T, b *box, _ string) {
			eachBlob(t, b, func(path string) { check(t, os.Remove(path)) })
		}), integrity, "its file is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			c.make(t, b)
			for _, args := range [][]string{{"render", "oci:image:v1"}, {"list", "packages", "oci:image:v1"},
				{"migrate", "oci:image:v1", "out"}, {"serve", "oci:image:v1", "--port", "0"}} {
				switch {
				case c.text == "" && args[0] == "serve":
					s := b.serve(args[1:2]...)
					s.answers(5 * time.Second)
					s.stop(20 * time.Second)
				case c.text == "":
					b.accepted(args...)
				case c.class == 0:
					o := b.run(append([]string{"--error-format=json"}, args...)...)
					b.refused(o.class, c.text, args...)
				default:
					b.refused(c.class, c.text, args...)
				}
			}
		})
	}
}
