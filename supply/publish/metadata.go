package publish

import (
	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/layers"
)

// Metadata is the content of the file [Files.MetadataFile].
type Metadata struct {
	*build.Image
	// Program is "bindery" and its version. It is here only: nothing in an image depends on the release that made it.
	Program string `json:"program"`
	// Codecs are the compressors of the layers by their names in --compression.
	Codecs map[layers.Compression]string `json:"codecs"`
	// Layers are those of the image and how they were obtained.
	Layers       []layerAccount  `json:"layers"`
	References   []string        `json:"references"`
	Destinations []images.Result `json:"destinations"`
	// Traffic sums up the bytes sent to registries; absent if the image went to none.
	Traffic *store.Traffic `json:"traffic,omitempty"`
	// Signatures are those of the image at its destinations; absent if it was not signed.
	Signatures []signature.Made `json:"signatures,omitempty"`
}

// layerAccount describes a layer of a written image.
type layerAccount struct {
	build.Layer
	// Transfer is how the layer got to the registries: the most expensive way among them. Empty without registries.
	Transfer store.How `json:"transfer,omitempty"`
}

func (r *Result) metadata() Metadata {
	m := Metadata{Image: r.Image, Program: "bindery " + version.Release(), Codecs: codecs(r.compression), References: r.References,
		Destinations: append([]images.Result{}, r.Written...), Layers: []layerAccount{}, Signatures: r.Signatures}
	effort := map[store.How]int{store.Reused: 1, store.Mounted: 2, store.Pushed: 3}
	how := map[digest.Digest]store.How{}
	for _, r := range r.Written {
		if r.Traffic == nil {
			continue
		}
		if m.Traffic == nil {
			m.Traffic = &store.Traffic{}
		}
		m.Traffic.Add(*r.Traffic)
		for _, b := range r.Blobs {
			if effort[b.How] > effort[how[b.Digest]] {
				how[b.Digest] = b.How
			}
		}
	}
	for _, l := range r.Image.Layers {
		m.Layers = append(m.Layers, layerAccount{l, how[l.Digest]})
	}
	return m
}

// codecs returns the compressors of a compression.
func codecs(c layers.Compression) map[layers.Compression]string {
	all := []layers.Compression{c}
	if c == build.CompressionAuto {
		all = []layers.Compression{layers.Gzip, layers.Zstd}
	}
	out := map[layers.Compression]string{}
	for _, c := range all {
		if id, err := c.CodecID(); err == nil {
			out[c] = id
		}
	}
	return out
}
