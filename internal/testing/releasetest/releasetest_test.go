package releasetest_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/testing/releasetest"
)

// The registry has every manifest under its digest and tags, byte for byte.
func TestSource(t *testing.T) {
	r := releasetest.Source(t)
	all := releasetest.Manifests(t)
	if len(all) < 190 {
		t.Fatalf("%d manifests", len(all))
	}
	for _, m := range all {
		for _, name := range append(slices.Clone(m.Tags), m.Digest) {
			if got := digest.FromBytes(r.Manifest(m.Repository, name)); got.String() != m.Digest {
				t.Errorf("%s, %s: %s instead of %s", m.Repository, name, got, m.Digest)
			}
		}
	}
}

// The digests of releases, components and signatures are those of which the recorded runs speak.
func TestDigests(t *testing.T) {
	r, images := releasetest.Source(t), releasetest.Images(t)
	in := func(d digest.Digest, repositories ...string) bool {
		return slices.ContainsFunc(repositories, func(name string) bool { return r.Manifest(name, d.String()) != nil })
	}
	if len(images.Releases) < 26 || len(images.Components) < 60 || len(images.Signatures) < 80 {
		t.Errorf("%d releases, %d components, %d signatures", len(images.Releases), len(images.Components),
			len(images.Signatures))
	}
	for name, d := range images.Releases {
		absent := name == "4.17.9 amd64"
		if in(d, releasetest.Releases, "ocp/release", "openshift/okd") == absent {
			t.Errorf("release %s: %s, absent: %t", name, d, !absent)
		}
	}
	for name, d := range images.Components {
		if !in(d, releasetest.Components) {
			t.Errorf("component %s: %s is absent", name, d)
		}
	}
	for _, d := range images.Signatures {
		if !in(d, releasetest.Releases, releasetest.Components, "openshift/okd", "copy/ocp-release") {
			t.Errorf("signature %s is absent", d)
		}
	}
	if got := digest.FromBytes(r.Manifest(releasetest.Releases, "4.17.13-x86_64")); got != images.Moved {
		t.Errorf("the tag that was moved is %s", got)
	}
	if got := digest.FromBytes(r.Manifest("ubi9/ubi", "latest")); got != images.Base {
		t.Errorf("the base is %s", got)
	}
}

func get(t *testing.T, c *http.Client, at string) (int, string) {
	t.Helper()
	resp, err := c.Get(at)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestServers(t *testing.T) {
	w := releasetest.Servers(t)
	files := releasetest.Files(t)
	hex := releasetest.Images(t).Releases["4.16.2 amd64"].Encoded()
	of := func(name string) string {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for at, want := range map[string]string{
		w.GraphURL + "?arch=arm64&channel=stable-4.16":    of("graph/arm64/stable-4.16.json"),
		w.GraphURL + "?arch=amd64&channel=stable-9.9":     `{"version":1,"nodes":[],"edges":[],"conditionalEdges":[]}`,
		w.SignatureURL + "sha256=" + hex + "/signature-1": of("signatures/sha256=" + hex + "/signature-1"),
		w.DataURL:           of("graph-data.tar.gz"),
		w.GraphURL + "html": "<html>",
	} {
		if status, got := get(t, http.DefaultClient, at); status != http.StatusOK || got != want {
			t.Errorf("%s: %d %q", at, status, got)
		}
	}
	for at, want := range map[string]int{w.GraphURL + "500": 500, w.GraphURL + "404": 404,
		w.SignatureURL + "sha256=" + hex + "/signature-2": 404} {
		if status, _ := get(t, http.DefaultClient, at); status != want {
			t.Errorf("%s: %d", at, status)
		}
	}
	if n := len(w.Requests()); n != 8 {
		t.Errorf("%d requests: %v", n, w.Requests())
	}
	w.Down(true)
	if status, text := get(t, http.DefaultClient, w.GraphURL); status != 0 {
		t.Errorf("down: %d %s", status, text)
	}
	if key, err := os.ReadFile(w.KeyFile); err != nil || string(key) != of("keys/release.asc") {
		t.Errorf("%v", err)
	}
}

// A client that uses the proxy and trusts its authority gets the vendor's hosts, and no others.
func TestProxy(t *testing.T) {
	w, source := releasetest.Servers(t), releasetest.Source(t)
	proxy, ca := w.Proxy(t, source)
	at, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at),
		TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer c.CloseIdleConnections()
	hex := releasetest.Images(t).Releases["4.16.2 amd64"].Encoded()
	signatures := "https://mirror.openshift.com/pub/openshift-v4/signatures/openshift/release/"
	for name, part := range map[string]string{
		"https://api.openshift.com/api/upgrades_info/v1/graph?arch=amd64&channel=stable-4.15": "4.15.3",
		"https://api.openshift.com/api/upgrades_info/graph-data":                              "\x1f\x8b",
		"https://origin-release.ci.openshift.org/graph?channel=stable-4":                      "0.okd",
		signatures + "sha256=" + hex + "/signature-1":                                         "\xc8",
		"https://registry.access.redhat.com/v2/ubi9/ubi/manifests/latest":                     "manifests",
	} {
		if status, got := get(t, c, name); status != http.StatusOK || !strings.Contains(got, part) {
			t.Errorf("%s: %d %.100q", name, status, got)
		}
	}
	if status, _ := get(t, c, "https://example.com/"); status != 0 {
		t.Errorf("another host: %d", status)
	}
	if all := w.Requests(); len(all) != 4 ||
		!slices.Contains(all, "GET https://api.openshift.com/api/upgrades_info/graph-data") {
		t.Errorf("%v", w.Requests())
	}
}

// The recorded runs are whole, and no file refers to another one.
func TestRuns(t *testing.T) {
	runs := releasetest.Runs(t)
	scenarios := map[string]bool{}
	for name, text := range runs {
		if scenario, _, ok := strings.Cut(name, "/"); ok {
			scenarios[scenario] = true
		}
		if strings.HasPrefix(string(text), "(as before") || (len(text) == 0) {
			t.Errorf("%s: %q", name, text)
		}
	}
	if len(scenarios) != 53 || len(runs) < 1000 {
		t.Errorf("%d scenarios, %d files", len(scenarios), len(runs))
	}
}
