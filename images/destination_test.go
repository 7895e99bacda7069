package images

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	good := map[string]Destination{
		"docker://quay.io/a/b:v1":               {Docker, "", "quay.io/a/b:v1"},
		"oci:/tmp/x":                            {OCI, "/tmp/x", ""},
		"oci:out:v1":                            {OCI, "out", "v1"},
		"oci:out:quay.io/a/b:v1":                {OCI, "out", "quay.io/a/b:v1"},
		"oci-archive:x.tar:v1":                  {OCIArchive, "x.tar", "v1"},
		"docker-archive:x.tar":                  {DockerArchive, "x.tar", ""},
		"docker-archive:x.tar:quay.io/a/b:v1":   {DockerArchive, "x.tar", "quay.io/a/b:v1"},
		"docker-archive:x.tar:localhost/c:v4.2": {DockerArchive, "x.tar", "localhost/c:v4.2"},
		"dir:/tmp/a:b":                          {Directory, "/tmp/a:b", ""},
		"containers-storage:localhost/c:v4.2":   {Store, "", "localhost/c:v4.2"},
		"containers-storage:c":                  {Store, "", "c"},
		"containers-storage:[/g]q.io/c:v1":      {Store, "/g", "q.io/c:v1"},
		"containers-storage:[vfs@/g+/r:vfs.imagestore=/i,x=y]q.io/c:v1": {Store, "vfs@/g+/r:vfs.imagestore=/i,x=y",
			"q.io/c:v1"},
	}
	for text, want := range good {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%s: written as %s", text, got)
		}
	}
	bad := map[string]string{
		"":                             "want TRANSPORT:PATH",
		"out":                          "want TRANSPORT:PATH",
		"quay.io/a/b:v1":               "unknown transport",
		"docker:quay.io/a/b":           "docker://HOST",
		"docker://user:pw@host/a":      "invalid reference",
		"docker://quay.io/UPPER":       "lowercase",
		"oci:":                         "path is empty",
		"oci:out:not a tag":            "Invalid image",
		"oci:out:@1":                   "can be read but not written",
		"docker-archive:x:UP/case":     "lowercase",
		"containers-storage:":          "no name",
		"containers-storage:X":         "lowercase",
		"containers-storage:[/g]":      "no name",
		"containers-storage:[/g":       "does not end",
		"containers-storage:[]x":       "is empty",
		"containers-storage:[@/g]x":    "driver",
		"containers-storage:[g]x":      "not absolute",
		"containers-storage:[/g+r]x":   "not absolute",
		"containers-storage:[vfs@:x]x": "root directory",
		"containers-storage:[/g\n]x":   "not the place",
		"containers-storage:a@sha256:0123456789012345678901234567890123456789012345678901234567890123": "not under a digest",
		"docker-daemon:x:latest":    "unknown transport",
		"dir:":                      "path is empty",
		"oci:a\x00b":                "NUL",
		"docker-archive:x:a@sha256": "",
	}
	for text, want := range bad {
		_, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
