package cluster

import (
	"bufio"
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// The manifests on the pages of a served catalog, with which its packages are installed, are taken for each package of a
// real catalog.
func TestPages(t *testing.T) {
	for _, version := range []string{"v4.13", "v4.16", "v4.22"} {
		dir := t.TempDir()
		unpack(t, root+"testdata/real/catalog-"+version+".tar.zst", dir)
		pages(t, filepath.Join(dir, version))
	}
}

// pages asks for the manifests of each package of a catalog.
func pages(t *testing.T, catalog string) {
	host := serve(t, catalog)
	var packages []struct{ Name string }
	decodeJSON(t, output(t, "list", "packages", catalog, "-o", "json"), &packages)
	if len(packages) < 10 {
		t.Fatalf("%d packages", len(packages))
	}
	snippet := regexp.MustCompile(`(?s)<pre [^>]*aria-label="Manifests with a [^>]*><code>(.*?)</code></pre>`)
	for _, p := range packages {
		name := p.Name
		text := get(t, "http://"+host+"/package?name="+url.QueryEscape(name))
		found := snippet.FindAllStringSubmatch(text, -1)
		if len(found) != 2 {
			t.Fatalf("%s: %d manifests", name, len(found))
		}
		for i, kind := range []string{"Subscription", "ClusterExtension"} {
			accepted(t, html.UnescapeString(found[i][1]), kind)
		}
	}
}

// serve starts the program as a server and returns the address of its pages.
func serve(t *testing.T, catalog string) string {
	t.Helper()
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(bindery, "serve", catalog, "--port", "0", "--pprof-addr", "", "--http-addr", ports[0])
	c.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	log, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	go io.Copy(io.Discard, bufio.NewReader(log))
	if err := within(time.Minute, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ports[0]+"/", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK { // the catalog is being read
			return errors.New(answer.Status)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ports[0]
}

// get returns a page.
func get(t *testing.T, page string) string {
	t.Helper()
	answer, err := http.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(page, answer.Status, err)
	}
	return string(text)
}
