package serve

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/internal/opmformat"
	"github.com/operator-bindery/bindery/serve/api"
)

// readJSON reads a cache of the format json.
func (b *opmBuilder) readJSON(ctx context.Context, catalog, cache fs.FS) error {
	digest, err := readOPMDigest(cache)
	if err != nil {
		return err
	}
	if cache, err = below(cache, opmformat.JSONDir); err != nil {
		return err
	}
	text, err := opmformat.ReadSmall(cache, opmformat.IndexName, opmformat.MaxValue)
	if err != nil {
		return err
	}
	b.fail(b.readIndex(text, jsonBundleFile))
	sum := fnv.New64a()
	var file []byte
	for of, tree := range [...]fs.FS{catalog, cache} {
		nodes, err := opmformat.NodesOf(ctx, tree)
		if err != nil {
			return err
		}
		for i := range nodes {
			n := &nodes[i]
			if of == 0 || n.Mode.IsDir() {
				continue
			}
			// Every byte that is taken is one that was hashed.
			n.Open = func() (io.ReadCloser, error) {
				// One is read at a time, and what is taken of it is copied.
				var err error
				if file, err = opmformat.AppendSmall(file[:0], cache, n.Name, opmformat.MaxValue); err != nil {
					return nil, err
				}
				if b.err == nil {
					b.fail(b.jsonFile(n.Name, file))
				}
				return io.NopCloser(bytes.NewReader(file)), nil
			}
		}
		if err := opmformat.WriteNodes(ctx, sum, nodes); err != nil {
			return err
		}
	}
	return compareOPMDigest(digest, hex.EncodeToString(sum.Sum(nil)))
}

func jsonBundleFile(pkg, channel, bundle string) string {
	return pkg + "_" + channel + "_" + bundle + ".json"
}

// jsonFile takes a file of the cache.
func (b *opmBuilder) jsonFile(name string, text []byte) error {
	if custom, ok := strings.CutPrefix(name, "metas/"); ok {
		parts := strings.Split(custom, "/")
		if len(parts) == 2 {
			parts = []string{parts[0], "", parts[1]} // of no package
		}
		if len(parts) != 3 || !strings.HasSuffix(name, ".json") {
			return nil
		}
		message, err := structMessage(text)
		if err != nil {
			return fmt.Errorf("%.200s: %w", name, err)
		}
		return b.custom(parts[0], parts[1], stored{message: message})
	}
	if _, ok := b.entries[name]; !ok {
		return nil
	}
	if rest, csv, objects, ok := splitJSON(text); ok {
		a := &api.Bundle{}
		if err := json.Unmarshal(rest, a); err != nil {
			return fmt.Errorf("%.200s: %w", name, err)
		}
		if a.CsvJson == "" && a.Object == nil {
			return b.jsonBundle(name, a, csv, objects)
		}
	}
	return b.slowJSONBundle(name, text)
}

// quotedManifests are the manifests of a bundle as they were in the first of its answers.
type quotedManifests struct {
	size int
	sum  uint32
}

// jsonBundle takes an answer whose manifests are still quoted. Those of a bundle that was seen are not looked at again.
func (b *opmBuilder) jsonBundle(name string, light *api.Bundle, csv, objects []byte) error {
	e := b.entries[name]
	bundle := e.pkg.channels[e.channel].entries[e.entry].bundle
	quoted := quotedManifests{len(csv) + len(objects), crc32.Update(crc32.Checksum(csv, castagnoli), castagnoli, objects)}
	if e.pkg.lights[bundle] != nil && e.pkg.quoted[bundle] == quoted {
		had := e.pkg.bundles[bundle].heavy
		return b.bundle(name, light, stored{known: &had})
	}
	heavy, ok := appendJSONManifests(b.manifests[:0], csv, objects)
	if b.manifests = heavy; !ok {
		return fmt.Errorf("%.200s: manifests that are no text", name)
	}
	if e.pkg.quoted == nil {
		e.pkg.quoted = map[int]quotedManifests{}
	}
	e.pkg.quoted[bundle] = quoted
	return b.bundle(name, light, stored{message: heavy})
}

// slowJSONBundle takes an answer in any writing.
func (b *opmBuilder) slowJSONBundle(name string, text []byte) error {
	a := &api.Bundle{}
	if err := json.Unmarshal(text, a); err != nil {
		return fmt.Errorf("%.200s: %w", name, err)
	}
	heavy := appendManifestTexts(nil, a.CsvJson, a.Object)
	a.CsvJson, a.Object = "", nil
	return b.bundle(name, a, stored{message: heavy})
}

// appendManifestTexts is [appendManifests] of decoded fields.
func appendManifestTexts(dst []byte, csv string, objects []string) []byte {
	dst = appendString(dst, bundleCSVJSON, csv)
	for _, o := range objects {
		dst = appendElement(dst, bundleObject, o)
	}
	return dst
}
