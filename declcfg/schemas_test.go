package declcfg

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// trial is the blob of a schema that only this test knows.
type trial struct {
	Name    string      `json:"name"`
	Package string      `json:"package"`
	Steps   []trialStep `json:"steps,omitempty"`
	Unknown []Field     `json:"-"`
	Pos     Position    `json:"-"`
}

type trialStep struct {
	Run   string          `json:"run"`
	Value json.RawMessage `json:"value"`
}

func (t *trial) BlobSchema() string            { return "olm.trial" }
func (t *trial) BlobPackage() string           { return t.Package }
func (t *trial) BlobName() string              { return t.Name }
func (t *trial) Position() Position            { return t.Pos }
func (t *trial) MarshalJSON() ([]byte, error)  { return AppendJSON(nil, t, false), nil }
func (t *trial) origin() (*Position, *[]Field) { return &t.Pos, &t.Unknown }

// A type and its row are all that a new schema needs.
func TestNewSchema(t *testing.T) {
	before := schemas
	schemas = append(slices.Clip(before), describe[trial]("olm.trial", RankOther))
	t.Cleanup(func() { schemas = before })

	const text = `schema: olm.deprecations
package: a
entries: []
---
schema: olm.trial
name: x
package: a
step: 1
steps: [{run: r, value: {b: 1}, vlaue: 3}]
---
schema: olm.trail
name: misspelled
---
{schema: olm.package, name: a, defaultChannel: c}
`
	read := func(text string) ([]string, []string, error) {
		var blobs, warned []string
		o := LoadOptions{Jobs: 1, Warn: func(_ Position, text string) { warned = append(warned, text) }}
		c, err := Load(context.Background(), fstest.MapFS{"c.yaml": {Data: []byte(text)}}, o)
		if err != nil {
			return nil, nil, err
		}
		for b := range c.Blobs() {
			blobs = append(blobs, string(AppendJSON(nil, b, false)))
		}
		return blobs, warned, nil
	}
	blobs, warned, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	wantBlobs := []string{
		`{"schema":"olm.package","name":"a","defaultChannel":"c"}`,
		`{"schema":"olm.trial","name":"x","package":"a","steps":[{"run":"r","value":{"b":1}}],"step":1}`,
		`{"schema":"olm.deprecations","package":"a","entries":[]}`,
		`{"name":"misspelled","schema":"olm.trail"}`,
	}
	wantWarned := []string{
		`unknown field "step" in olm.trial "x": did you mean "steps"?`,
		`unknown field "vlaue" in steps[0] of olm.trial "x": did you mean "value"?`,
		`unknown schema "olm.trail": did you mean "olm.trial"?`,
	}
	if !slices.Equal(blobs, wantBlobs) || !slices.Equal(warned, wantWarned) {
		t.Errorf("got\n%s\n%s", strings.Join(blobs, "\n"), strings.Join(warned, "\n"))
	}
	_, _, err = read(strings.Replace(text, "run: r", "run: [r]", 1))
	const want = `olm.trial "x": steps[0].run is a list, expected a string [c.yaml:9:15]`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
