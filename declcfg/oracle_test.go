package declcfg_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// differences are the recorded cases in which this module differs from opm on purpose.
var differences = map[string]struct {
	validates, renders bool
	reason             string
}{
	"ok-bom": {reason: "opm reads a file with a byte order mark as YAML and silently drops all of it but the first " +
		"document"},
}

func TestRecordedCases(t *testing.T) {
	for _, root := range []string{"../testdata/oracle", string(recorded.All(t))} {
		cases := readCases(t, filepath.Join(root, "golden-fbc-cases", "cases.tsv"))
		if len(cases) == 0 {
			t.Fatalf("no cases in %s", root)
		}
		for name, want := range cases {
			t.Run(name, func(t *testing.T) {
				golden := filepath.Join(root, "golden-fbc-cases", name)
				dir := filepath.Join(root, "fbc-cases", name)
				if name == "bad-empty-dir" {
					dir = t.TempDir() // version control keeps no empty directories
				}
				fsys, err := declcfg.OpenDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				wantValid, wantRenders := want["validate"] == "0", want["render"] == "0"
				diff, different := differences[name]
				if different {
					wantValid, wantRenders = diff.validates, diff.renders
				}
				full, loadErr := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
				if (loadErr == nil) != wantRenders {
					t.Errorf("load: %v, but opm renders: %v", loadErr, wantRenders)
				}
				skeleton, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{Skeleton: true})
				if (err == nil) != (loadErr == nil) {
					t.Errorf("skeleton load: %v, load: %v", err, loadErr)
				}
				validateErr := loadErr
				if err == nil && loadErr == nil {
					validateErr = full.Validate()
					if skeletonErr := skeleton.Validate(); text(skeletonErr) != text(validateErr) {
						t.Errorf("validation of the skeleton: %v\nof the whole: %v", skeletonErr, validateErr)
					}
				}
				if (validateErr == nil) != wantValid {
					t.Errorf("validate: %v, but opm: %v", validateErr, wantValid)
				}
				if different {
					return
				}
				if validateErr != nil {
					checkMessage(t, name, filepath.Join(golden, "validate-json.json"), validateErr)
				}
				if loadErr == nil {
					checkWritten(t, filepath.Join(golden, "render.json"), full, declcfg.FormatJSON)
					checkWritten(t, filepath.Join(golden, "render-yaml.yaml"), full, declcfg.FormatYAML)
				}
			})
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ownWords are the cases with a different message, and the part that it has in common with opm's.
var ownWords = map[string]string{
	"bad-array":       "cannot unmarshal array into Go value of type map[string]interface {}",
	"bad-scalar":      "cannot unmarshal string into Go value of type map[string]interface {}",
	"bad-number-name": `expected value for key "name" to be a string, got `,
	"bad-yaml":        "yaml: line 2: mapping values are not allowed in this context",
	"bad-json":        "unexpected EOF",
}

func checkMessage(t *testing.T, name, golden string, err error) {
	t.Helper()
	var answer struct{ Error struct{ Message string } }
	data, readErr := os.ReadFile(golden)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		t.Fatal(err)
	}
	var invalid *declcfg.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatalf("error is a %T: %v", err, err)
	}
	if common, ok := ownWords[name]; ok {
		if !strings.Contains(answer.Error.Message, common) || !strings.Contains(invalid.OpmMessage(), common) {
			t.Errorf("message %q and opm's %q do not both contain %q", invalid.OpmMessage(), answer.Error.Message,
				common)
		}
	} else if got := invalid.OpmMessage(); got != answer.Error.Message {
		t.Errorf("message:\n%s\nopm's:\n%s", got, answer.Error.Message)
	}
	for _, p := range invalid.Problems {
		if p.Position.File == "" || p.Position.Line == 0 {
			t.Errorf("problem %q has no place: %+v", p.Message, p.Position)
		}
	}
}

func checkWritten(t *testing.T, golden string, c *declcfg.Catalog, f declcfg.Format) {
	t.Helper()
	want, err := os.ReadFile(golden)
	if errors.Is(err, os.ErrNotExist) {
		want, err = nil, nil // opm wrote nothing
	}
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := c.Write(&got, f); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s: written catalog differs from opm's: %s", golden, firstDifference(got.Bytes(), want))
	}
}

func firstDifference(got, want []byte) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	cut := func(b []byte) string { return string(b[max(0, min(i-40, len(b))):min(i+60, len(b))]) }
	return "at byte " + itoa(i) + ": got ..." + cut(got) + "...\nwant ..." + cut(want) + "..."
}

func itoa(i int) string {
	b, _ := json.Marshal(i)
	return string(b)
}

func readCases(t *testing.T, file string) map[string]map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := map[string]map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		columns := strings.Split(lines.Text(), "\t")
		cases[columns[0]] = map[string]string{}
		for _, c := range columns[1:] {
			key, value, _ := strings.Cut(c, "=")
			cases[columns[0]][key] = value
		}
	}
	return cases
}
