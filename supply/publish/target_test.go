package publish

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
)

// The name of an image has a registry if its first part is a host.
func TestNamesInRegistries(t *testing.T) {
	for name, want := range map[string]bool{"quay.io/a/b:v1": true, "localhost/a": true, "host:5000/a": true,
		"acme/catalog": false, "catalog:v1": false} {
		if got := hasRegistry(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// all is every transport of the program.
var all = images.BuiltIn()

// Each destination is there once, wherever it is named.
func TestTargets(t *testing.T) {
	for name, c := range map[string]struct {
		of   Destination
		want string
	}{
		"no place: a layout":            {Destination{Tags: []string{"a/b"}}, "oci:b.oci:latest"},
		"a layout in a directory":       {Destination{Tags: []string{"a/b:v1"}, Dir: "d"}, "oci:d/b.oci:v1"},
		"a name is pushed once":         {Destination{Tags: []string{"x.io/a:v1", "x.io/a:v1"}, Push: true}, "docker://x.io/a:v1"},
		"a name is pushed and given":    {Destination{Tags: []string{"x.io/a"}, To: []string{"docker://x.io/a:latest"}, Push: true}, "docker://x.io/a:latest"},
		"a place is given in two forms": {Destination{Given: []transport.Destination{{Transport: transport.Docker, Name: "x.io/a:v1"}}, To: []string{"docker://x.io/a:v1"}}, "docker://x.io/a:v1"},
		"a layout has all names":        {Destination{Tags: []string{"a:v1", "b:v2"}, To: []string{"oci:d"}}, "oci:d:v1 oci:d:v2"},
		"an archive has the first name": {Destination{Tags: []string{"a:v1", "b:v2"}, To: []string{"oci-archive:f.tar"}}, "oci-archive:f.tar:v1"},
	} {
		target, err := c.of.Target(all)
		var got []string
		for _, d := range target.Destinations {
			got = append(got, d.String())
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Errors are of the command line, and name the field.
func TestTargetsAreRefused(t *testing.T) {
	for want, of := range map[string]Destination{
		"no name":                              {},
		"Tags \"a@b\": a name with a digest":   {Tags: []string{"a@b"}},
		"Tags \"/a\": invalid image name":      {Tags: []string{"/a"}},
		"To \"nonsense\": ":                    {Tags: []string{"a"}, To: []string{"nonsense"}},
		"\"a:latest\" names no registry":       {Tags: []string{"a"}, Push: true},
		"invalid IfDigest value \"v1\"":        {Tags: []string{"x.io/a"}, Push: true, IfDigest: "v1"},
		"IfDigest requires Push or To docker:": {Tags: []string{"x.io/a"}, IfDigest: "none"},
	} {
		if _, err := of.Target(all); err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Usage {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
