package mirror_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
)

// components are the tags of a release of the fixture.
func components(release string) (out []string) {
	for _, name := range []string{"cli", "cluster-version-operator", "installer", "pod", "pod-alias"} {
		out = append(out, release+"-"+name)
	}
	return out
}

// A release is copied whole, with the files by which a cluster uses it; a second run has nothing to do.
func TestRelease(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16}], graph: true")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0, "release 4.16.2 (amd64): published")
	if got := w.Tags("release-images"); !slices.Equal(got, []string{"4.16.2-x86_64"}) {
		t.Errorf("releases: %q", got)
	}
	if got := w.Tags("release"); !slices.Equal(got, components("4.16.2-x86_64")) {
		t.Errorf("components: %q", got)
	}
	if got := w.Tags("graph-image"); !slices.Equal(got, []string{"latest"}) {
		t.Errorf("graph: %q", got)
	}
	resources := filepath.Join(w.Dir, "ws", "working-dir", "cluster-resources")
	digest := releasetest.Images(t).Releases["4.16.2 amd64"].Encoded()
	for name, text := range map[string]string{"signature-configmap.yaml": "sha256-" + digest + "-1: ",
		"signature-configmap.json": `"sha256-` + digest + `-1":"`, "updateService.yaml": "/m/openshift/graph-image:latest",
		"idms-oc-mirror.yaml": "/m/openshift/release\n", "itms-oc-mirror.yaml": "name: itms-release-0"} {
		if got := clitest.ReadFile(t, filepath.Join(resources, name)); !strings.Contains(got, text) {
			t.Errorf("%s has no %q\n%s", name, text, got)
		}
	}
	w.Target.Forget()
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0, "0 copied", "release 4.16.2 (amd64): unchanged")
	if n := w.Target.Count("PUT ") + w.Target.Count("POST "); n > 0 {
		t.Errorf("%d writing requests of a second run: %q", n, w.Target.Requests())
	}
	w.Expect("mirror verify -c set.yaml --workspace ws TARGET", 0, "5 components", "all is there")
}

// Through an archive, without any server: what it brings is verified and chosen again.
func TestReleaseThroughArchive(t *testing.T) {
	for _, form := range []string{"oci", "oc-mirror"} {
		t.Run(form, func(t *testing.T) {
			w := clitest.NewReleaseWorld(t)
			w.Set("set.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}], graph: true, kubeVirtContainer: true")
			w.Expect("mirror run -c set.yaml file://media --archive-format "+form, 0, "release 4.16.1 (amd64): packed")
			w.Offline()
			w.Expect("mirror verify file://media", 0, "2 releases", "all is there")
			w.Expect("mirror run -c set.yaml --from media --workspace other TARGET", 0, "release 4.16.2 (amd64): published")
			want := append(components("4.16.1-x86_64"), components("4.16.2-x86_64")...)
			want = append(want, "4.16.1-x86_64-kube-virt-container", "4.16.2-x86_64-kube-virt-container")
			slices.Sort(want)
			if got := w.Tags("release"); !slices.Equal(got, want) {
				t.Errorf("components: %q", got)
			}
			if got := w.Tags("graph-image"); len(got) != 1 {
				t.Errorf("graph: %q", got)
			}
			w.Expect("mirror verify -c set.yaml --workspace other TARGET", 0, "6 components", "all is there")
			w.Set("more.yaml", "channels: [{name: stable-4.15}]")
			w.Expect("mirror run -c more.yaml --from media --workspace other TARGET", 1, `channel "stable-4.15", amd64: not in this archive (which has "stable-4.16" for amd64)`)
		})
	}
}

// A release with a component that is nowhere is not published; the others are.
func TestReleaseWithoutComponent(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: candidate-4.17, minVersion: 4.17.2, maxVersion: 4.17.2}, {name: stable-4.16}]")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET --cross-channel none", 4,
		"1 release was not published", "not copied: ", "release 4.17.2 (amd64)")
	if got := w.Tags("release-images"); !slices.Equal(got, []string{"4.16.2-x86_64"}) {
		t.Errorf("releases: %q", got)
	}
	if text := clitest.ReadFile(t, filepath.Join(w.Dir, "ws/working-dir/cluster-resources/signature-configmap.yaml")); strings.Count(text, "sha256-") != 1 {
		t.Errorf("signatures of releases that are not there:\n%s", text)
	}
}

// A run that is killed at any request leaves a target on which each release that has its tag is whole, and the run after it
// completes the others.
func TestReleaseKilled(t *testing.T) {
	every := 7
	if testing.Short() {
		every = 40
	}
	for name, lines := range map[string][]string{
		"from registry to registry": {"mirror run -c set.yaml --workspace ws TARGET"},
		"to disk":                   {"mirror run -c set.yaml file://media", "mirror run -c set.yaml --from media --workspace ws TARGET"},
		"from disk":                 {"mirror run -c set.yaml --from media --workspace ws TARGET"},
	} {
		t.Run(name, func(t *testing.T) {
			w := clitest.NewReleaseWorld(t)
			w.Target.Separate(true)
			w.Set("set.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}], graph: true, kubeVirtContainer: true")
			asked := w.Target
			switch name {
			case "from disk":
				w.Expect("mirror run -c set.yaml file://media", 0)
			case "to disk":
				asked = w.Source
			}
			for at := 1; ; at += every {
				cmd := w.Command(lines[0])
				var n atomic.Int32
				asked.Interfere(func(http.ResponseWriter, *http.Request) bool {
					if int(n.Add(1)) == at {
						_ = cmd.Process.Kill()
					}
					return false
				})
				err := cmd.Run()
				asked.Interfere(nil)
				wholeReleases(w)
				if err == nil {
					break
				}
				if at > 2000 || t.Failed() {
					t.Fatalf("request %d", at)
				}
			}
			for _, line := range lines {
				w.Expect(line, 0)
			}
			w.Expect("mirror verify -c set.yaml --workspace ws TARGET", 0, "2 releases", "all is there")
		})
	}
}

// wholeReleases fails the test unless each release with a tag at the target has all its components.
func wholeReleases(w *clitest.ReleaseWorld) {
	w.Helper()
	there := w.Tags("release")
	for _, release := range w.Tags("release-images") {
		for _, tag := range append(components(release), release+"-kube-virt-container") {
			if !slices.Contains(there, tag) {
				w.Errorf("%s is there without %s", release, tag)
			}
		}
	}
}

// Nothing of a release is copied whose signature is not good.
func TestBadSignatures(t *testing.T) {
	for _, version := range []string{"0", "1", "5", "6", "7", "11", "15"} {
		w := clitest.NewReleaseWorld(t)
		w.Set("set.yaml", "channels: [{name: candidate-4.17, minVersion: 4.17."+version+", maxVersion: 4.17."+version+"}]")
		w.Expect("mirror run -c set.yaml --workspace ws TARGET", 1, "no good signature")
		if got := w.Target.Repositories(); len(got) > 0 {
			t.Errorf("4.17.%s: %q", version, got)
		}
	}
}

// A plan asks the graph server alone.
func TestReleasePlan(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}]")
	w.Expect("mirror plan -c set.yaml", 0, "4.16.1", "4.16.2", "WHY", "stable-4.16")
	got := w.Expect("mirror plan -c set.yaml -o json", 0)
	var plan struct {
		Releases []struct{ Version, Architecture, Image, Why string }
	}
	if err := json.Unmarshal([]byte(got.Stdout), &plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Releases) != 2 || plan.Releases[0].Version != "4.16.1" || plan.Releases[0].Architecture != "amd64" ||
		!strings.HasPrefix(plan.Releases[0].Image, releasetest.Host+"/"+releasetest.Releases+"@sha256:") || plan.Releases[0].Why == "" {
		t.Errorf("%+v", plan)
	}
	if n := len(w.Source.Requests()); n > 0 {
		t.Errorf("%d requests to the registry", n)
	}
	for _, request := range w.Servers.Requests() {
		if !strings.HasPrefix(request, "GET /graph?") {
			t.Errorf("%s", request)
		}
	}
}

// Deleting a release leaves what another one names, and the graph image.
func TestDeleteRelease(t *testing.T) {
	w := clitest.NewReleaseWorld(t)
	w.Set("set.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}], graph: true")
	w.Expect("mirror run -c set.yaml --workspace ws TARGET", 0)
	w.Offline()
	w.Set("delete.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1, maxVersion: 4.16.1}], graph: true")
	w.Expect("mirror delete -c delete.yaml --workspace ws --list list.yaml TARGET", 0, "3 images to delete, 4 kept")
	w.Expect("mirror delete --list list.yaml TARGET", 0, "3 deleted")
	if got := w.Tags("release-images"); !slices.Equal(got, []string{"4.16.2-x86_64"}) {
		t.Errorf("releases: %q", got)
	}
	for _, tag := range components("4.16.2-x86_64") {
		if w.Target.Manifest("m/openshift/release", tag) == nil {
			t.Errorf("%s is gone", tag)
		}
	}
	if got := w.Tags("graph-image"); len(got) != 1 {
		t.Errorf("graph: %q", got)
	}
	w.Set("deleterest.yaml", "channels: [{name: stable-4.16, minVersion: 4.16.1}], graph: true")
	w.Expect("mirror delete -c deleterest.yaml --workspace ws --list rest.yaml TARGET", 0, "0 kept")
	w.Expect("mirror delete --list rest.yaml TARGET", 0)
	if got := append(w.Tags("release"), append(w.Tags("release-images"), w.Tags("graph-image")...)...); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
}
