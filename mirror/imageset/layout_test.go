package imageset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPullNameOfLayouts(t *testing.T) {
	manifest := func(hex, arch string) string {
		return `{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` + hex +
			`","size":1,"platform":{"os":"linux","architecture":"` + arch + `"}}`
	}
	for name, c := range map[string]struct {
		manifests []string
		digest    string
		want      string
	}{
		"one":              {[]string{manifest(hexA, "arm64")}, "", ""},
		"none":             {nil, "", ""},
		"for a platform":   {[]string{manifest(hexA, "arm64"), manifest(hexB, "amd64")}, "", ":@1"},
		"the first for it": {[]string{manifest(hexA, "amd64"), manifest(hexB, "amd64")}, "", ":@0"},
		"the first":        {[]string{manifest(hexA, "arm64"), manifest(hexB, "s390x")}, "", ":@0"},
		"by digest":        {[]string{manifest(hexB, "amd64"), manifest(hexA, "arm64")}, "@sha256:" + hexA, ":@1"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "index.json"),
			[]byte(`{"schemaVersion":2,"manifests":[`+strings.Join(c.manifests, ",")+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ref(t, "oci://"+dir+c.digest).PullName(); got != "oci:"+dir+c.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if got := ref(t, "oci://nosuch").PullName(); got != "oci:nosuch" {
		t.Errorf("got %s", got)
	}
}
