package clitest

import (
	"encoding/json"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Take runs the lines of a way and returns what the last one gave.
func (w *SignedWorld) Take(lines []string, target string, more ...string) (got Result) {
	w.Helper()
	for n, line := range lines {
		if strings.HasSuffix(line, "docker://") {
			line += target
		}
		if got = w.Run(line, more...); n < len(lines)-1 && got.Status != 0 {
			w.Fatalf("%s: %+v", line, got)
		}
	}
	return got
}

// CatalogOf replaces the catalog of the source by one whose only bundle names these images as related ones.
func (w *SignedWorld) CatalogOf(images ...string) {
	w.Helper()
	type related struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	var all []related
	for _, image := range images {
		all = append(all, related{"", w.Source.Host() + "/" + image})
	}
	list, err := json.Marshal(all)
	if err != nil {
		w.Fatal(err)
	}
	text := strings.NewReplacer("NAME", "etcd", "IMAGE", w.Images[1]).Replace(OneBundle)
	text = strings.Replace(text, `"properties":`, `"relatedImages":`+string(list)+`,"properties":`, 1)
	base := OpmFor("amd64")
	base.Labels = map[string]string{TestConfigsLabel: "/configs"}
	base.Layers = append(base.Layers, map[string]string{"configs/etcd/catalog.json": text,
		"configs/old/catalog.json": strings.NewReplacer("NAME", "old", "IMAGE", w.Images[1]).Replace(OneBundle)})
	w.Source.AddImage(w.T, "acme/catalog", "v1", base)
}

// AddImage adds an image to the source.
func (w *SignedWorld) AddImage(repository, tag, content string) digest.Digest {
	w.Helper()
	return w.Source.AddImage(w.T, repository, tag, testregistry.Image{Layers: []map[string]string{{"of": content}}})
}
