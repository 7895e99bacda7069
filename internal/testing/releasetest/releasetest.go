// Package releasetest gives tests what a mirror of OpenShift releases reads: a source registry, a server of graphs,
// signatures and graph data, a stand-in for the vendor's hosts; and the recorded runs of oc-mirror v2 with them.
package releasetest

import (
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Host is the registry in the references of the fixture, see [mirrortest.Host].
const Host = mirrortest.Host

// Repositories of the fixture at [Host]: of release images and of their components.
const (
	Releases   = "openshift-release-dev/ocp-release"
	Components = "openshift-release-dev/ocp-v4.0-art-dev"
)

// Digests are those of the images of the fixture.
type Digests struct {
	// Releases are by "VERSION ARCH", such as "4.16.2 amd64".
	Releases map[string]digest.Digest `json:"releases"`
	// Components are by "NAME VERSION ARCH". VERSION is "shared" for pod and X.Y for installer. The component pod-alias
	// has the digest of pod.
	Components map[string]digest.Digest `json:"components"`
	// KubeVirt are the images of the boot image, x86_64 and s390x.
	KubeVirt map[string]digest.Digest `json:"kubevirt"`
	// Nightly is a release without signatures, NAME@DIGEST.
	Nightly string `json:"nightly"`
	// OKD and Base are a release of OKD and the base of the graph image.
	OKD  digest.Digest `json:"okd"`
	Base digest.Digest `json:"ubi"`
	// Moved is what the tag of 4.17.13 shows instead of the signed release.
	Moved digest.Digest `json:"4.17.13 tag moved to"`
	// Signatures are the manifests of signatures, which are under the tags of the images.
	Signatures []digest.Digest `json:"cosign"`
}

// Source starts a registry with the content of the fixture.
func Source(t testing.TB) *testregistry.Registry {
	t.Helper()
	r := testregistry.New(t)
	Fill(t, r)
	return r
}

// Fill adds the content of the fixture to a registry.
func Fill(t testing.TB, r *testregistry.Registry) {
	t.Helper()
	mirrortest.Add(t, r, read(t, "fixture.tar.zst"))
}

// Manifests returns the manifests of the fixture, by repository and digest.
func Manifests(t testing.TB) []mirrortest.Manifest {
	t.Helper()
	return mirrortest.ManifestsIn(t, read(t, "fixture.tar.zst"))
}

// Images returns the digests of the fixture.
func Images(t testing.TB) Digests {
	t.Helper()
	text, err := fs.ReadFile(Files(t), "fixture.json")
	if err != nil {
		t.Fatal(err)
	}
	var d Digests
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Files returns the documents that belong to the fixture: graph/ARCH/CHANNEL.json, where the architecture "okd" is that
// server's, signatures/sha256=HEX/signature-N, keys/release.asc (trusted), keys/other.asc (not), keys/empty.asc,
// graph-data.tar.gz, and fixture.json with the [Digests].
func Files(t testing.TB) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	for name, content := range read(t, "fixture.tar.zst") {
		if rest, ok := strings.CutPrefix(name, "out/"); ok {
			out[rest] = &fstest.MapFile{Data: content, Mode: 0o644}
		}
	}
	return out
}

// Runs returns the recorded files of oc-mirror's runs by their names, such as "r01-m2m-heads/01-m2m.txt". A file that
// only says that it is as that of an earlier step has the content of that one.
func Runs(t testing.TB) map[string][]byte {
	t.Helper()
	files := read(t, "runs.tar.zst")
	resolveOnce.Do(func() { resolved = resolve(files) })
	return resolved
}

// The recorded runs are resolved once per process.
var (
	resolveOnce sync.Once
	resolved    map[string][]byte
)

func resolve(files map[string][]byte) map[string][]byte {
	out := maps.Clone(files)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if of, ok := strings.CutPrefix(string(files[name]), "(as before: "); ok {
			_, ext, _ := strings.Cut(path.Base(name), ".")
			out[name] = out[path.Join(path.Dir(name), strings.TrimSuffix(of, ")\n")+"."+ext)]
		}
	}
	return out
}

// read returns the files of an archive in testdata.
func read(t testing.TB, name string) map[string][]byte {
	t.Helper()
	return recorded.Archive(t, filepath.Join(recorded.SourceRoot(), "internal", "testing", "releasetest", "testdata", name))
}
