package clitest

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Whole mirrors the archive to an empty registry and returns what that has, after a look whether the archive is whole.
func (w *SignedWorld) Whole(form string) []string {
	w.Helper()
	target := testregistry.New(w.T)
	w.Done("mirror verify file://media")
	w.Done(FromMedia + target.Host() + " --workspace " + w.T.TempDir())
	if form == "oc-mirror" {
		other := testregistry.New(w.T)
		got := RunProgram(w.T, w.Dir, "oc-mirror", "--v2", "-c", "../set.yaml", "--from", "file://media",
			"docker://"+other.Host(), "--dest-tls-verify=false")
		if have := Content(other); got.Status != 0 || !slices.Equal(have, Content(target)) {
			w.Errorf("%+v: %q", got, have)
		}
	}
	return Content(target)
}

// Remove removes an image from the source.
func (w *SignedWorld) Remove(name string) {
	w.Helper()
	repository, tag, _ := strings.Cut(strings.TrimPrefix(name, "/"), ":")
	w.Source.Untag(repository, tag)
}

// ChangeSet changes the image set.
func (w *SignedWorld) ChangeSet(from, to string) {
	w.Helper()
	path := filepath.Join(w.Top, "set.yaml")
	text := ReadFile(w.T, path)
	if !strings.Contains(text, from) {
		w.Fatalf("%q has no %q", text, from)
	}
	WriteFile(w.T, path, strings.Replace(text, from, to, 1))
}

// OtherBundle replaces the catalog by one whose second package has a bundle of its own.
func (w *SignedWorld) OtherBundle(d string) {
	w.Helper()
	base := OpmFor("amd64")
	base.Labels = map[string]string{TestConfigsLabel: "/configs"}
	base.Layers = append(base.Layers, map[string]string{
		"configs/etcd/catalog.json": strings.NewReplacer("NAME", "etcd", "IMAGE", w.Images[1]).Replace(OneBundle),
		"configs/old/catalog.json": strings.NewReplacer("NAME", "old", "IMAGE", w.Source.Host()+"/acme/old@"+d).
			Replace(OneBundle)})
	w.Source.AddImage(w.T, "acme/catalog", "v1", base)
}
