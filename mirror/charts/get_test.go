package charts_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/webclient"
	"github.com/operator-bindery/bindery/mirror/charts"
)

// repository is a server of files that notes what it is asked for.
type repository struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string]string
	asked []string
}

func newRepository(t testing.TB, files map[string]string) *repository {
	t.Helper()
	r := &repository{files: files}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		user, _, _ := q.BasicAuth()
		r.asked = append(r.asked, strings.TrimSuffix(q.URL.RequestURI()+" "+user, " "))
		text, ok := r.files[q.URL.Path]
		if !ok {
			http.NotFound(w, q)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(r.Close)
	return r
}

// kept are files that are kept, as in a working directory.
type kept struct {
	mu    sync.Mutex
	files fstest.MapFS
}

func (k *kept) save(name string, text []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.files[name] = &fstest.MapFile{Data: text, Mode: 0o644}
	return nil
}

func (k *kept) names() (out []string) {
	for name := range k.files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func getter(t testing.TB, k *kept) *charts.Getter {
	t.Helper()
	client, err := webclient.NewClient(t.Context(), webclient.Options{Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if k.files == nil {
		k.files = fstest.MapFS{}
	}
	return &charts.Getter{Client: client, Save: k.save, Stored: k.files}
}

// get gets a chart.
func get(ctx context.Context, g *charts.Getter, url, name string, of charts.Rule) (*charts.Archive, error) {
	w, err := g.Find(ctx, url, name, of)
	if err != nil {
		return nil, err
	}
	return g.Get(ctx, w)
}

// A URL may end in a slash or in index.yaml; what was got is enough for the other side, which asks no server.
func TestRepositoriesAndTheOtherSide(t *testing.T) {
	r := newRepository(t, map[string]string{"/c/index.yaml": index, "/c/web-v1.1.0.tgz": "new", "/c/x.tgz": "patch", "/c/db.tgz": "db",
		"/c/web-2.0.0-rc.1.tgz": "rc", "/c/web-1.0.0.tgz": "other than the digest says"})
	for _, end := range []string{"/c", "/c/", "/c/index.yaml"} {
		k := &kept{}
		g := getter(t, k)
		at := r.URL + end
		for text, want := range map[string]string{"": "new", "~1.0": "patch", ">0-0": "rc"} {
			if a, err := get(t.Context(), g, at, "web", rule(t, text)); err != nil || string(a.Data) != want {
				t.Errorf("%s %q: %v", end, text, err)
			}
		}
		if _, err := get(t.Context(), g, at, "web", rule(t, "1.0.0")); !errors.Is(err, fault.ErrIntegrity) {
			t.Errorf("%s: another digest: %v", end, err)
		}
		if err := g.Finish(k.files); err != nil {
			t.Fatal(err)
		}
		want := []string{"helm/charts/web-1.0.5+b1.tgz", "helm/charts/web-1.1.0.tgz", "helm/charts/web-2.0.0-rc.1.tgz", "helm/resolved.json"}
		if got := k.names(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", end, got)
		}
		other := &charts.Getter{Stored: k.files}
		for text, want := range map[string]string{"": "new", "~1.0": "patch", "v1.1.0": "new", "1.1.0": "new"} {
			if a, err := get(t.Context(), other, r.URL+"/c/", "web", rule(t, text)); err != nil || string(a.Data) != want {
				t.Errorf("%s: the other side: %q: %v", end, text, err)
			}
		}
		if _, err := get(t.Context(), other, r.URL+"/c", "db", rule(t, "")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the other side: a chart that is not there: %v", end, err)
		}
		k.files["helm/charts/web-1.1.0.tgz"].Data = []byte("changed")
		if _, err := get(t.Context(), other, r.URL+"/c", "web", rule(t, "")); !errors.Is(err, fault.ErrIntegrity) {
			t.Errorf("%s: the other side: a changed archive: %v", end, err)
		}
	}
}

// All versions of all charts but libraries are wanted of a repository without a list, on the other side too.
func TestWholeRepositories(t *testing.T) {
	r := newRepository(t, map[string]string{"/index.yaml": index, "/web-v1.1.0.tgz": "new"})
	k := &kept{}
	g := getter(t, k)
	list, _, err := g.All(t.Context(), r.URL)
	if err != nil || len(list) != 5 {
		t.Fatalf("%d, %v", len(list), err)
	}
	if a, err := g.Get(t.Context(), list[2]); err != nil || string(a.Data) != "new" {
		t.Errorf("%v", err)
	}
	if _, err := g.Get(t.Context(), list[0]); err == nil || !strings.Contains(err.Error(), "/db.tgz answers with status 404") {
		t.Errorf("%v", err)
	}
	if err := g.Finish(k.files); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(strings.Join(r.asked, "\n"), "/index.yaml"); n != 1 {
		t.Errorf("the index was read %d times", n)
	}
	host := strings.TrimPrefix(r.URL, "http://")
	if got := k.names(); !slices.Contains(got, "helm/indexes/"+host+"/index.yaml") {
		t.Errorf("%q", got)
	}
	other := &charts.Getter{Stored: k.files}
	if list, _, err := other.All(t.Context(), r.URL+"/"); err != nil || len(list) != 5 {
		t.Errorf("the other side: %d, %v", len(list), err)
	}
	if list, _, err := other.All(t.Context(), r.URL); err != nil {
		t.Error(err)
	} else {
		for n, w := range list { // web 1.1.0 alone was got
			if a, err := other.Get(t.Context(), w); (err == nil) != (n == 2) || n != 2 && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s %s: %v, %v", w.Name, w.Version(), a, err)
			}
		}
	}
	for _, at := range []string{"/a%ffb", "/a%0ab", "/..%5c..", "/../../../x", "/%2e%2e/%2e%2e/x"} {
		r.files = map[string]string{"/a\xffb/index.yaml": index, "/a\nb/index.yaml": index, "/..\\../index.yaml": index, "/../../../x/index.yaml": index,
			"/../../x/index.yaml": index}
		k := &kept{}
		if _, _, err := getter(t, k).All(t.Context(), r.URL+at); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		for _, name := range k.names() {
			if !fs.ValidPath(name) || !strings.HasPrefix(name, "helm/indexes/"+host+"/") || strings.ContainsAny(name, "\n\\") {
				t.Errorf("%s is kept as %q", at, name)
			}
		}
	}
	if _, _, err := other.All(t.Context(), "http://elsewhere.example.com"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// An archive that was kept is not fetched again if it has the digest of the index.
func TestKeptArchives(t *testing.T) {
	text := strings.Replace(index, "[web-v1.1.0.tgz]", "[web-v1.1.0.tgz], digest: "+digest.FromString("new").Encoded(), 1)
	r := newRepository(t, map[string]string{"/index.yaml": text, "/web-v1.1.0.tgz": "new"})
	k := &kept{}
	for range 2 {
		if _, err := get(t.Context(), getter(t, k), r.URL, "web", rule(t, "")); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(r.asked, " "); got != "/index.yaml /web-v1.1.0.tgz /index.yaml" {
		t.Errorf("requests: %s", got)
	}
}

// The index of a repository may be hostile: only http and https are read, and other hosts get no password.
func TestOddAddresses(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.tgz")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	elsewhere := newRepository(t, map[string]string{"/web.tgz": "elsewhere"})
	for written, want := range map[string]string{
		"file://" + secret:         "expected one of http or https",
		"oci://h.io/web":           "expected one of http or https",
		"data:,x":                  "expected one of http or https",
		"http://":                  "expected one of http or https",
		":":                        "no URL",
		"../web.tgz":               "GET /web.tgz user",
		"/deep/../web.tgz":         "GET /web.tgz user",
		"../../../../web.tgz":      "GET /web.tgz user",
		"web.tgz?a=b":              "GET /c/web.tgz?a=b user",
		elsewhere.URL + "/web.tgz": "elsewhere /web.tgz",
		"//" + strings.TrimPrefix(elsewhere.URL, "http://") + "/web.tgz": "elsewhere /web.tgz",
	} {
		r := newRepository(t, map[string]string{"/c/index.yaml": "entries: {web: [{name: web, version: 1.0.0, urls: ['" + written + "']}]}",
			"/web.tgz": "x", "/c/web.tgz": "x"})
		elsewhere.asked = nil
		k := &kept{}
		a, err := get(t.Context(), getter(t, k), strings.Replace(r.URL, "http://", "http://user:password@", 1)+"/c", "web", rule(t, ""))
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(elsewhere.asked) > 0:
			got = "elsewhere " + elsewhere.asked[0]
		default:
			got = "GET " + r.asked[1]
		}
		if !strings.Contains(got, want) || strings.Contains(got, "password") {
			t.Errorf("%s: %s, want %s", written, got, want)
		}
		if err == nil && (strings.Contains(a.Source, "user") || !slices.Equal(k.names(), []string{"helm/charts/web-1.0.0.tgz"})) {
			t.Errorf("%s: %s, %q", written, a.Source, k.names())
		}
	}
}

// Charts of two repositories with one name are both kept.
func TestChartsOfOneName(t *testing.T) {
	a := newRepository(t, map[string]string{"/index.yaml": index, "/db.tgz": "a"})
	b := newRepository(t, map[string]string{"/index.yaml": index, "/db.tgz": "b"})
	k := &kept{}
	g := getter(t, k)
	for _, r := range []*repository{a, b} {
		if _, err := get(t.Context(), g, r.URL, "db", rule(t, "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Finish(k.files); err != nil {
		t.Fatal(err)
	}
	other := &charts.Getter{Stored: k.files}
	for at, want := range map[string]string{a.URL: "a", b.URL: "b"} {
		if got, err := get(t.Context(), other, at, "db", rule(t, "")); err != nil || string(got.Data) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// An index leads neither to private addresses, nor without TLS to what has no digest: nothing is asked there, and messages have no
// text of other hosts.
func TestRefusedAddresses(t *testing.T) {
	body := "entries: {web: [{name: web, version: 1.0.0, urls: ['%s']}]}"
	x := func(url string) string { return strings.Replace(body, "%s", url, 1) }
	for name, c := range map[string]struct{ repository, index, want string }{
		"an address of this machine": {"http://charts.example.com", x("http://127.0.0.1:1/x.tgz"), "refusing the private address 127.0.0.1"},
		"a name of this machine":     {"http://charts.example.com", x("http://localhost:1/x.tgz"), "refusing the private address localhost"},
		"metadata of a cloud":        {"http://127.0.0.1", x("http://169.254.169.254/latest"), "refusing the private address 169.254.169.254"},
		"without TLS":                {"https://charts.example.com", x("http://other.example.com/x.tgz"), "is not got without TLS"},
	} {
		list, err := charts.ParseIndex([]byte(c.index))
		if err != nil {
			t.Fatal(err)
		}
		e, err := list.Find("web", rule(t, ""))
		if err != nil {
			t.Fatal(err)
		}
		g := getter(t, &kept{})
		if err := charts.Download(t.Context(), g, &e, c.repository); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	elsewhere := newRepository(t, map[string]string{})
	elsewhere.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "inner secret", http.StatusForbidden) })
	r := newRepository(t, map[string]string{"/index.yaml": x(elsewhere.URL + "/x.tgz")})
	if _, err := get(t.Context(), getter(t, &kept{}), r.URL, "web", rule(t, "")); err == nil || !strings.Contains(err.Error(), "status 403") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

// Another chart of the same name and version that an earlier run has kept stays, and each rule has its own, pinned or not.
func TestChartsOfOneNameInTwoRuns(t *testing.T) {
	a := newRepository(t, map[string]string{"/index.yaml": index, "/db.tgz": "a"})
	b := newRepository(t, map[string]string{"/index.yaml": index, "/db.tgz": "b"})
	k := &kept{}
	for range 2 {
		for _, r := range []*repository{a, b} {
			g := getter(t, k)
			if _, err := get(t.Context(), g, r.URL, "db", rule(t, "")); err != nil {
				t.Fatal(err)
			}
			if err := g.Finish(k.files); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := k.names(); len(got) != 3 || !strings.HasPrefix(got[0], "helm/charts/"+digest.FromString("b").Encoded()[:12]+"/db-") {
		t.Errorf("%q", got)
	}
	other := &charts.Getter{Stored: k.files}
	for at, want := range map[string]string{a.URL: "a", b.URL: "b"} {
		for _, asked := range []string{"", "0.2.0"} {
			if got, err := get(t.Context(), other, at, "db", rule(t, asked)); err != nil || string(got.Data) != want {
				t.Errorf("%q: %v, want %s", asked, err, want)
			}
		}
	}
}

// Settings may be hostile: only values below helm/values count, with the digest of their name.
func TestSettings(t *testing.T) {
	k := &kept{}
	g := getter(t, k)
	g.SaveLocal = true
	of, want := digest.FromString("web"), charts.Settings{KubeVersion: "v1.29.0", APIVersions: []string{"a/v1"}, Tests: true, Values: []byte("a: 1\n")}
	if err := errors.Join(g.KeepSettings(of, want), g.Finish(k.files)); err != nil {
		t.Fatal(err)
	}
	got, err := (&charts.Getter{Stored: k.files}).KeptSettings(of)
	if err != nil || got.KubeVersion != want.KubeVersion || !slices.Equal(got.APIVersions, want.APIVersions) || !got.Tests || string(got.Values) != "a: 1\n" {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := (&charts.Getter{Stored: k.files}).KeptSettings(digest.FromString("other")); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	values := got.File
	for name, text := range map[string]string{"a file elsewhere": `{"` + of.String() + `": {"values": "signatures/secret"}}`, "a path that leads out": `{"` + of.String() +
		`": {"values": "helm/values/../../signatures/secret"}}`, "no JSON": "{no", "changed values": ""} {
		files := fstest.MapFS{"helm/settings.json": {Data: []byte(text)}, "signatures/secret": {Data: []byte("secret")}}
		if text == "" {
			files["helm/settings.json"], files[values] = k.files["helm/settings.json"], &fstest.MapFile{Data: []byte("a: 2\n")}
		}
		if got, err := (&charts.Getter{Stored: files}).KeptSettings(of); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The record of what was chosen may be hostile, and that of another program has none.
func TestStoredCharts(t *testing.T) {
	files := fstest.MapFS{"helm/charts/web-1.0.0.tgz": {Data: []byte("one")}, "helm/charts/db-v0.2.0.tgz": {Data: []byte("db")},
		"helm/charts/web-1.1.0.tgz": {Data: []byte("two")}, "helm/charts/web-extra-1.0.0.tgz": {Data: []byte("x")}, "signatures/secret": {Data: []byte("secret")}}
	g := &charts.Getter{Stored: files}
	for name, want := range map[string]string{"web 1.0.0": "one", "web v1.1.0": "two", "web ~1.0": "one", "web": "several archives", "db": "db",
		"db 0.2.0": "db", "web 3.0.0": "no version of the chart", "none": "there is no archive", "web-extra": "x"} {
		chart, version, _ := strings.Cut(name, " ")
		a, err := get(t.Context(), g, "http://h.io/c", chart, rule(t, version))
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && string(a.Data) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for _, file := range []string{"signatures/secret", "helm/charts/../../signatures/secret", "/etc/passwd", "helm/charts/nosuch.tgz"} {
		files["helm/resolved.json"] = &fstest.MapFile{Data: []byte(`{"http://h.io/c": {"web": {"version": "1.0.0", "file": "` + file + `"}}}`)}
		if a, err := get(t.Context(), g, "http://h.io/c", "web", rule(t, "")); err == nil {
			t.Errorf("%s: %s", file, a.Data)
		}
	}
	files["helm/resolved.json"] = &fstest.MapFile{Data: []byte("{no")}
	if _, err := get(t.Context(), g, "http://h.io/c", "web", rule(t, "1.0.0")); err != nil {
		t.Error(err)
	}
}

// A local chart is kept for the other side, which has another one at its path, or none.
func TestLocalCharts(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "web.tgz")
	if err := os.WriteFile(at, []byte("web"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := &kept{}
	g := getter(t, k)
	g.Pack = func(context.Context, string) ([]byte, error) { return []byte("packed"), nil }
	g.SaveLocal = true
	for path, want := range map[string]string{at: "web", dir: "packed"} {
		if a, err := g.Local(t.Context(), path); err != nil || string(a.Data) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	other := &charts.Getter{Stored: k.files}
	if a, err := other.Local(t.Context(), at); err != nil || string(a.Data) != "web" {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(at, []byte("of this machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := other.Local(t.Context(), at); err != nil || string(a.Data) != "web" {
		t.Errorf("another one is at the path: %v, %s", err, a.Data)
	}
	if a, err := (&charts.Getter{Stored: fstest.MapFS{}}).Local(t.Context(), at); err != nil || string(a.Data) != "of this machine" {
		t.Errorf("none was kept: %v", err)
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	for _, g := range []*charts.Getter{g, {Stored: fstest.MapFS{}}, {}} {
		if _, err := g.Local(t.Context(), at); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v", err)
		}
	}
}
