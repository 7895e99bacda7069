package mirror_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/render"
)

// atTarget are options that look into the target, with the workspace of the runs that mirrored to it. The function that
// is returned closes what they have.
func (w *world) atTarget() (o mirror.Options, end func()) {
	w.Helper()
	skip := true
	config := registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: config, Temp: w.TempDir()},
		AnyPlatform: true})
	w.fatal(err)
	o, closeRun := w.options(w.Context(), mirror.ToMirror)
	o.Render = render.Options{Images: client}
	return o, func() { w.fatal(client.Close()); closeRun() }
}

// verify verifies the target.
func (w *world) verify(changes ...func(*mirror.VerifyOptions)) *mirror.Verification {
	w.Helper()
	o, end := w.atTarget()
	defer end()
	vo := mirror.VerifyOptions{Target: o.Target, Remote: o.Remote, Workspace: o.Workspace, Render: o.Render, Set: o.Set,
		Jobs: 2}
	for _, c := range changes {
		c(&vo)
	}
	v, err := vo.Verify(w.Context())
	w.fatal(err)
	return v
}

// remove removes a manifest from the target.
func (w *world) remove(repository, digest string) {
	w.Helper()
	q, err := http.NewRequestWithContext(w.Context(), http.MethodDelete, "http://"+w.target.Host()+"/v2/"+repository+
		"/manifests/"+digest, nil)
	w.fatal(err)
	resp, err := http.DefaultClient.Do(q)
	w.fatal(err)
	w.fatal(resp.Body.Close())
}

// extra adds an image to the source and to the image set.
func (w *world) extra() {
	amd64 := v1.Platform{OS: "linux", Architecture: "amd64"}
	w.source.AddImage(w.T, "extra/tool", "v1", testregistry.Image{Platform: amd64})
	w.set += "  additionalImages:\n  - name: registry.example.com/extra/tool:v1\n"
}

func TestVerify(t *testing.T) {
	w := newWorld(t, small)
	w.extra()
	w.must(mirror.ToMirror)
	v := w.verify()
	if !v.Good() || v.Catalogs[0].Bundles != 9 || v.Catalogs[0].Packages != 3 || v.Images != len(w.source.Images)+2 {
		t.Errorf("%+v", v)
	}
	v = w.verify(func(o *mirror.VerifyOptions) { o.DryRun = true })
	if len(v.Repositories) == 0 || v.Repositories[0].Bytes == 0 {
		t.Errorf("the sizes: %+v", v.Repositories)
	}

	of := w.source.Images[0]
	w.remove("to/"+of.Repository, of.Digest.String())
	w.target.Untag("to/extra/tool", "v1")
	v = w.verify(func(o *mirror.VerifyOptions) { o.ManifestsOnly = true })
	if v.Good() || len(v.Faults) != 2 {
		t.Fatalf("%+v", v.Faults)
	}
	for _, f := range v.Faults {
		if !slices.Contains(f.NeededBy, of.Bundle) && !slices.Contains(f.NeededBy, "additional image") {
			t.Errorf("%+v", f)
		}
	}

	// What was published for another image set is said to be so.
	set := w.set
	w.set = strings.Replace(w.set, "{name: op0, minVersion: 0.0.1}", "{name: nothing}", 1)
	if c := w.verify().Catalogs[0]; !strings.Contains(strings.Join(c.Missing, " "), "another selection") {
		t.Errorf("%+v", c)
	}
	w.set = set

	none := imageset.Ref{Transport: imageset.Docker, Host: w.host, Path: "to/none", Tag: "v1"}
	v = w.verify(func(o *mirror.VerifyOptions) { o.Catalogs = []imageset.Ref{none} })
	if v.WrongCatalogs() != 1 {
		t.Errorf("%+v", v.Catalogs)
	}
	o, end := w.atTarget()
	defer end()
	if _, err := (mirror.VerifyOptions{Target: o.Target, Remote: o.Remote}).Verify(t.Context()); !errors.Is(err,
		mirror.ErrNoCatalog) {
		t.Errorf("got %v", err)
	}
}

// The policy is asked about each image at the target.
func TestVerifyPolicy(t *testing.T) {
	w := newWorld(t, small)
	w.must(mirror.ToMirror)
	file := filepath.Join(w.dir, "policy.json")
	w.fatal(os.WriteFile(file, []byte(`{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker":{"`+
		w.host+`/to/synthetic/op1-image0":[{"type":"reject"}]}}}`), 0o600))
	skip := true
	client, err := images.NewClient(images.ClientOptions{Policy: policy.Read, PolicyFile: file, AnyPlatform: true,
		Options: registries.Options{Temp: t.TempDir(), Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}}})
	w.fatal(err)
	defer client.Close()
	v := w.verify(func(o *mirror.VerifyOptions) { o.Policy = client })
	if len(v.Faults) == 0 {
		t.Error("nothing is refused")
	}
	for _, f := range v.Faults {
		if !strings.Contains(f.Image, "op1-image0") {
			t.Errorf("%+v", f)
		}
	}
}

// An archive is verified alone, in both forms, and as one that leaves out what the other side has.
func TestVerifyArchive(t *testing.T) {
	for _, form := range []medium.Form{medium.OCI, medium.OCMirror} {
		w := newWorld(t, small)
		w.change = func(o *mirror.Options) { o.Medium.Form = form }
		verify := func(set string) *mirror.Verification {
			t.Helper()
			o := mirror.VerifyOptions{Archive: filepath.Join(w.dir, "medium")}
			if set != "" {
				o.Set = w.parse(set)
			}
			v, err := o.Verify(t.Context())
			w.fatal(err)
			return v
		}
		w.must(mirror.ToDisk)
		if v := verify(w.set); !v.Good() || v.Images == 0 || len(v.Catalogs) == 0 {
			t.Errorf("%s: %+v", form, v)
		}
		if v := verify(strings.Replace(w.set, "op0,", "nothing,", 1)); v.Good() {
			t.Errorf("%s: an image set that asks for more is there: %+v", form, v.Catalogs)
		}
		v, err := mirror.VerifyOptions{Archive: filepath.Join(w.dir, "medium"), DryRun: true}.Verify(t.Context())
		if err != nil || len(v.Repositories) == 0 {
			t.Errorf("%s: the sizes: %+v, %v", form, v, err)
		}
		w.must(mirror.FromDisk)
		w.takeAway()
		w.upgrade(small)
		w.must(mirror.ToDisk)
		if v := verify(""); !v.Good() || v.LeftOut == 0 {
			t.Errorf("%s, a delta: %+v", form, v)
		}
	}
}

// What an archive lacked when it was written, and what was damaged since, is said with the image.
func TestVerifyArchiveWithFaults(t *testing.T) {
	w, _ := broken(t)
	w.incomplete(mirror.ToDisk)
	v, err := mirror.VerifyOptions{Archive: filepath.Join(w.dir, "medium")}.Verify(t.Context())
	w.fatal(err)
	lacks := 0
	for _, f := range v.Faults {
		if strings.Contains(strings.Join(f.Problems, " "), "it was not there when the archive was written") {
			lacks++
		}
	}
	if lacks < len(faults) {
		t.Errorf("%d of %d images that were not there are reported: %+v", lacks, len(faults), v.Faults)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "medium", "mirror_000001.tar"))
	w.fatal(err)
	at := strings.Index(string(text), string(w.source.Manifest(w.source.Images[0].Repository,
		w.source.Images[0].Digest.String()))) // a manifest
	text[at+3] ^= 1
	w.fatal(os.WriteFile(filepath.Join(w.dir, "medium", "mirror_000001.tar"), text, 0o600))
	if v, err = (mirror.VerifyOptions{Archive: filepath.Join(w.dir, "medium")}).Verify(t.Context()); err != nil ||
		len(v.Faults) <= lacks {
		t.Errorf("%v, %+v", err, v)
	}
}

// deletions lists the images of packages to delete.
func (w *world) deletions(packages string, changes ...func(*mirror.DeleteOptions)) (*mirror.DeleteList,
	[]mirror.Problem) {
	w.Helper()
	o, end := w.atTarget()
	defer end()
	set, err := imageset.Parse([]byte(`kind: DeleteImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
delete:
  operators:
  - catalog: registry.example.com/synthetic/catalog:v1
    packages: [`+packages+`]
  additionalImages:
  - name: registry.example.com/extra/tool:v1
`), "delete.yaml", imageset.Delete, imageset.Options{})
	w.fatal(err)
	o.Set = set
	do := mirror.DeleteOptions{Options: o, Signatures: true}
	for _, c := range changes {
		c(&do)
	}
	list, problems, err := do.ListDeletions(w.Context())
	w.fatal(err)
	return list, problems
}

// delete deletes what a list has, and counts what became of the images.
func (w *world) delete(list *mirror.DeleteList, dry bool) map[string]int {
	w.Helper()
	o, end := w.atTarget()
	defer end()
	o.DryRun = dry
	got := map[string]int{}
	done, err := mirror.DeleteOptions{Options: o,
		Done: func(d mirror.Deleted) { got[d.Status]++ }}.Delete(w.Context(), list, o.Target)
	w.fatal(err)
	if dry && len(done.Repositories) == 0 || len(done.Images) != len(list.Items) {
		w.Errorf("%+v", done)
	}
	return got
}

// What a package alone needs is deleted with its signatures, and nothing else: the others are whole afterwards.
func TestDelete(t *testing.T) {
	w := newWorld(t, small)
	w.extra()
	w.must(mirror.ToMirror)
	before := tags(w.target)
	list, problems := w.deletions("{name: op0, minVersion: 0.0.1}, {name: nothing}")
	if len(list.Items) == 0 || len(list.Kept) > 0 || len(list.Catalogs[0].Bundles) != 3 || len(problems) != 2 {
		t.Fatalf("%+v, %v", list, problems)
	}
	text, err := list.MarshalYAML()
	w.fatal(err)
	file := filepath.Join(w.dir, "list.yaml")
	w.fatal(os.WriteFile(file, text, 0o600))
	read, err := mirror.ReadDeleteList(t.Context(), file)
	w.fatal(err)
	if !slices.Equal(read.Items, list.Items) || read.Workspace != list.Workspace {
		t.Errorf("the file has %+v", read)
	}
	if got := w.delete(read, true); got["planned"] != len(list.Items) {
		t.Errorf("%v for %d images", got, len(list.Items))
	}
	w.same(before)
	if got := w.delete(read, false); got["deleted"] != len(list.Items) {
		t.Errorf("%v for %d images", got, len(list.Items))
	}
	after := tags(w.target)
	for name := range before {
		gone := strings.Contains(name, "/op0-") || strings.Contains(name, "extra/tool")
		if gone == (after[name] != "") {
			t.Errorf("%s is there: %v", name, !gone)
		}
	}
	if got := w.delete(read, false); got["absent"] != len(list.Items) {
		t.Errorf("a second time: %v", got)
	}
	w.must(mirror.ToMirror)
	w.same(before)
	w.servable()
}

// Of one bundle the image that others of the package have stays, and what is needed since the list was made.
func TestDeleteKeeps(t *testing.T) {
	w := newWorld(t, small)
	w.extra()
	w.must(mirror.ToMirror)
	list, _ := w.deletions("{name: op0, minVersion: 1.0.0, maxVersion: 1.0.0}")
	if len(list.Kept) == 0 || !strings.Contains(list.Kept[0].Reason, "bundle op0.v1.") {
		t.Fatalf("%+v", list.Kept)
	}
	tool := w.target.Manifest("to/extra/tool", "v1")
	w.target.AddManifest("to/extra/tool", "stable", "", tool)
	if got := w.delete(list, false); got["kept"] != 1 {
		t.Errorf("%v", got)
	}
	if all, _ := w.deletions("{name: op0, minVersion: 1.0.0, maxVersion: 1.0.0}",
		func(o *mirror.DeleteOptions) { o.Shared = mirror.DeleteShared }); len(all.Kept) != 0 || !all.Shared {
		t.Errorf("%+v", all.Kept)
	}
}

// A list about another target, or of another form, is refused, and nothing is deleted without a record.
func TestDeleteRefuses(t *testing.T) {
	w := newWorld(t, mirrortest.Shape{})
	w.extra()
	w.must(mirror.ToMirror)
	list, _ := w.deletions("{name: op0}")
	o, end := w.atTarget()
	defer end()
	elsewhere := o.Target
	elsewhere.Path = "other"
	_, err := mirror.DeleteOptions{Options: o}.Delete(t.Context(), list, elsewhere)
	if fault.ClassOf(err) != fault.Input {
		t.Errorf("got %v", err)
	}
	without := mirror.DeleteOptions{Options: o}
	without.Workspace = nil
	if _, err := without.Delete(t.Context(), list, o.Target); !errors.Is(err, mirror.ErrBusy) {
		t.Errorf("the workspace that the list names, which is open: %v", err)
	}
	alone := *list
	alone.Workspace = ""
	if _, err := without.Delete(t.Context(), &alone, o.Target); !errors.Is(err, mirror.ErrNoRecord) {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(w.dir, "list.yaml")
	for _, text := range []string{"kind: Other\n", "kind: DeleteImageList\nitems: 1\n", "{"} {
		w.fatal(os.WriteFile(file, []byte(text), 0o600))
		if _, err := mirror.ReadDeleteList(t.Context(), file); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
