package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/net/http2"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/serve/internal/web"
)

// fetch requests a page. Redirects are not followed, nothing is decompressed.
func fetch(t testing.TB, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	do(t, err)
	r.Header.Set("Accept-Encoding", "identity")
	response, err := client.Do(r)
	do(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	do(t, err)
	return response, string(body)
}

// The pages have the title of the options; the place of the catalog is not shown.
func TestTitleOfPages(t *testing.T) {
	catalog, _ := sampleDirs(t)
	for title, want := range map[string]string{"": web.DefaultTitle, "Tools of Acme": "Tools of Acme"} {
		l := listenLocally(t)
		start(t, directory(t, catalog), Options{HTTPListener: l, HTTPTitle: title})
		for _, page := range []string{"/", "/package?name=a", "/images", "/package?name=nothing"} {
			_, body := fetch(t, http.DefaultClient, "http://"+l.Addr().String()+page)
			if !strings.Contains(body, "<title>") || !strings.Contains(body, want) || strings.Contains(body, catalog) {
				t.Errorf("%s with the title %q: %.600s", page, title, body)
			}
		}
	}
}

// Every kind of source is offered over HTTP, with and without a ready cache, and gives the same catalog.
func TestHTTPOffersEverySource(t *testing.T) {
	catalog, cache := sampleDirs(t)
	loaded, err := declcfg.Load(t.Context(), os.DirFS(catalog), declcfg.LoadOptions{})
	do(t, err)
	var want strings.Builder
	do(t, loaded.Write(&want, declcfg.FormatJSON))
	for name, test := range map[string]struct {
		src Source
		o   Options
	}{
		"directory":             {directory(t, catalog), Options{}},
		"directory, with cache": {directory(t, catalog), Options{CacheDir: cache, EnforceIntegrity: true}},
		"file system":           {FileSystem("image", os.DirFS(catalog), os.DirFS(cache)), Options{}},
		"blobs":                 {Blobs("database", loaded.Blobs()), Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			l := listenLocally(t)
			test.o.HTTPListener = l
			s := start(t, test.src, test.o)
			if got := packageNames(t, dial(t, s.addr)); got != "a b" {
				t.Errorf("gRPC answers with %q", got)
			}
			_, body := fetch(t, http.DefaultClient, "http://"+l.Addr().String()+"/api/v1/all")
			again, err := declcfg.Read(t.Context(), strings.NewReader(body), "answer", declcfg.LoadOptions{})
			do(t, err)
			var got strings.Builder
			do(t, again.Write(&got, declcfg.FormatJSON))
			if got.String() != want.String() {
				t.Errorf("got\n%s\nwant\n%s", got.String(), want.String())
			}
			if r, body := fetch(t, http.DefaultClient,
				"http://"+l.Addr().String()+"/package?name=a"); r.StatusCode != http.StatusOK || !strings.Contains(body,
				"a goes") {
				t.Errorf("the page: %s", r.Status)
			}
		})
	}
}

// Until the catalog is loaded, HTTP clients are asked to retry, as gRPC clients are.
func TestHTTPBeforeTheCatalog(t *testing.T) {
	l, ask, asked := listenLocally(t), make(chan struct{}), make(chan error, 1)
	go func() {
		<-ask
		response, err := http.Get("http://" + l.Addr().String() + "/")
		if err == nil {
			response.Body.Close()
			if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
				err = errors.New(response.Status)
			}
		}
		asked <- err
	}()
	src := Blobs("slow", func(yield func(declcfg.Blob, error) bool) {
		close(ask)
		if err := <-asked; err != nil {
			t.Error(err)
		}
		for _, b := range []declcfg.Blob{&declcfg.Package{Name: "a", DefaultChannel: "c"},
			&declcfg.Channel{Package: "a", Name: "c", Entries: []declcfg.ChannelEntry{{Name: "a.v1.0.0"}}},
			&declcfg.Bundle{Package: "a", Name: "a.v1.0.0", Image: "example.test/a:v1",
				Properties: []declcfg.Property{{Type: "olm.package",
					Value: []byte(`{"packageName":"a","version":"1.0.0"}`)}}}} {
			if !yield(b, nil) {
				return
			}
		}
	})
	start(t, src, Options{HTTPListener: l})
	if r, body := fetch(t, http.DefaultClient,
		"http://"+l.Addr().String()+"/api/v1/all"); r.StatusCode != http.StatusOK || strings.Count(body, "\n") != 3 {
		t.Errorf("%s: %s", r.Status, body)
	}
}

// A reloaded catalog is offered over HTTP too. Each answer is of one catalog, and nothing of old ones remains. A reload
// without a change keeps tag and time.
func TestHTTPAfterReload(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "catalog.yaml"), generation(0))
	l := listenLocally(t)
	s := start(t, directory(t, dir), Options{HTTPListener: l})
	url := "http://" + l.Addr().String() + "/api/v1/all"
	numbers := regexp.MustCompile(`\.v(\d+)\.0\.0"`)
	stop, ended := context.WithCancel(t.Context())
	clients := make(chan error, 2)
	for range cap(clients) {
		go func() {
			for stop.Err() == nil {
				response, err := http.Get(url)
				if err != nil {
					clients <- err
					return
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				found := numbers.FindAllStringSubmatch(string(body), -1)
				for _, n := range found {
					if n[1] != found[0][1] {
						err = errors.Join(err, fmt.Errorf("two catalogs in one answer: %s and %s", n[1], found[0][1]))
					}
				}
				if err != nil || response.StatusCode != http.StatusOK || len(found) < 8 {
					clients <- fmt.Errorf("%s, %d bundles, %w", response.Status, len(found), err)
					return
				}
			}
			clients <- nil
		}()
	}
	reload := func() {
		s.reload <- syscall.SIGHUP
		s.log.wait(t, "the catalog was loaded again")
	}
	before, _ := fetch(t, http.DefaultClient, url)
	reload()
	if same, _ := fetch(t, http.DefaultClient, url); same.Header.Get("ETag") != before.Header.Get("ETag") ||
		same.Header.Get("Last-Modified") != before.Header.Get("Last-Modified") {
		t.Errorf("nothing has changed, but %v became %v", before.Header, same.Header)
	}
	fds := 0
	for i := 1; i <= 4; i++ {
		write(t, filepath.Join(dir, "catalog.yaml"), generation(i))
		reload()
		r, body := fetch(t, http.DefaultClient, url)
		if !strings.Contains(body, fmt.Sprintf("p0.v%d.0.0", i)) || r.Header.Get("ETag") == before.Header.Get("ETag") {
			t.Errorf("after reload %d: %v", i, r.Header)
		}
		if i == 1 && runtime.GOOS == "linux" {
			fds = openFDs(t)
		}
	}
	if runtime.GOOS == "linux" {
		if now := openFDs(t); now > fds+6 {
			t.Errorf("%d file descriptors after one change, %d after 4", fds, now)
		}
	}
	write(t, filepath.Join(dir, "catalog.yaml"), "schema: [")
	s.reload <- syscall.SIGHUP
	s.log.wait(t, "cannot be loaded again")
	if _, body := fetch(t, http.DefaultClient, url); !strings.Contains(body, "p0.v4.0.0") {
		t.Error("the catalog before is gone")
	}
	ended()
	for range cap(clients) {
		if err := <-clients; err != nil {
			t.Error(err)
		}
	}
}

// HTTP uses the same TLS as gRPC, and HTTP/2.
func TestHTTPWithTLS(t *testing.T) {
	dir, catalog := t.TempDir(), t.TempDir()
	write(t, filepath.Join(catalog, "catalog.yaml"), generation(0))
	makeCertificate(t, dir, 7)
	o := tlsOptions(dir)
	l := listenLocally(t)
	o.HTTPListener = l
	start(t, directory(t, catalog), o)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	r, _ := fetch(t, client, "https://"+l.Addr().String()+"/")
	if r.StatusCode != http.StatusOK || r.ProtoMajor != 2 || r.TLS == nil ||
		r.TLS.PeerCertificates[0].SerialNumber.Int64() != 7 {
		t.Errorf("%s %s", r.Status, r.Proto)
	}
	if r, _ := fetch(t, http.DefaultClient, "http://"+l.Addr().String()+"/"); r.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %s", r.Status)
	}
	conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	do(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, http2.ClientPreface)
	do(t, err)
	framer := http2.NewFramer(conn, conn)
	do(t, framer.WriteSettings())
	frame, err := framer.ReadFrame()
	do(t, err)
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("a connection begins with %v", frame)
	}
	if n, ok := settings.Value(http2.SettingMaxConcurrentStreams); !ok || n != httpStreams {
		t.Errorf("a connection may have %d requests", n)
	}
}

// An HTTP service that cannot be opened is a start error and leaves no files.
func TestHTTPThatCannotBe(t *testing.T) {
	catalog := t.TempDir()
	write(t, filepath.Join(catalog, "catalog.yaml"), generation(0))
	taken := listenLocally(t)
	defer taken.Close()
	if err := Run(t.Context(), directory(t, catalog),
		Options{Listener: listenLocally(t), HTTPAddr: taken.Addr().String()}); !errors.Is(err, ErrListen) ||
		!strings.Contains(err.Error(), "http-addr") {
		t.Errorf("a port in use: %v", err)
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "linux" {
		return // systems where TMPDIR is not used, or where memory replaces it
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if err := Run(t.Context(), directory(t, catalog),
		Options{Listener: listenLocally(t), HTTPListener: listenLocally(t)}); err == nil ||
		!strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("no place for a temporary file: %v", err)
	}
}
