package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// reference converts a YAML document as opm does, except for numbers.
func reference(doc []byte) (string, error) {
	j, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return "", err
	}
	return roundFloats(j)
}

// roundFloats formats a JSON document as encoding/json does if numbers are float64.
func roundFloats(j []byte) (string, error) {
	var v any
	if err := json.Unmarshal(j, &v); err != nil {
		return "", err
	}
	return marshal(positiveZero(v)), nil
}

// positiveZero replaces -0 in v: YAML has it as a fraction only, JSON as an integer too.
func positiveZero(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = positiveZero(e)
		}
	case []any:
		for i, e := range v {
			v[i] = positiveZero(e)
		}
	case float64:
		if v == 0 {
			return 0.0
		}
	}
	return v
}

func marshal(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// corpus calls f with every file of the recorded catalogs.
func corpus(t testing.TB, f func(path string, data []byte)) {
	all := string(recorded.All(t))
	roots := []string{"../../testdata/fbc", filepath.Join(all, "fbc"), filepath.Join(all, "fbc-cases")}
	if more := os.Getenv("BINDERY_CORPUS"); more != "" {
		roots = []string{more}
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil {
				f(path, data)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCorpusMeansWhatTheLibrarySays(t *testing.T) {
	var docs, quick int
	corpus(t, func(path string, data []byte) {
		s := NewSplitter(iotest.HalfReader(bytes.NewReader(data)), Limits{})
		for {
			d, err := s.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Logf("%s: %v", path, err)
				}
				return
			}
			docs++
			if first := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")[d.Line-1]; !strings.HasPrefix(
				string(d.Data), strings.TrimRight(first, "\r")) && !d.JSON {
				t.Errorf("%s: document said to start at line %d, which is %q", path, d.Line, first)
			}
			var got []byte
			var want string
			var wantErr error
			if d.JSON {
				got, err = AppendJSON(nil, d.Data, Limits{}, nil)
				want, wantErr = roundFloats(d.Data)
			} else {
				got, err = AppendYAML(nil, d.Data, Limits{}, nil)
				want, wantErr = reference(d.Data)
				var c Converter
				if _, ok := c.appendFast(nil, d.Data, Limits{}.withDefaults()); ok {
					quick++
				} else {
					t.Logf("%s:%d: the slow way", path, d.Line)
				}
			}
			if (err == nil) != (wantErr == nil) {
				t.Errorf("%s:%d: error %v, the library's: %v", path, d.Line, err, wantErr)
			}
			if err != nil {
				continue
			}
			if rounded, err := roundFloats(got); err != nil || rounded != want {
				t.Errorf("%s:%d: %v\n got %.300s\nwant %.300s", path, d.Line, err, rounded, want)
			}
		}
	})
	t.Logf("%d documents, %d the fast way", docs, quick)
}
