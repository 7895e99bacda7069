//go:build hostile

package hostile

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Whatever a registry answers to a push, the result is a complete image or one clear error within the timeout, and no
// secret is printed.
func TestRegistriesThatLieToPushes(t *testing.T) {
	t.Parallel()
	const password = "password-canary-4712"
	long := strings.Repeat("\x1b[31m"+password+" ", 200_000)
	at := func(method, path string, answer http.HandlerFunc) func(w http.ResponseWriter, q *http.Request) bool {
		return func(w http.ResponseWriter, q *http.Request) bool {
			if q.Method != method || !strings.Contains(q.URL.Path, path) {
				return false
			}
			_, _ = io.Copy(io.Discard, q.Body)
			answer(w, q)
			return true
		}
	}
	location := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if to != "" {
				w.Header().Set("Location", to)
			}
			w.WriteHeader(202)
		}
	}
	status := func(code int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	whole := at("PUT", "/uploads/", status(400, "")) // uploads in one request are refused
	drip := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) {
			w.WriteHeader(code)
			for q.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
	for _, c := range []struct {
		name  string
		hook  func(w http.ResponseWriter, q *http.Request) bool
		class int
		text  string
	}{
		{"202 without Location", at("POST", "/uploads/", location("")), network, "Location"},
		{"Location with credentials elsewhere",
			at("POST", "/uploads/", location("http://u:"+password+"@localhost:1/x?token="+password)), network, "."},
		{"Location of a file", at("POST", "/uploads/", location("file:///etc/passwd")), network, "invalid Location"},
		{"Location at the metadata service", at("POST", "/uploads/", location("http://169.254.169.254/x")), network,
			"private|refusing"},
		{"Location with control characters", at("POST", "/uploads/", location("http://h\x1b[31m/")), network, "."},
		{"Location of 200 KB", at("POST", "/uploads/", location("/v2/x/"+strings.Repeat("a", 200_000))), network, "."},
		{"redirects without end",
			at("POST", "/uploads/", func(w http.ResponseWriter, q *http.Request) {
				http.Redirect(w, q, q.URL.String(), 307)
			}), network, "redirects"},
		{"redirects of bodies without end",
			at("PUT", "/uploads/", func(w http.ResponseWriter, q *http.Request) {
				http.Redirect(w, q, q.URL.String(), 307)
			}), network, "redirect"},
		{"another digest stored", at("PUT", "/uploads/",
			status(201, "", "Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))), integrity, "stored"},
		{"another manifest stored", at("PUT", "/manifests/",
			status(201, "", "Docker-Content-Digest", "sha256:"+strings.Repeat("0", 64))), integrity, "stored"},
		{"everything accepted", func(w http.ResponseWriter, q *http.Request) bool {
			_, _ = io.Copy(io.Discard, q.Body)
			switch q.Method {
			case "POST":
				location("/v2/acme/catalog/blobs/uploads/x")(w, q)
			case "PUT", "PATCH":
				w.WriteHeader(201)
			case "HEAD":
				w.WriteHeader(404)
			default:
				return false
			}
			return true
		}, network, "reading back"},
		{"everything there", func(w http.ResponseWriter, q *http.Request) bool {
			if q.Method == "HEAD" {
				w.WriteHeader(200)
				return true
			}
			return false
		}, 0, ""},
		{"416 for ever", func(w http.ResponseWriter, q *http.Request) bool {
			return whole(w, q) || at("PATCH", "/uploads/", status(416, "", "Range", "0-5"))(w, q)
		}, network, "416"},
		{"range beyond", func(w http.ResponseWriter, q *http.Request) bool {
			return whole(w, q) || at("PATCH", "/uploads/", status(416, ""))(w, q) ||
				at("GET", "/uploads/", status(204, "", "Range", "0-9223372036854775806"))(w, q)
		}, network, "416"},
		{"range goes back", func(w http.ResponseWriter, q *http.Request) bool {
			return whole(w, q) || at("PATCH", "/uploads/", status(503, ""))(w, q) ||
				at("GET", "/uploads/", status(204, "", "Range", "0--1"))(w, q)
		}, network, "503"},
		{"error of 5 MB", at("POST", "/uploads/", status(500, long)), network, "500"},
		{"error with escapes",
			at("POST", "/uploads/",
				status(400,
					`{"errors":[{"code":"X\u001b[31m","message":"\u001b[31m Authorization: Bearer `+password+
						` http://u:`+password+`@h/x"}]}`)), network, "400"},
		{"manifest 404", at("PUT", "/manifests/", status(404, "")), network, "404"},
		{"manifest 413", at("PUT", "/manifests/", status(413, "")), network, "413"},
		{"manifest 429", at("PUT", "/manifests/", status(429, "", "Retry-After", "-5")), network, "429"},
		{"manifest 429, wait a century", at("PUT", "/manifests/", status(429, "", "Retry-After", "3155760000")),
			network, "429|time|deadline"},
		{"blobs never there", at("PUT", "/manifests/", status(400, `{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN"}]}`)),
			network, "BLOB_UNKNOWN"},
		{"drips of an error", at("POST", "/uploads/", drip(500)), network, "time|deadline"},
		{"drips of a success", at("PUT", "/uploads/", drip(201)), 0, ""},
		{"401 for ever", func(w http.ResponseWriter, q *http.Request) bool {
			status(401, "", "WWW-Authenticate", `Basic realm="x"`)(w, q)
			return true
		}, network, "401|unauthorized|authentic"},
		{"tokens that are refused", func(w http.ResponseWriter, q *http.Request) bool {
			if q.URL.Path == "/token" {
				status(200, `{"token":"`+password+`"}`)(w, q)
				return true
			}
			status(401, "", "WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, q.Host))(w, q)
			return true
		}, network, "401|unauthorized|authentic"},
		{"token of 900 KB", func(w http.ResponseWriter, q *http.Request) bool {
			if q.URL.Path == "/token" {
				status(200, `{"token":"`+strings.Repeat("A", 900_000)+`"}`)(w, q)
				return true
			}
			status(401, "", "WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, q.Host))(w, q)
			return true
		}, network, "."},
		{"token of 3 MB", func(w http.ResponseWriter, q *http.Request) bool {
			if q.URL.Path == "/token" {
				status(200, `{"token":"`+strings.Repeat("A", 3<<20)+`"}`)(w, q)
				return true
			}
			status(401, "", "WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="x"`, q.Host))(w, q)
			return true
		}, network, "token"},
		{"realm with credentials", func(w http.ResponseWriter, q *http.Request) bool {
			status(401, "", "WWW-Authenticate",
				`Bearer realm="ftp://u:`+password+`@h/token?x=`+password+`",service="x"`)(w, q)
			return true
		}, network, "realm"},
		{"warnings", func(w http.ResponseWriter, q *http.Request) bool {
			for range 500 {
				w.Header().Add("Warning", `299 - "`+strings.Repeat("x", 200)+`"`)
			}
			return false
		}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := testregistry.New(t)
			b := pushBox(t)
			r.Interfere(c.hook)
			auth := b.write("auth.json", fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, r.Host(),
				base64.StdEncoding.EncodeToString([]byte("user:"+password))))
			args := []string{"build", "catalog", "cat", "-t", r.Host() + "/acme/catalog:v1", "--server", "none",
				"--cache", "none", "--push", "--use-http", "--no-cache", "--retries", "1", "--timeout", "4s",
				"--authfile", auth}
			var o outcome
			if c.class == 0 {
				o = b.accepted(args...)
				if whole := fmt.Sprint(r.Manifest("acme/catalog", "v1")); len(whole) < 100 ||
					r.Count("PUT /v2/acme/catalog/blobs/") != 3 {
					t.Errorf("%d blobs were sent: %s", r.Count("PUT /v2/acme/catalog/blobs/"), whole)
				}
			} else {
				o = b.refused(c.class, c.text, args...)
				if r.Manifest("acme/catalog", "v1") != nil {
					t.Error("the tag is there")
				}
			}
			for _, s := range []string{password, base64.StdEncoding.EncodeToString([]byte("user:" + password))[:20]} {
				if strings.Contains(o.stderr+o.stdout, s) {
					t.Errorf("a secret is printed: %.1000s", o.stderr)
				}
			}
		})
	}
}

// A server that a registry redirects uploads to receives no credentials.
func TestUploadsElsewhere(t *testing.T) {
	t.Parallel()
	var seen atomic.Int32
	var leaked atomic.Value
	leaked.Store("")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		seen.Add(1)
		if h := q.Header.Get("Authorization") + q.Header.Get("Cookie"); h != "" {
			leaked.Store(h)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(401)
	}))
	t.Cleanup(other.Close)
	r := testregistry.New(t)
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if _, _, ok := q.BasicAuth(); !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(401)
			return true
		}
		if q.Method == "POST" {
			w.Header().Set("Location", strings.Replace(other.URL, "://", "://u:p@", 1)+"/upload")
			w.WriteHeader(202)
			return true
		}
		return false
	})
	b := pushBox(t)
	auth := b.write("auth.json",
		fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, r.Host(), base64.StdEncoding.EncodeToString([]byte("user:"+secret))))
	b.refused(network, "401|authentic|unauthorized", "build", "catalog", "cat", "-t", r.Host()+"/acme/catalog:v1",
		"--server", "none", "--push", "--use-http", "--no-cache", "--retries", "0", "--authfile", auth)
	if h := leaked.Load(); h != "" || seen.Load() == 0 {
		t.Errorf("%d requests at the other server, with %q", seen.Load(), h)
	}
}

// A tag that moves during a build is not overwritten, and the mount of a different blob does not count as an upload.
func TestTagsThatMoveDuringPushes(t *testing.T) {
	t.Parallel()
	other := []byte(`{"schemaVersion":2,"mediaType":"` + manifestType + `","config":{"mediaType":"` + configType +
		`","digest":"sha256:` + strings.Repeat("1", 64) + `","size":2},"layers":[]}`)
	args := func(r *testregistry.Registry, more ...string) []string {
		return append([]string{"build", "catalog", "cat", "-t", r.Host() + "/acme/catalog:v1", "--server", "none",
			"--cache", "none", "--push", "--use-http", "--no-cache"}, more...)
	}
	for _, c := range []struct{ name, expect, method string }{
		{"a tag that comes", "none", "POST"},
		{"a tag that goes elsewhere", "", "HEAD"},
		{"a tag that goes elsewhere at the end", "", "PUT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := testregistry.New(t)
			b := pushBox(t)
			expect := c.expect
			if expect == "" {
				expect = r.AddManifest("acme/catalog", "v1", manifestType,
					[]byte(strings.ReplaceAll(string(other), "1111", "2222"))).String()
			}
			var once atomic.Bool
			r.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
				if q.Method == c.method && once.CompareAndSwap(false, true) {
					r.AddManifest("acme/catalog", "v1", manifestType, other)
				}
				return false
			})
			b.refused(conflict, "stands for", args(r, "--if-digest", expect)...)
			if string(r.Manifest("acme/catalog", "v1")) != string(other) {
				t.Error("the other image was written over")
			}
		})
	}
	for name, answer := range map[string]func(w http.ResponseWriter){
		"a mount of another blob": func(w http.ResponseWriter) {
			w.Header().Set("Docker-Content-Digest", "sha256:"+strings.Repeat("3", 64))
			w.WriteHeader(201)
		},
		"a mount that is none": func(w http.ResponseWriter) { w.WriteHeader(201) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testregistry.New(t)
			r.Separate(true)
			b := pushBox(t)
			b.accepted("build", "catalog", "cat", "-t", r.Host()+"/acme/before:v1", "--server", "none", "--cache",
				"none", "--push", "--use-http", "--no-cache")
			r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
				if q.URL.Query().Has("mount") {
					answer(w)
					return true
				}
				return false
			})
			o := b.accepted(args(r, "--previous", r.Host()+"/acme/before:v1")...)
			if r.Manifest("acme/catalog", "v1") == nil || r.Count("POST ") < 4 {
				t.Errorf("%q: %s", r.Requests(), o.stderr)
			}
		})
	}
}
