//go:build hostile

package hostile

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// puller starts a registry with the bundle acme/foo:v1 and the catalog image acme/index:v1.
func puller(t *testing.T) (*testregistry.Registry, string) {
	t.Helper()
	r := testregistry.New(t)
	bundlePicture(t, goodFiles()...).add(t, r, "acme/foo", "v1")
	picture{labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
		layers: []blobOf{gzipLayer(t, tarOf(t, file("configs/foo/catalog.yaml", healthy)))}}.add(t, r, "acme/index",
		"v1")
	return r, r.Host() + "/acme/foo:v1"
}

func pull(ref string, more ...string) []string {
	return append([]string{"render", ref, "--use-http", "--log-level", "debug"}, more...)
}

// Wrong answers, failures and overload of a registry are reported as different errors.
func TestPullRefused(t *testing.T) {
	t.Parallel()
	status := func(code int, header ...string) func(w http.ResponseWriter, q *http.Request) bool {
		return func(w http.ResponseWriter, q *http.Request) bool {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w,
				`{"errors":[{"code":"X","message":"`+"\\u001b[31mred "+strings.Repeat("x", 10_000)+`"}]}`)
			return true
		}
	}
	text := func(kind, body string) func(w http.ResponseWriter, q *http.Request) bool {
		return func(w http.ResponseWriter, q *http.Request) bool {
			w.Header()["Content-Type"] = []string{kind}
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	for _, c := range []struct {
		name   string
		on     string // part of the path
		answer func(w http.ResponseWriter, q *http.Request) bool
		class  int
		text   string
	}{
		{"404", "/manifests/", status(404), network, "404"},
		{"500 for ever", "/manifests/", status(500), network, "500"},
		{"429 for ever", "/blobs/", status(429, "Retry-After", "1"), network, "429"},
		{"429 until 2030", "/blobs/", status(429, "Retry-After", "Fri, 01 Jan 2100 00:00:00 GMT"), network, "429"},
		{"captive portal", "/manifests/", text("text/html", "<html><script>alert(1)</script>"), network,
			"not a registry manifest"},
		{"portal of blobs", "/blobs/", text("text/html", "<html>"), integrity, "."},
		{"not JSON", "/manifests/", text(manifestType, "nonsense\x1b[31m"), input, "not a manifest"},
		{"no content type", "/manifests/", text("", `{"schemaVersion":2,"layers":[]}`), input, "media type"},
		{"index of itself", "/manifests/",
			text("application/vnd.oci.image.index.v1+json",
				`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","size":3,"digest":"sha256:`+strings.Repeat("0", 64)+`","platform":{"os":"linux","architecture":"amd64"}}]}`), integrity, "digest"},
		{"index of another machine", "/manifests/",
			text("application/vnd.oci.image.index.v1+json",
				`{"schemaVersion":2,"manifests":[{"mediaType":"`+manifestType+`","size":3,"digest":"sha256:`+
					strings.Repeat("0", 64)+`","platform":{"os":"\u001b[31mplan9","architecture":"arm64"}}]}`), input,
			"arm64"},
		{"10,000 entries", "/manifests/",
			text("application/vnd.oci.image.index.v1+json",
				`{"schemaVersion":2,"manifests":[`+strings.Repeat(
					`{"mediaType":"x","size":3,"digest":"sha256:`+strings.Repeat("0", 64)+`"},`, 10_000)+`{}]}`), limit,
			"entries"},
		{"manifest without end", "/manifests/", func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Content-Type", manifestType)
			z := zeros(1 << 40)
			_, _ = io.Copy(w, &z)
			return true
		}, limit, "4194304"},
		{"blob without end", "/blobs/", func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Transfer-Encoding", "chunked")
			z := zeros(1 << 40)
			_, _ = io.Copy(w, &z)
			return true
		}, integrity, "."},
		{"other digest in the header", "/manifests/", func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))
			return text(manifestType, `{"schemaVersion":2}`)(w, q)
		}, integrity, "Docker-Content-Digest"},
		{"redirect to itself", "/manifests/", func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, q.URL.Path, http.StatusFound)
			return true
		}, network, "redirects"},
		{"redirect to a file", "/blobs/", func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(307)
			return true
		}, network, "file"},
		{"redirect to the metadata service", "/blobs/", func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Location", "http://169.254.169.254/latest/meta-data")
			w.WriteHeader(307)
			return true
		}, network, "169.254.169.254"},
		{"token service of the metadata service", "/manifests/",
			status(401, "WWW-Authenticate", `Bearer realm="http://169.254.169.254/token",service="x"`), network,
			"realm"},
		{"token service that is a file", "/manifests/",
			status(401, "WWW-Authenticate", `Bearer realm="file:///etc/passwd",service="x"`), network, "realm"},
		{"challenge without end", "/manifests/",
			status(401, "WWW-Authenticate", strings.Repeat(`Bearer realm="x",`, 10_000)), network, "."},
		{"token service that is no URL", "/manifests/",
			status(401, "WWW-Authenticate", "Bearer realm=\"\x01\x1b[31m\""), network, "."},
		{"header without end", "/manifests/", status(200, "X", strings.Repeat("x", 2<<20)), network, "."},
		{"cut for ever", "/blobs/", func(w http.ResponseWriter, q *http.Request) bool {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
			return true
		}, network, "."},
		{"Content-Range of another part", "/blobs/", func(w http.ResponseWriter, q *http.Request) bool {
			if q.Header.Get("Range") == "" {
				w.Header().Set("Content-Length", "100000")
				_, _ = io.WriteString(w, "x")
				return true
			}
			w.Header().Set("Content-Range", "bytes 0-5/6")
			w.WriteHeader(206)
			_, _ = io.WriteString(w, "abcdef")
			return true
		}, 0, "."},
		{"warnings", "/manifests/", status(404, "Warning", "299 - \"\x1b[31mred\""), network, "Warning"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, ref := puller(t)
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				return strings.Contains(q.URL.Path, c.on) && c.answer(w, q)
			})
			b := newBox(t)
			for _, args := range [][]string{pull(ref, "--retries", "1", "--timeout", "4s", "--no-cache"),
				append([]string{"bundle", "unpack", "-o", "out"},
					pull(ref, "--retries", "0", "--timeout", "4s", "--no-cache")[1:]...)} {
				class := c.class
				if class == 0 {
					class = b.run(append([]string{"--error-format=json"}, args...)...).class
				}
				b.refused(class, c.text, args...)
			}
		})
	}
}

// slow answers requests for blobs with half of the content and then blocks.
func slow(started *atomic.Int32) func(w http.ResponseWriter, q *http.Request) bool {
	return func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.Contains(q.URL.Path, "/blobs/") {
			return false
		}
		_, _ = io.WriteString(w, "\x1f\x8b")
		w.(http.Flusher).Flush()
		started.Add(1)
		<-q.Context().Done()
		return true
	}
}

// A pull that is interrupted at any moment leaves nothing.
func TestPullInterrupted(t *testing.T) {
	t.Parallel()
	r, ref := puller(t)
	var started atomic.Int32
	for i, args := range [][]string{pull(ref), pull(ref, ref, ref, r.Host()+"/acme/index:v1"),
		append([]string{"bundle", "unpack", "-o", "out"}, pull(ref)[1:]...),
		append([]string{"bundle", "validate"}, pull(ref)[1:]...), append(pull(ref), "--lock", "lock")} {
		for j, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			b := newBox(t)
			started.Store(0)
			r.Interfere(slow(&started))
			before := b.snapshot()
			cmd := b.command(context.Background(), args...)
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, io.Discard
			check(t, cmd.Start())
			for range 500 {
				if started.Load() > 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
			sent := time.Now()
			check(t, cmd.Process.Signal(s))
			_ = cmd.Wait()
			label := fmt.Sprintf("case %d, signal %d", i, j)
			if took := time.Since(sent); took > 5*time.Second || cmd.ProcessState.ExitCode() != 128+int(s) ||
				out.Len() > 0 {
				t.Errorf("%s: status %d after %s, %q", label, cmd.ProcessState.ExitCode(), took, out.String())
			}
			b.unchanged(label, b.withoutCache(before))
		}
	}
}

// withoutCache removes the blob cache, which a pull may have created, and returns before.
func (b *box) withoutCache(before string) string {
	b.t.Helper()
	check(b.t, os.RemoveAll(filepath.Join(b.home, ".cache")))
	return before
}

// If the cache cannot store a blob, the image is read anyway.
func TestCacheOfBlobs(t *testing.T) {
	_, ref := puller(t)
	plain := newBox(t)
	want := plain.accepted(pull(ref, "--no-cache")...).stdout
	if len(names(t, plain.home)) > 0 {
		t.Errorf("--no-cache made %q", names(t, plain.home))
	}
	full := func(t *testing.T, b *box) string {
		r, _ := puller(t)
		b.accepted(pull(r.Host() + "/acme/foo:v1")...)
		return filepath.Join(b.home, ".cache", "bindery", "blobs")
	}
	each := func(change func(t *testing.T, path string)) func(t *testing.T, b *box) {
		return func(t *testing.T, b *box) {
			err := filepath.WalkDir(full(t, b), func(path string, d os.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					change(t, path)
				}
				return err
			})
			check(t, err)
		}
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T, b *box)
	}{
		{"a file in its place", func(t *testing.T, b *box) {
			check(t, os.WriteFile(filepath.Join(b.home, ".cache"), []byte("x"), 0o600))
		}},
		{"a FIFO in its place",
			func(t *testing.T, b *box) { check(t, syscall.Mkfifo(filepath.Join(b.home, ".cache"), 0o600)) }},
		{"a link in its place",
			func(t *testing.T, b *box) { check(t, os.Symlink("../canary", filepath.Join(b.home, ".cache"))) }},
		{"a link as its last part", func(t *testing.T, b *box) {
			check(t, os.MkdirAll(filepath.Join(b.home, ".cache", "bindery"), 0o755))
			check(t, os.Symlink(b.canary, filepath.Join(b.home, ".cache", "bindery", "blobs")))
		}},
		{"writable by all", func(t *testing.T, b *box) { check(t, os.Chmod(full(t, b), 0o777)) }},
		{"of another user", func(t *testing.T, b *box) {
			needRoot(t)
			check(t, exec.Command("chown", "-R", "12345", full(t, b)).Run())
		}},
		{"entries cut", each(func(t *testing.T, path string) { check(t, os.Truncate(path, 3)) })},
		{"entries empty", each(func(t *testing.T, path string) { check(t, os.Truncate(path, 0)) })},
		{"entries of 1 GiB", each(func(t *testing.T, path string) { check(t, os.Truncate(path, 1<<30)) })},
		{"entries flipped", each(func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			check(t, err)
			if len(data) > 0 {
				data[len(data)/2] ^= 1
				check(t, os.Chmod(path, 0o600))
				check(t, os.WriteFile(path, data, 0o600))
			}
		})},
		{"entries FIFOs", each(func(t *testing.T, path string) {
			check(t, os.Remove(path))
			check(t, syscall.Mkfifo(path, 0o600))
		})},
		{"entries directories", each(func(t *testing.T, path string) {
			check(t, os.Remove(path))
			check(t, os.MkdirAll(path+"/x", 0o755))
		})},
		{"entries links", each(func(t *testing.T, path string) {
			check(t, os.Remove(path))
			check(t, os.Symlink("/dev/zero", path))
		})},
		{"full", func(t *testing.T, b *box) {
			needRoot(t)
			mountTmpfs(t, b.home, "size=4k")
		}},
		{"nearly full", func(t *testing.T, b *box) {
			needRoot(t)
			mountTmpfs(t, b.home, "size=16k,nr_inodes=8")
		}},
		{"read-only home", func(t *testing.T, b *box) {
			needRoot(t)
			mountTmpfs(t, b.home, "size=1m,ro")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			c.make(t, b)
			canary := fingerprint(t, b.canary)
			r, ref := puller(t)
			o := b.accepted(pull(ref)...)
			if got := strings.ReplaceAll(o.stdout, r.Host(), ""); o.status == 0 && got != strings.ReplaceAll(want,
				hostOf(want), "") {
				t.Errorf("the answer is another one: %.300s", got)
			}
			if strings.Contains(o.stderr, "panic") {
				t.Error(o.stderr)
			}
			if c.name != "a link in its place" && fingerprint(t, b.canary) != canary {
				t.Errorf("the canary has changed:%s", difference(canary, fingerprint(t, b.canary)))
			}
		})
	}
}

// hostOf returns the registry in a rendered bundle.
func hostOf(text string) string {
	_, after, _ := strings.Cut(text, `"image": "`)
	host, _, _ := strings.Cut(after, "/")
	return host
}

// If temporary files cannot be created, the error says so; what fits into memory needs none.
func TestPullWithoutRoom(t *testing.T) {
	needRoot(t)
	b := newBox(t)
	r, ref := puller(t)
	big := strings.Repeat(healthy, 1)
	var entries []*tarEntry
	for i := range 60 {
		entries = append(entries, file(fmt.Sprintf("configs/p%d/catalog.yaml", i),
			strings.ReplaceAll(big, "foo", fmt.Sprint("p", i))+"---\nschema: x\nname: "+strings.Repeat("x",
				600_000)+"\n"))
	}
	picture{labels: map[string]string{"operators.operatorframework.io.index.configs.v1": "/configs"},
		layers: []blobOf{gzipLayer(t, tarOf(t, entries...))}}.add(t, r, "acme/big", "v1")
	mountTmpfs(t, b.tmp, "size=64k")
	b.accepted(pull(ref, "--no-cache")...)
	b.refused(local, "no space", pull(r.Host()+"/acme/big:v1", "--no-cache")...)
	b.refused(local, "no space", "migrate", r.Host()+"/acme/big:v1", "out", "--use-http", "--no-cache")
	check(t, syscall.Mount("tmpfs", b.tmp, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	o := b.run(append([]string{"--error-format=json"}, pull(ref, "--no-cache")...)...)
	if o.status != 0 && o.class != local {
		t.Errorf("status %d, class %d: %s", o.status, o.class, o.stderr)
	}
}

// Wrong files named by flags are refused immediately, without printing their content.
func TestFilesOfPulls(t *testing.T) {
	_, ref := puller(t)
	for _, c := range []struct {
		name string
		make func(b *box, path string)
	}{
		{"directory", func(b *box, path string) { check(b.t, os.Mkdir(path, 0o755)) }},
		{"1 GiB", func(b *box, path string) { check(b.t, os.Truncate(b.write(filepath.Base(path), ""), 1<<30)) }},
		{"zeros", func(b *box, path string) { check(b.t, os.Symlink("/dev/zero", path)) }},
		{"secret", func(b *box, path string) { b.write(filepath.Base(path), secret) }},
		{"JSON of something else", func(b *box, path string) { b.write(filepath.Base(path), `["`+secret+`"]`) }},
		{"half", func(b *box, path string) { b.write(filepath.Base(path), `{"auths":{"x":{"auth":"`+secret) }},
		{"deep", func(b *box, path string) { b.write(filepath.Base(path), strings.Repeat("[", 1_000_000)) }},
		{"link to nothing", func(b *box, path string) { check(b.t, os.Symlink("nowhere", path)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			for _, flag := range []string{"authfile", "lock", "policy", "registries-conf", "ca-file", "cert-dir"} {
				path := filepath.Join(b.dir, flag)
				c.make(b, path)
				args := append([]string{"--error-format=json"}, pull(ref, "--"+flag, path, "--no-cache")...)
				before := b.snapshot()
				o := b.run(args...)
				b.inBudget(flag, o)
				if strings.Contains(o.stderr+o.stdout, secret) {
					t.Errorf("--%s: shows what is in the file: %s", flag, o.stderr)
				}
				if o.status == 0 && flag != "cert-dir" && !(flag == "registries-conf" && strings.HasPrefix(c.name,
					"JSON")) && !(flag == "authfile" || flag == "ca-file" && c.name == "link to nothing") {
					t.Errorf("--%s: accepted", flag)
				}
				if o.status != 0 && (o.stdout != "" || o.class == network || o.class == 0) {
					t.Errorf("--%s: class %d: %s", flag, o.class, o.stderr)
				}
				b.unchanged("--"+flag, before)
				check(t, os.RemoveAll(path))
			}
		})
	}
}

// Secrets are in no output, whatever goes wrong.
func TestSecretsOfPulls(t *testing.T) {
	t.Parallel()
	const user, password = "user-canary-4711", "password-canary-4712"
	r, _ := puller(t)
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	var thief atomic.Value
	thief.Store("")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if h := q.Header.Get("Authorization"); h != "" {
			thief.Store(h)
		}
		w.WriteHeader(404)
	}))
	t.Cleanup(other.Close)
	plain := func(w http.ResponseWriter, q *http.Request) bool {
		if _, p, ok := q.BasicAuth(); ok && p == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(401)
		return true
	}
	authorized := func(then func(w http.ResponseWriter, q *http.Request) bool) func(w http.ResponseWriter,
		q *http.Request) bool {
		return func(w http.ResponseWriter, q *http.Request) bool { return plain(w, q) || then(w, q) }
	}
	bearer := func(realm string) func(w http.ResponseWriter, q *http.Request) bool {
		return func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="x"`, realm))
			w.WriteHeader(401)
			return true
		}
	}
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, q *http.Request) bool
		status int
		env    []string
	}{
		{"accepted", plain, 0, nil},
		{"refused", func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(401)
			fmt.Fprintf(w,
				`{"errors":[{"code":"UNAUTHORIZED","message":"Authorization: %s, password=%s, https://%s:%s@x/"}]}`,
				q.Header.Get("Authorization"), password, user, password)
			return true
		}, 1, nil},
		{"echo", authorized(func(w http.ResponseWriter, q *http.Request) bool {
			w.WriteHeader(500)
			fmt.Fprintf(w, `{"errors":[{"code":"%s","message":"%s"}]}`, q.Header.Get("Authorization"),
				q.Header.Get("Authorization"))
			return true
		}), 1, nil},
		{"echo in a warning", authorized(func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Warning", q.Header.Get("Authorization"))
			return false
		}), 0, nil},
		{"echo in a redirect", authorized(func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, "http://"+user+":"+password+"@127.0.0.1:1/x?token="+password, 307)
			return true
		}), 1, nil},
		{"echo in the media type", authorized(func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Content-Type", q.Header.Get("Authorization"))
			_, _ = io.WriteString(w, "{}")
			return true
		}), 1, nil},
		{"echo in Docker-Content-Digest", authorized(func(w http.ResponseWriter, q *http.Request) bool {
			w.Header().Set("Docker-Content-Digest", q.Header.Get("Authorization"))
			w.Header().Set("Content-Type", manifestType)
			_, _ = io.WriteString(w, "{}")
			return true
		}), 1, nil},
		{"redirect to another port", authorized(func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, other.URL+q.URL.Path, 307)
			return true
		}), 1, nil},
		{"redirect to another name", authorized(func(w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+q.URL.Path, 307)
			return true
		}), 1, nil},
		{"token service elsewhere", bearer(other.URL + "/token"), 1, nil},
		{"token service with a password", bearer("http://" + user + ":" + password + "@" + r.Host() + "/token"), 1,
			nil},
		{"proxy with a password", plain, 1, []string{"HTTP_PROXY=http://" + user + ":" + password + "@127.0.0.1:1",
			"HTTPS_PROXY=http://" + user + ":" + password + "@127.0.0.1:1"}},
		{"proxy that is no URL", plain, 1, []string{"HTTP_PROXY=http://" + user + ":" + password + "@127.0.0.1:port",
			"HTTPS_PROXY=http://" + user + ":" + password + "@127.0.0.1:port"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			host := r.Host()
			if c.env != nil { // Go uses no proxy for addresses of this machine
				host = "registry.example.com"
			}
			authfile := b.write("auth.json", fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, auth))
			b.env = append(b.env, c.env...)
			r.Interfere(c.answer)
			for _, args := range [][]string{pull(host + "/acme/foo:v1"),
				append(pull(host+"/acme/foo:v1"), "-o", "ndjson", host+"/acme/index:v1", host+"/acme/none:v1"),
				append([]string{"bundle", "validate"}, pull(host + "/acme/foo:v1")[1:]...),
				append([]string{"list", "packages"}, pull(host + "/acme/index:v1")[1:]...)} {
				o := b.run(append(args, "--authfile", authfile, "--retries", "1", "--no-cache", "--timeout", "4s")...)
				if (o.status == 0) != (c.status == 0) && !strings.Contains(strings.Join(args, " "), "none") {
					t.Errorf("%q: status %d: %s", args, o.status, o.stderr)
				}
				for _, s := range []string{password, auth, auth[:20], "cGFzc3dvcmQt"} {
					if strings.Contains(o.stdout+o.stderr, s) {
						t.Errorf("%q: a secret is printed:\n%s", args, o.stderr)
					}
				}
			}
			if h := thief.Swap(""); h != "" {
				t.Errorf("another host got %q", h)
			}
			b.noTemp(c.name)
		})
	}
}

// An image name with credentials is refused, and the credentials are not printed.
func TestCredentialsInNames(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, ref := range []string{"docker://user:" + secret + "@127.0.0.1:1/x:v1",
		"user:" + secret + "@127.0.0.1:1/x:v1", "https://user:" + secret + "@127.0.0.1:1/x"} {
		b.write("template.yaml", "schema: olm.template.basic\nentries: [{schema: olm.bundle, image: \""+ref+"\"}]\n")
		for _, args := range [][]string{{"render", ref}, {"render", ref, ref}, {"list", "images", ref}, {"graph", ref},
			{"migrate", ref, "out"}, {"serve", ref},
			{"bundle", "validate", ref}, {"bundle", "unpack", ref, "-o", "out"},
			{"template", "render", "template.yaml"}, {"alpha", "render-graph", ref}} {
			before := b.snapshot()
			o := b.run(append([]string{"--log-level", "debug"}, args...)...)
			inJSON := b.run(append([]string{"--error-format=json"}, args...)...)
			if o.status == 0 || strings.Contains(o.stdout+o.stderr+inJSON.stderr, secret) {
				t.Errorf("%q: status %d: %s%s", args, o.status, o.stderr, inJSON.stderr)
			}
			b.unchanged(fmt.Sprint(args), before)
		}
	}
}

// A registry with an unknown certificate is not contacted without TLS, and one without TLS is not contacted at all.
func TestPullVerifies(t *testing.T) {
	t.Parallel()
	r := testregistry.NewTLS(t)
	bundlePicture(t, goodFiles()...).add(t, r, "acme/foo", "v1")
	b := newBox(t)
	ref := r.Host() + "/acme/foo:v1"
	b.refused(network, "certificate", "render", ref, "--retries", "0")
	b.refused(network, "certificate", "render", ref, "--retries", "0", "--use-http=false")
	b.accepted("render", ref, "--ca-file", r.CAFile(t), "--no-cache")
	b.accepted("render", ref, "--tls-verify=false", "--no-cache")
	old := httptest.NewUnstartedServer(r)
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	t.Cleanup(old.Close)
	b.refused(network, "version|protocol|tls", "render", old.Listener.Addr().String()+"/acme/foo:v1", "--retries", "0",
		"--tls-verify=false")
	// This one speaks no TLS: it must receive no request.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	var got atomic.Value
	got.Store("")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 100)
			n, _ := c.Read(buf)
			got.Store(got.Load().(string) + string(buf[:n]))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close() })
	for _, more := range [][]string{nil, {"--tls-verify=false"}, {"--skip-tls-verify"}} {
		b.refused(network, ".",
			append([]string{"render", l.Addr().String() + "/acme/foo:v1", "--retries", "0"}, more...)...)
	}
	if strings.Contains(got.Load().(string), "GET ") {
		t.Errorf("asked without TLS: %q", got.Load())
	}
}

// One bad reference among many good ones: there is no output, and the error names the bad one.
func TestManyReferences(t *testing.T) {
	t.Parallel()
	r, ref := puller(t)
	b := newBox(t)
	refs := []string{"--use-http", "--retries", "0"}
	for range 60 {
		refs = append(refs, ref)
	}
	for _, bad := range []string{r.Host() + "/acme/none:v1", "nowhere", "a\x1b[31mb", "a\nb\x00c"[:3],
		r.Host() + "/acme/foo:\u202ev1", "oci:nowhere", strings.Repeat("a/", 5000), "docker://", "oci:", "dir:",
		"oci-archive:", "docker-archive:", "-", " ", ""} {
		before := b.snapshot()
		o := b.run(append(append([]string{"--error-format=json", "render"}, refs...), "--", bad)...)
		b.withoutCache("")
		if o.status != 1 || o.stdout != "" || o.class == 0 || strings.ContainsAny(o.stderr, "\x1b\x00\u202e") {
			t.Errorf("%.100q: status %d, class %d: %.600q", bad, o.status, o.class, o.stderr)
		}
		if len(o.message) > 2000 {
			t.Errorf("%.100q: a message of %d bytes: %.300q", bad, len(o.message), o.message)
		}
		b.unchanged(fmt.Sprintf("%.100q", bad), before)
	}
	many := []string{"render", "--use-http", "--retries", "0", "--timeout", "20s"}
	for i := range 10_000 {
		many = append(many, fmt.Sprintf("%s/acme/none:v%d", r.Host(), i))
	}
	o := b.refused(network, "404", many...)
	if len(o.message) > 20_000 {
		t.Errorf("10,000 bad references: %d bytes of message", len(o.message))
	}
	many = many[:6]
	for range 10_000 {
		many = append(many, ref)
	}
	if o := b.run(many...); o.status != 0 || o.memory > maxMemory {
		t.Errorf("10,000 references: status %d, %d MB", o.status, o.memory>>20)
	}
}

// Files that are not images are refused immediately by every transport.
func TestArchives(t *testing.T) {
	t.Parallel()
	many := make([]*tarEntry, 0, 300_000)
	for i := range cap(many) {
		many = append(many, file(fmt.Sprint("f", i), ""))
	}
	archive := func(entries ...*tarEntry) func(b *box, path string) {
		return func(b *box, path string) { b.write(path, string(tarOf(t, entries...))) }
	}
	link := func(name, to string) *tarEntry {
		return entryOf(tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to})
	}
	layout := file("oci-layout", `{"imageLayoutVersion":"1.0.0"}`)
	for name, prepare := range map[string]func(b *box, path string){
		"FIFO":   func(b *box, path string) { check(t, syscall.Mkfifo(filepath.Join(b.dir, path), 0o600)) },
		"device": func(b *box, path string) { check(t, os.Symlink("/dev/zero", filepath.Join(b.dir, path))) },
		"secret": func(b *box, path string) {
			check(t, os.Symlink(filepath.Join(b.canary, "secret"), filepath.Join(b.dir, path)))
		},
		"20 GiB":    func(b *box, path string) { check(t, os.Truncate(b.write(path, ""), 20<<30)) },
		"empty":     func(b *box, path string) { b.write(path, "") },
		"directory": func(b *box, path string) { check(t, os.Mkdir(filepath.Join(b.dir, path), 0o755)) },
		"nothing":   func(b *box, path string) {},
		"entries":   archive(many...),
		"dots":      archive(file("../../canary/x", "x"), file("manifest.json", "[]"), layout, file("index.json", "{}")),
		"links":     archive(link("manifest.json", "/etc/passwd"), link("index.json", "/etc/passwd"), layout),
		"paths": archive(file("manifest.json",
			`[{"Config":"../../canary/secret","RepoTags":["x:1"],"Layers":["/etc/passwd"]}]`), layout,
			file("index.json",
				`{"schemaVersion":2,"manifests":[{"digest":"sha256:../../../canary/secret","size":3}]}`)),
		"manifest of 6 MiB": archive(file("manifest.json", strings.Repeat(" ", 6<<20)), layout,
			file("index.json", strings.Repeat(" ", 6<<20))),
		"deep": archive(file("manifest.json", strings.Repeat("[", 1_000_000)), layout,
			file("index.json", strings.Repeat("[", 1_000_000))),
		"100,000 images": archive(file("manifest.json",
			"["+strings.Repeat(`{"Config":"c","Layers":["l"]},`, 100_000)+"{}]"), layout,
			file("index.json", `{"schemaVersion":2,"manifests":[`+strings.Repeat(`{},`, 100_000)+`{}]}`)),
		"schema version 1": archive(file("manifest.json", `{"schemaVersion":1}`), layout,
			file("index.json", `{"schemaVersion":1,"manifests":[]}`)),
		"bomb": func(b *box, path string) {
			b.write(path, string(gzipped(t, bytes.Repeat([]byte{0}, 300<<20))))
		},
		"cut": func(b *box, path string) {
			b.write(path, string(tarOf(t, layout, file("manifest.json", strings.Repeat(" ", 5000)))[:3000]))
		},
	} {
		b := newBox(t)
		prepare(b, "file")
		for _, transport := range []string{"docker-archive:", "oci-archive:", "dir:", "oci:"} {
			for _, args := range [][]string{{"render", transport + "file"},
				{"bundle", "unpack", transport + "file:v1", "-o", "out"}} {
				before := b.snapshot()
				o := b.run(append([]string{"--error-format=json"}, args...)...)
				b.inBudget(name, o)
				if o.status != 1 || o.stdout != "" || o.class < input || strings.Contains(o.stderr, secret) ||
					strings.Contains(o.stderr, "root:") {
					t.Errorf("%s: %q: status %d, class %d: %.500s", name, args, o.status, o.class, o.stderr)
				}
				b.unchanged(name, before)
			}
		}
	}
}
