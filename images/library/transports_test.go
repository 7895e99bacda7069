package library_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/images/transport"
)

// transports are all that there are.
var transports = library.Transports(images.BuiltIn())

func TestDestinations(t *testing.T) {
	to := func(at transport.Name, path, name string) transport.Destination {
		return transport.Destination{Transport: at, Path: path, Name: name}
	}
	good := map[string]transport.Destination{
		"docker://quay.io/a/b:v1":               to(transport.Docker, "", "quay.io/a/b:v1"),
		"oci:/tmp/x":                            to(transport.OCI, "/tmp/x", ""),
		"oci:out:v1":                            to(transport.OCI, "out", "v1"),
		"oci:out:quay.io/a/b:v1":                to(transport.OCI, "out", "quay.io/a/b:v1"),
		"oci-archive:x.tar:v1":                  to(transport.OCIArchive, "x.tar", "v1"),
		"docker-archive:x.tar":                  to(transport.DockerArchive, "x.tar", ""),
		"docker-archive:x.tar:quay.io/a/b:v1":   to(transport.DockerArchive, "x.tar", "quay.io/a/b:v1"),
		"docker-archive:x.tar:localhost/c:v4.2": to(transport.DockerArchive, "x.tar", "localhost/c:v4.2"),
		"dir:/tmp/a:b":                          to(transport.Directory, "/tmp/a:b", ""),
		"containers-storage:localhost/c:v4.2":   to(transport.Store, "", "localhost/c:v4.2"),
		"containers-storage:c":                  to(transport.Store, "", "c"),
		"containers-storage:[/g]q.io/c:v1":      to(transport.Store, "/g", "q.io/c:v1"),
		"containers-storage:[vfs@/g+/r:vfs.imagestore=/i,x=y]q.io/c:v1": to(transport.Store, "vfs@/g+/r:vfs.imagestore=/i,x=y",
			"q.io/c:v1"),
	}
	for text, want := range good {
		got, err := transports.Parse(text)
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
		"oci:out:not a tag":            "no name for an image",
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
		_, err := transports.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestSources(t *testing.T) {
	for text, want := range map[string]string{
		"quay.io/a/b":           "//quay.io/a/b:latest",
		"docker://quay.io/a:v1": "//quay.io/a:v1",
		"localhost:5000/a:v1":   "//localhost:5000/a:v1",
		"localhost/a":           "//localhost/a:latest",
		"busybox":               "//busybox:latest",
		"docker.io/busybox:1":   "//busybox:1",
		"acme/op":               "//acme/op:latest",
		"quay.io/a:v1@sha256:" + strings.Repeat("a", 64): "//quay.io/a@sha256:" + strings.Repeat("a", 64),
	} {
		n, err := transports.Source(text)
		if err != nil || "//"+reference.FamiliarString(n.Repository) != want {
			t.Errorf("%s: %v, %v", text, n, err)
		}
	}
	for _, bad := range []string{"", "docker:quay.io/a", "QUAY/a", "quay.io/A", "a\nb",
		"quay.io/a@sha512:" + strings.Repeat("a", 128), "quay.io/a@md5:d41d8cd98f00b204e9800998ecf8427e", "oci:",
		"dir:", "quay.io/a:", "https://quay.io/a"} {
		if n, err := transports.Source(bad); err == nil {
			t.Errorf("%q: %v", bad, n)
		}
	}
}

// Without the library what it writes is an error that says so, before anything is there.
func TestWithoutTheLibrary(t *testing.T) {
	dir := t.TempDir()
	from := storetest.NewMemory()
	text := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`)
	top := v1.Descriptor{MediaType: v1.MediaTypeImageIndex, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if err := from.WriteManifest(t.Context(), text, top.MediaType, store.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	to, err := images.BuiltIn().Parse("dir:" + filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	done, err := images.Copy(t.Context(), from, top, []transport.Destination{to}, images.CopyOptions{})
	if !errors.Is(err, errors.ErrUnsupported) || len(done) > 0 {
		t.Errorf("%v, %v", done, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// A table without registries has no names of images there, wherever they are used.
func TestNoRegistries(t *testing.T) {
	layouts := slices.DeleteFunc(images.BuiltIn(), func(r transport.Row) bool { return r.Name == transport.Docker })
	client, err := images.NewClient(images.ClientOptions{Transports: layouts, NoPolicy: true, Options: registries.Options{Temp: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	to := transport.Destination{Transport: transport.OCI, Path: filepath.Join(t.TempDir(), "out")}
	for _, name := range []string{"quay.io/a/b:v1", "docker://quay.io/a/b:v1"} {
		_, opened := client.Open(t.Context(), name)
		_, digested := client.UnverifiedDigest(t.Context(), name)
		_, copied := client.Copy(t.Context(), name, to, referrers.Kinds{Tags: true}, images.CopyOptions{})
		for _, err := range []error{opened, digested, copied} {
			if err == nil || !strings.Contains(err.Error(), "oci:, oci-archive:") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
