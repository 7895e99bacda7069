package mirror_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// typesOf returns the media types of what a tag stands for, and of the images in it.
func typesOf(t *testing.T, r *testregistry.Registry, repository, tag string) (kinds string) {
	t.Helper()
	text := r.Manifest(repository, tag)
	var m struct {
		MediaType string
		Config    struct{ MediaType string }
		Manifests []struct{ MediaType, Digest string }
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%s:%s is %q: %v", repository, tag, text, err)
	}
	kinds = m.MediaType + " " + m.Config.MediaType
	for _, e := range m.Manifests {
		kinds += " " + e.MediaType
	}
	return strings.TrimSpace(kinds)
}

// runLoud runs a command that says what it warns of.
func runLoud(w *clitest.SignedWorld, line string) clitest.Result {
	return clitest.Finish(w.T, clitest.Command(w.Dir, "bindery", append(strings.Fields(line), "--use-http", "--no-cache")...))
}

// A rebuilt catalog has the types of its source, and Docker's where the registry refuses OCI's.
func TestTypesOfRebuiltCatalogs(t *testing.T) {
	docker := manifest.DockerV2Schema2MediaType + " " + manifest.DockerV2Schema2ConfigMediaType
	for name, c := range map[string]struct{ source, refused, warns bool }{
		"a source of Docker's types":                             {true, false, false},
		"a source of Docker's types, to an old registry":         {true, true, false},
		"a source of OCI's types, to an old registry":            {false, true, true},
		"a source of OCI's types, to a registry that takes them": {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, target := clitest.NewSignedWorld(t, clitest.Unsigned), testregistry.New(t)
			if c.source {
				w.Done("copy " + w.Images[0] + " docker://" + w.Images[0] + " --format docker --with none")
			}
			if c.refused {
				target.RefuseOCI("/catalog/")
			}
			w.Fresh()
			for range 2 {
				got := runLoud(w, "mirror run --workspace ws -c ../set.yaml docker://"+target.Host())
				if got.Status != 0 || strings.Contains(got.Stderr, "Docker's types") != c.warns {
					t.Errorf("%+v", got)
				}
			}
			if is := typesOf(t, target, "acme/catalog", "v1"); (is == docker) != (c.source || c.refused) {
				t.Errorf("the catalog is %s", is)
			}
			got := w.Run("mirror verify --workspace ws -c ../set.yaml docker://" + target.Host())
			if got.Status != 0 || strings.Contains(got.Stdout+got.Stderr, "is not known") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A build to a registry that refuses OCI gets Docker's types, and "copy --format" converts, unless something is attached.
func TestDockerTypesForOldRegistries(t *testing.T) {
	w, old := clitest.NewSignedWorld(t, clitest.Signed), testregistry.New(t)
	old.RefuseOCI("")
	clitest.WriteFile(t, filepath.Join(w.Dir, "FROM", "Containerfile"), "FROM "+w.Images[3]+"\nLABEL a=b\n")
	build := "build containerfile FROM -t x:v1 --output docker://" + old.Host() + "/built:v1"
	if got := w.Run(build + " --format oci"); got.Status == 0 {
		t.Errorf("a format that is asked for: %+v", got)
	}
	if got := runLoud(w, build); got.Status != 0 || strings.Count(got.Stderr, "--format docker") != 1 {
		t.Errorf("%+v", got)
	}
	if is := typesOf(t, old, "built", "v1"); !strings.HasPrefix(is, manifest.DockerV2Schema2MediaType) {
		t.Errorf("built is %s", is)
	}
	operand := w.Images[2]
	to := " docker://" + old.Host() + "/operand:v1"
	for line, want := range map[string]string{"copy " + operand + to + " --with none": "--format docker",
		"copy " + operand + to + " --format docker":       "--with none",
		"copy " + operand + to + " --format v2s2":         "(oci|docker)",
		"copy " + operand + to + " --format= --with none": "--format"} {
		if got := w.Run(line); got.Status == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	w.Done("copy " + operand + to + " --format docker --with none")
	want := strings.Repeat(" "+manifest.DockerV2Schema2MediaType, 2)
	if is := typesOf(t, old, "operand", "v1"); strings.Join(strings.Fields(is), " ") != manifest.DockerV2ListMediaType+want {
		t.Errorf("copied is %s", is)
	}
	w.Done("copy " + old.Host() + "/operand:v1 oci:back:v1 --format oci")
	w.Done("copy oci:back:v1 docker://" + old.Host() + "/again:v1 --format docker")
	if a, b := old.Manifest("operand", "v1"), old.Manifest("again", "v1"); string(a) != string(b) {
		t.Errorf("there and back: %s and %s", a, b)
	}
}
