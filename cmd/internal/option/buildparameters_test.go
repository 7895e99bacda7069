package option

import (
	"path/filepath"
	"runtime"
	"testing"
)

// What provenance says of paths and names holds on every machine.
func TestPortable(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of other systems")
	}
	for in, want := range map[string]string{
		"catalog":                                "catalog",
		"./a/catalog/":                           "a/catalog",
		"../catalog":                             "catalog",
		"a/../../catalog":                        "catalog",
		"..":                                     ".",
		"/home/me/catalog":                       "catalog",
		"/":                                      "/",
		"oci:/home/me/catalog.oci:v1":            "oci:catalog.oci:v1",
		"oci-archive:/home/me/c.tar":             "oci-archive:c.tar",
		"dir:../x":                               "dir:x",
		"containers-storage:[overlay@/me+/r]x:1": "containers-storage:x:1",
		"etcd=oci:/home/me/etcd.oci:v1":          "etcd=oci:etcd.oci:v1",
		"etcd=/home/me/etcd":                     "etcd=etcd",
		"quay.io/acme/x:v1":                      "quay.io/acme/x:v1",
		"https://user:password@git.example.com/": "https://***@git.example.com/",
		"key=value=more":                         "key=value=more",
	} {
		if got := portable(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if filepath.IsAbs(portable(in)) && in != "/" {
			t.Errorf("%s: got an absolute path", in)
		}
	}
}

func TestCamelCase(t *testing.T) {
	for in, want := range map[string]string{"max-layers": "maxLayers", "server": "server",
		"image-ref-template": "imageRefTemplate"} {
		if got := camelCase(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}
