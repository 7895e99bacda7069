package serve

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The guide to the server names every metric of the server, and no others.
func TestDocumentedMetrics(t *testing.T) {
	text, err := os.ReadFile("../docs/guides/serve.md")
	do(t, err)
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:bindery|grpc_server)_[a-z_]+)`").FindAllStringSubmatch(string(text),
		-1) {
		documented[m[1]] = true
	}
	dir := t.TempDir()
	write(t, dir+"/catalog.yaml", sampleA)
	l := listenLocally(t)
	start(t, directory(t, dir), Options{MetricsListener: l, HTTPListener: listenLocally(t)})
	served := scrape(t, "http://"+l.Addr().String()+"/metrics")
	for name := range served {
		if (strings.HasPrefix(name, "bindery_") || strings.HasPrefix(name, "grpc_")) && !documented[name] {
			t.Errorf("the guide lacks %s", name)
		}
	}
	for name := range documented {
		if _, ok := served[name]; !ok && !strings.HasPrefix(name, "bindery_tls_") {
			t.Errorf("the server has no metric %s", name)
		}
	}
}
