package program_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/fault"
)

func TestFlagsOfFields(t *testing.T) {
	for field, want := range map[string]string{"IfDigest": "--if-digest", "IIDFile": "--iid-file", "BuilderID": "--builder-id",
		"SBOMFiles": "--sbom-file", "Push": "--push", "ReloadEvery": "--reload-every"} {
		if got := program.FlagOf(field); got != want {
			t.Errorf("%s: %s", field, got)
		}
	}
}

// Flags are named wherever an error about fields is in another one, and the other one stays what it is.
func TestErrorsNameFlags(t *testing.T) {
	err := errors.Join(fmt.Errorf("line 1: %w", fault.Fieldf("{Push} and {IfDigest}")), fault.InField("DigestFile", fs.ErrExist))
	got := program.InFlags(err)
	if got.Error() != "line 1: --push and --if-digest\n--digest-file: file already exists" || !errors.Is(got, fs.ErrExist) ||
		fault.ClassOf(got) != fault.Usage {
		t.Error(got)
	}
	if plain := errors.New("Push"); program.InFlags(plain) != plain || program.InFlags(nil) != nil {
		t.Error("an error about no field is another one")
	}
}
