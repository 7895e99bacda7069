package transport

import (
	"errors"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
)

// table has a registry, a transport with files that keeps attachments, and a store that keeps none.
func table() Table {
	parse := func(rest string) (path, name string, err error) {
		path, name, _ = strings.Cut(rest, ":")
		if path == "" {
			return "", "", errors.New("the path is empty")
		}
		return path, name, nil
	}
	return Table{
		{Name: Docker, Attachments: true},
		{Name: OCI, Attachments: true, Files: true, Parse: parse, Check: func(_, name string) error {
			if strings.HasPrefix(name, "@") {
				return errors.New("can be read but not written")
			}
			return nil
		}},
		{Name: Store, Parse: func(rest string) (path, name string, err error) {
			if place, name, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]"); ok {
				return place, name, nil
			}
			return "", rest, nil
		}},
	}
}

// A destination is read from its text, and has the same text.
func TestDestinations(t *testing.T) {
	for text, want := range map[string]struct {
		Destination
		registry, files bool
	}{
		"docker://quay.io/a/b:v1":          {Destination{Docker, "", "quay.io/a/b:v1"}, true, false},
		"docker://quay.io/a/b" + untagged:  {Destination{Docker, "", "quay.io/a/b" + untagged}, true, false},
		"oci:dir":                          {Destination{OCI, "dir", ""}, false, true},
		"oci:dir:v1":                       {Destination{OCI, "dir", "v1"}, false, true},
		"containers-storage:a/b:v1":        {Destination{Store, "", "a/b:v1"}, false, false},
		"containers-storage:[/root]a/b:v1": {Destination{Store, "/root", "a/b:v1"}, false, false},
	} {
		got, err := table().Parse(text)
		if err != nil || got != want.Destination || got.String() != text {
			t.Errorf("%s: %+v (%s), %v", text, got, got, err)
		}
		if got.InRegistry() != want.registry || got.InFiles() != want.files {
			t.Errorf("%s: in a registry: %v, in files: %v", text, got.InRegistry(), got.InFiles())
		}
	}
}

// The error about a text that is no destination quotes it.
func TestDestinationsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"dir":                         "want TRANSPORT:PATH with one of docker://, oci:, containers-storage:",
		"tape:x":                      `unknown transport "tape"`,
		"docker:quay.io/a":            "a registry is written docker://HOST/REPOSITORY:TAG",
		"docker://quay.io/A":          "must be lowercase",
		"docker://a/b:v1" + untagged:  "has a tag or a digest",
		"docker://a/b:v1@" + someHash: "under a tag or a digest, not under both",
		"oci::v1":                     "the path is empty",
		"oci:dir:@1":                  "can be read but not written",
	} {
		_, err := table().Parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), "destination \""+text) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

const someHash = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// The repository of a destination has the tag "latest" unless it says that it gets none.
func TestRepository(t *testing.T) {
	for name, want := range map[string]string{
		"quay.io/a/b":             "quay.io/a/b:latest",
		"quay.io/a/b:v1":          "quay.io/a/b:v1",
		"quay.io/a/b@" + someHash: "quay.io/a/b@" + someHash,
		"quay.io/a/b" + untagged:  "quay.io/a/b",
		"a":                       "docker.io/library/a:latest",
	} {
		got, err := Destination{Transport: Docker, Name: name}.Repository()
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// The name of an image to read needs no transport if it is in a registry. A digest makes its tag meaningless.
func TestSources(t *testing.T) {
	for text, want := range map[string]struct {
		transport         Name
		path, name, named string
	}{
		"quay.io/a/b":                   {Docker, "", "", "quay.io/a/b:latest"},
		"docker://quay.io/a/b:v1":       {Docker, "", "", "quay.io/a/b:v1"},
		"quay.io/a/b:v1@" + someHash:    {Docker, "", "", "quay.io/a/b@" + someHash},
		"oci:dir:v1":                    {OCI, "dir", "v1", ""},
		"containers-storage:quay.io/a":  {Store, "", "quay.io/a", "quay.io/a:latest"},
		"containers-storage:[/root]a:b": {Store, "/root", "a:b", "docker.io/library/a:b"},
	} {
		got, err := table().Source(text)
		if err != nil || got.Transport != want.transport || got.Path != want.path || got.Name != want.name {
			t.Errorf("%s: %+v, %v", text, got, err)
			continue
		}
		named := ""
		if n := got.Named(); n != nil {
			named = n.String()
		}
		if named != want.named {
			t.Errorf("%s: named %s, want %s", text, named, want.named)
		}
	}
	for _, text := range []string{"", "a\nb", "docker:a", "quay.io/A", "oci:", "a@sha256:" + strings.Repeat("0", 63)} {
		if got, err := table().Source(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
	got, err := table()[1:].Source("quay.io/a")
	if err == nil || !strings.Contains(err.Error(), "oci:, containers-storage:") {
		t.Errorf("a name in a registry, without that transport: %+v, %v", got, err)
	}
}

// A place that keeps no attachments is refused for them, with the transports that keep some.
func TestAttachments(t *testing.T) {
	all := table()
	for text, keeps := range map[string]bool{"docker://a/b": true, "oci:dir": true, "containers-storage:a": false} {
		d, err := all.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s, err := all.Source(text)
		if err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{"written": all.CheckAttachments(d), "read": all.CheckAttached(s)} {
			if keeps && err != nil || !keeps && (!errors.Is(err, ErrNoAttachments) || fault.ClassOf(err) != fault.Usage ||
				!strings.Contains(err.Error(), "as docker://, oci: do")) {
				t.Errorf("%s, %s: %v", text, name, err)
			}
		}
	}
	if all.Has("quay.io/a") || !all.Has("oci:x") || !all.Has("docker://x") || all.Has("docker:x") {
		t.Error("Has takes a text for a name of a transport, or the reverse")
	}
}
