package cmdline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// The line of an error, which is written field by field, is the JSON of its type.
func TestJSONOfErrorsIsThatOfItsType(t *testing.T) {
	for _, err := range []error{errors.New(`plain "text" \ é`), &cmdline.Error{Class: cmdline.ClassUsage, Object: "a", Hint: "b",
		Err: errors.New("first"), List: slices.Values([]string{"second", `"third"`})}} {
		var line, again bytes.Buffer
		if err := cmdline.WriteJSON(&line, err); err != nil {
			t.Fatal(err)
		}
		var out cmdline.JSONError
		if err := json.Unmarshal(line.Bytes(), &out); err != nil {
			t.Fatalf("%v: %s", err, &line)
		}
		encoder := json.NewEncoder(&again)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(out); err != nil || again.String() != line.String() {
			t.Errorf("%v: %sof the type: %s", err, &line, &again)
		}
	}
}
