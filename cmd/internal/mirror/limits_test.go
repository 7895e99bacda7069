package mirror_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A list of images to delete that the first step writes is read by the second: also one of several megabytes, and one
// at the limit.
func TestMirrorDeleteLargeLists(t *testing.T) {
	w := newMirrorWorld(t)
	catalog := clitest.OpmFor("amd64")
	catalog.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
	var related []string
	for i := range 5850 {
		related = append(related, fmt.Sprintf(`{"name":"i%d","image":"registry.example.com/%s%04d@%s"}`, i,
			strings.Repeat("long/", 46), i, digest.FromString(fmt.Sprint(i))))
	}
	text := strings.NewReplacer("NAME", "alpha-op", `"image":"IMAGE"`, `"image":"registry.example.com/acme/etcd:v1",`+
		`"relatedImages":[`+strings.Join(related, ",")+`]`).Replace(clitest.OneBundle)
	catalog.Layers = append(catalog.Layers, map[string]string{"configs/alpha-op/catalog.json": text})
	w.Registry.AddImage(t, "olm/acme/catalog", "v1", catalog)
	if got := w.Run("mirror delete -c delete.yaml --without-record --list list.yaml TARGET"); got.Status != 0 {
		t.Fatalf("%.2000s", got.Stderr)
	}
	if list := clitest.ReadFile(t, filepath.Join(w.Dir, "list.yaml")); len(list) < 4<<20 {
		t.Errorf("the list has %d bytes", len(list))
	}
	if got := w.Run("mirror delete --without-record --list list.yaml --dry-run TARGET"); got.Status != 0 ||
		!strings.Contains(got.Stderr, "5851 images: ") {
		t.Errorf("%.2000s", got.Stderr)
	}
	list := "apiVersion: mirror.openshift.io/v2alpha1\nitems: []\nkeptItems:\n- imageName: docker://x/y:z\n" +
		"  imageReference: " + w.Target + "/y:z\n  reason: " + strings.Repeat("x", 64<<20-300) + "\nkind: DeleteImageList\n"
	w.Write("list.yaml", list)
	for _, line := range []string{"mirror delete --without-record --list list.yaml TARGET",
		"oc-mirror delete --delete-yaml-file list.yaml --dest-tls-verify=false TARGET"} {
		if got := w.Run(line); got.Status != 0 {
			t.Errorf("%.2000s", got.Stderr)
		}
	}
	w.Write("list.yaml", strings.Replace(list, "xx", strings.Repeat("x", 1000), 1))
	if got := w.Run("mirror delete --without-record --list list.yaml TARGET"); got.Status != 1 ||
		!strings.Contains(got.Stderr, "list.yaml: limit exceeded: longer than 67108864 bytes") {
		t.Errorf("%.2000s", got.Stderr)
	}
}

// Files that other commands write are read at more than the 4 MiB of small files: inventories, mappings and
// registries.conf.
func TestMirrorLargeInputs(t *testing.T) {
	w := newMirrorWorld(t)
	var b strings.Builder
	b.WriteString(`{"inventory":"registry","version":1,"registry":"mirror.example.com","repositories":[`)
	for i := range 40_000 {
		d := digest.FromString(fmt.Sprint(i))
		fmt.Fprintf(&b, "%s\n"+`{"name":"a/%d","tags":{"v1":%q},"manifests":[%q],"blobs":[[%q,3]]}`,
			map[bool]string{true: "", false: ","}[i == 0], i, d, d, d)
	}
	b.WriteString("\n]}\n")
	w.Write("inventory.json", b.String())
	if got := w.Run("mirror run -c imageset.yaml --against inventory.json file://media"); got.Status != 0 || b.Len() < 8<<20 {
		t.Errorf("%d bytes: %+v", b.Len(), got)
	}
	w.Registry.AddImage(t, "a/b", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
	host := w.Registry.Host()
	w.Write("mapping.txt", strings.Repeat("# a line\n", 1<<20)+"docker://"+host+"/a/b:v1=docker://"+host+"/c/d:v1\n")
	if got := w.Run("copy --from-file mapping.txt"); got.Status != 0 || len(w.Registry.Tags("c/d")) != 1 {
		t.Errorf("%+v", got)
	}
	w.Write("registries.conf", clitest.ReadFile(t, w.Conf)+strings.Repeat("# a line\n", 1<<20))
	v := &clitest.MirrorWorld{T: t, Dir: w.Dir, Conf: filepath.Join(w.Dir, "registries.conf"), Target: w.Target, Registry: w.Registry}
	if got := v.Run("mirror plan -c imageset.yaml"); got.Status != 0 {
		t.Errorf("%+v", got)
	}
}

// An image set that has no room for the digests of its catalogs is not written with them: it could not be read.
func TestMirrorPinnedLimit(t *testing.T) {
	w := newMirrorWorld(t)
	set := strings.Replace(clitest.MirrorImageSet, "mirror:\n", "mirror:\n  blockedImages:\n  - name: "+
		strings.Repeat("x", 900)+"\n", 1)
	rows := strings.Repeat("  - name: "+strings.Repeat("x", 900)+"\n", 4600)
	set = strings.Replace(set, "  operators:\n", rows+"  operators:\n", 1)
	room := 4<<20 - len(set) - 20
	w.Write("imageset.yaml", strings.Replace(set, "  - name: x", "  - name: "+strings.Repeat("x", room), 1))
	got := w.Run("mirror run -c imageset.yaml --workspace ws TARGET")
	found, err := filepath.Glob(filepath.Join(w.Dir, "ws/working-dir/isc_pinned_*"))
	if err != nil || got.Status != 0 || len(found) > 0 || !strings.Contains(got.Stderr, "is not written: with digests") {
		t.Errorf("%q, %v: %d %.2000s", found, err, got.Status, got.Stderr)
	}
}
