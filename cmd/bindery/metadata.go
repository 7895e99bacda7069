package main

import (
	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
)

// metadata is the content of --metadata-file.
type metadata struct {
	*build.Image
	// Codecs are the compressors that layers are written with, by the names that --compression has.
	Codecs map[layers.Compression]string `json:"codecs"`
	// Layers are those of the image, with what became of them.
	Layers       []layerAccount  `json:"layers"`
	References   []string        `json:"references"`
	Destinations []images.Result `json:"destinations"`
	// Traffic sums up what was moved to registries; absent if the image went to none.
	Traffic *images.Traffic `json:"traffic,omitempty"`
}

// layerAccount is a layer of an image that was written.
type layerAccount struct {
	build.Layer
	// Transfer is how it got to the registries: the most that had to be done for one of them. Empty without registries.
	Transfer images.How `json:"transfer,omitempty"`
}

func newMetadata(image *build.Image, c layers.Compression, refs []string, results []images.Result) metadata {
	m := metadata{Image: image, Codecs: codecs(c), References: refs, Destinations: append([]images.Result{}, results...), Layers: []layerAccount{}}
	effort := map[images.How]int{images.Reused: 1, images.Mounted: 2, images.Pushed: 3}
	how := map[digest.Digest]images.How{}
	for _, r := range results {
		if r.Traffic == nil {
			continue
		}
		if m.Traffic == nil {
			m.Traffic = &images.Traffic{}
		}
		m.Traffic.Add(*r.Traffic)
		for _, b := range r.Blobs {
			if effort[b.How] > effort[how[b.Digest]] {
				how[b.Digest] = b.How
			}
		}
	}
	for _, l := range image.Layers {
		m.Layers = append(m.Layers, layerAccount{l, how[l.Digest]})
	}
	return m
}

// codecs are the compressors behind a value of --compression.
func codecs(c layers.Compression) map[layers.Compression]string {
	all := []layers.Compression{c}
	if c == build.CompressionAuto {
		all = []layers.Compression{layers.Gzip, layers.Zstd}
	}
	out := map[layers.Compression]string{}
	for _, c := range all {
		if id, err := layers.CodecID(c); err == nil {
			out[c] = id
		}
	}
	return out
}
