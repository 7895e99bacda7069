package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"sigs.k8s.io/yaml"
)

// catalogs returns the documents of the catalogs in testdata and their size, as YAML or as JSON with opm's indentation.
func catalogs(b *testing.B, asJSON bool) (docs []Doc, size int64) {
	corpus(b, func(path string, data []byte) {
		s := NewSplitter(bytes.NewReader(data), Limits{})
		for {
			d, err := s.Next()
			if err != nil {
				return
			}
			d.Data = bytes.Clone(d.Data)
			if asJSON {
				j, err := AppendYAML(nil, d.Data, Limits{}, nil)
				var indented bytes.Buffer
				if err != nil || json.Indent(&indented, j, "", "    ") != nil {
					continue
				}
				d.Data, d.JSON = indented.Bytes(), true
			}
			docs = append(docs, d)
			size += int64(len(d.Data))
		}
	})
	return docs, size
}

func benchmark(b *testing.B, asJSON bool, convert func(c *Converter, dst []byte, d Doc) ([]byte, error)) {
	docs, size := catalogs(b, asJSON)
	c := Converter{Limits: Limits{}.withDefaults()}
	var dst []byte
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range docs {
			var err error
			if dst, err = convert(&c, dst[:0], d); err != nil {
				dst = dst[:0]
			}
		}
	}
}

func BenchmarkYAMLFast(b *testing.B) {
	benchmark(b, false, func(c *Converter, dst []byte, d Doc) ([]byte, error) { return c.AppendYAML(dst, d.Data) })
}

func BenchmarkYAMLSlow(b *testing.B) {
	benchmark(b, false,
		func(c *Converter, dst []byte, d Doc) ([]byte, error) { return c.appendSlow(dst, d.Data, c.Limits) })
}

// BenchmarkYAMLLibrary measures opm's YAML library.
func BenchmarkYAMLLibrary(b *testing.B) {
	benchmark(b, false, func(_ *Converter, _ []byte, d Doc) ([]byte, error) { return yaml.YAMLToJSON(d.Data) })
}

func BenchmarkJSON(b *testing.B) {
	benchmark(b, true, func(c *Converter, dst []byte, d Doc) ([]byte, error) { return c.AppendJSON(dst, d.Data) })
}

// BenchmarkJSONLibrary measures encoding/json for the same documents.
func BenchmarkJSONLibrary(b *testing.B) {
	benchmark(b, true, func(_ *Converter, _ []byte, d Doc) ([]byte, error) {
		var v any
		if err := json.Unmarshal(d.Data, &v); err != nil {
			return nil, err
		}
		return json.Marshal(v)
	})
}

func BenchmarkSplit(b *testing.B) {
	for name, asJSON := range map[string]bool{"YAML": false, "JSON": true} {
		b.Run(name, func(b *testing.B) {
			docs, _ := catalogs(b, asJSON)
			var stream []byte
			for _, d := range docs {
				if !asJSON {
					stream = append(stream, "---\n"...)
				}
				stream = append(append(stream, d.Data...), '\n')
			}
			var s Splitter
			b.SetBytes(int64(len(stream)))
			for b.Loop() {
				s.Reset(bytes.NewReader(stream), Limits{})
				for {
					if _, err := s.Next(); err != nil {
						if !errors.Is(err, io.EOF) {
							b.Fatal(err)
						}
						break
					}
				}
			}
		})
	}
}
