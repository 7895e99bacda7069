package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/libimage"
	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// attachmentsOn is a directory of registries.d in which attached signatures are looked for.
func attachmentsOn(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "default.yaml"), "default-docker:\n  use-sigstore-attachments: true\n")
	return dir
}

// vectorRegistry serves a vector, and returns a configuration with which it is read as a repository.
func vectorRegistry(t testing.TB, vector, repository string) (*testregistry.Registry, registries.Config) {
	t.Helper()
	reg := testregistry.New(t)
	reg.AddLayout(t, supplytest.Vectors(t)[vector])
	conf := filepath.Join(t.TempDir(), "registries.conf")
	write(t, conf, fmt.Sprintf("[[registry]]\nprefix = %q\nlocation = \"%s/layout\"\ninsecure = true\n", repository,
		reg.Host()))
	return reg, registries.Config{RegistriesConf: conf, RegistriesDir: attachmentsOn(t)}
}

// signedVector is a vector, and the answer of a policy.
type signedVector struct {
	vector, policy, refused string // refused is empty for what is accepted
}

var signedVectors = []signedVector{
	{"sig-cimage-p256", "p256-default", ""},
	{"sig-cimage-p256", "p256-repo", ""},
	{"sig-cimage-p256", "exactrepo", ""},
	{"sig-cimage-p256", "p256-exactrepo-other", "is not accepted"},
	{"sig-cimage-p256", "p256-other-default", "invalid signature"},
	{"sig-cimage-p256", "p256-other-repo", "invalid signature"},
	{"sig-cimage-p256", "remap", ""},
	{"sig-cimage-rsa2048", "rsa2048-default", ""},
	{"sig-cimage-rsa2048", "rsa2048-repo", ""},
	{"sig-cimage-rsa2048", "p256-default", "signature"},
	{"sig-cimage-ed25519", "ed25519-default", ""},
	{"sig-cimage-ed25519", "ed25519-repo", ""},
	{"sig-cimage-two-signers", "p256-default", ""},
	{"sig-cimage-two-signers", "p256-other-default", ""},
	{"sig-bad-then-good", "p256-default", ""},
	{"sig-bad-then-good", "p256-repo", ""},
	{"sig-min-optional-null", "p256-default", ""},
	{"sig-pki-valid", "pki", ""},
	{"sig-pki-valid", "pki-other", "Required email"},
	{"sig-ed25519ph", "ed25519-default", "failed to verify signature"},
	{"cosign-sig-ed25519", "ed25519-repo", "failed to verify signature"},
	{"cosign-sig-p256", "p256-default", "is not accepted"},
	{"cosign-sig-p256", "p256-repo", ""},
	{"unsigned", "p256-default", "A signature was required"},
	{"bundle-min-p256", "p256-default", "A signature was required"},
	{"neg-pki-expired", "pki", "certificate has expired"},
	{"neg-sig-annotation-missing", "p256-default", "missing dev.cosignproject.cosign/signature"},
	{"neg-sig-blob-corrupt", "p256-default", "signatures"},
	{"neg-sig-duplicate-keys", "p256-default", "Duplicate key"},
	{"neg-sig-other-digest", "p256-default", "does not match"},
	{"neg-sig-other-key", "p256-default", "invalid signature"},
	{"neg-sig-other-repository", "p256-default", "is not accepted"},
	{"neg-sig-other-repository", "p256-repo", "is not accepted"},
	{"neg-sig-rsa-sha512", "rsa2048-default", "verification error"},
	{"neg-sig-tampered-payload", "p256-default", "invalid signature"},
	{"neg-sig-type-atomic", "p256-default", "Unrecognized signature type"},
	{"neg-sig-wrong-layer-type", "p256-default", "A signature was required"},

	{"sig-cimage-index-all", "p256-default", ""},
	{"sig-cimage-index-all", "p256-repo", ""},
	{"sig-cimage-index-all", "p256-other-default", "invalid signature"},
	{"sig-index-only-list", "p256-default", ""},
	{"cosign-sig-index-recursive", "p256-default", "is not accepted"},
	{"cosign-sig-index-recursive", "p256-repo", ""},
	{"multi-unsigned", "p256-default", "A signature was required"},
}

// name returns the name that the vector is signed under.
func (v signedVector) name() (repository, tag string) {
	if strings.Contains(v.vector, "-index-") || strings.Contains(v.vector, "multi") {
		return supplytest.IndexRepository, "multi"
	}
	return supplytest.Repository, "v1"
}

// check compares an answer with the one that is required.
func (v signedVector) check(t *testing.T, what string, err error) {
	t.Helper()
	switch {
	case v.refused == "" && err == nil, v.refused != "" && err != nil && strings.Contains(err.Error(), v.refused) &&
		(errors.Is(err, trust.ErrPolicy) || v.vector == "neg-sig-blob-corrupt"):
	default:
		t.Errorf("%s: got %v, want %q", what, err, v.refused)
	}
}

// ways reads an image in every way that the client has, and returns by the name of the way whether it was refused.
func ways(t *testing.T, o ClientOptions, name string) map[string]error {
	t.Helper()
	all := map[string]error{
		"open": func() error {
			img, err := quick(t, o).Image(t.Context(), name, v1.Platform{})
			if err == nil {
				err = img.Close()
			}
			return err
		}(),
		"another platform": func() error {
			img, err := quick(t, o).Image(t.Context(), name, v1.Platform{OS: "linux", Architecture: "arm64"})
			if err == nil {
				err = img.Close()
			}
			return err
		}(),
		"describe": func() error { _, err := quick(t, o).Describe(t.Context(), name); return err }(),
		"survey": func() error {
			s, err := quick(t, o).Open(t.Context(), name)
			if err == nil {
				_, err = s.Survey(t.Context())
				err = errors.Join(err, s.Close())
			}
			return err
		}(),
		"reference": readByReference(t, quick(t, o), name),
	}
	if asked, err := transports.Source(name); err == nil && transports.CheckAttached(asked) == nil {
		all["copy"] = copyFromSource(t, quick(t, o), name)
	}
	return all
}

// copyFromSource copies an image with all that is in it to a registry.
func copyFromSource(t *testing.T, c *Client, name string) error {
	t.Helper()
	src, err := c.Open(t.Context(), name)
	if err != nil {
		return err
	}
	defer src.Close()
	remote, err := registries.New(t.Context(), registries.Options{Registry: insecure(), Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	to, err := remote.Repository(testregistry.New(t).Host() + "/app")
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.CopyOne(t.Context(), src, src.Top, to, "v1", store.CopyOptions{})
	return err
}

// readByReference reads an image, and all images of an index, as the library does.
func readByReference(t *testing.T, c *Client, name string) error {
	t.Helper()
	opened, err := c.Open(t.Context(), name)
	if err != nil {
		return err
	}
	defer opened.Close()
	src, err := libimage.Reference(opened, opened.Top).NewImageSource(t.Context(), nil)
	if err != nil {
		return err
	}
	text, _, err := src.GetManifest(t.Context(), nil)
	if err != nil {
		return err
	}
	var index v1.Index
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	for _, d := range index.Manifests {
		if _, _, err := src.GetManifest(t.Context(), &d.Digest); err != nil {
			return err
		}
	}
	return nil
}

// Policies with keys accept the images that were signed with them, and no others, from a registry.
func TestSignedImages(t *testing.T) {
	policies := supplytest.Policies(t)
	for _, v := range signedVectors {
		t.Run(v.vector+" "+v.policy, func(t *testing.T) {
			repository, tag := v.name()
			reg, access := vectorRegistry(t, v.vector, repository)
			o := ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: filepath.Join(policies, v.policy+".json")}
			for what, err := range ways(t, o, repository+":"+tag) {
				v.check(t, what, err)
			}
			top := digest.FromBytes(reg.Manifest("layout", tag)).String()
			img, err := quick(t, o).Image(t.Context(), repository+"@"+top, v1.Platform{})
			if err == nil {
				err = img.Close()
			}
			v.check(t, "by digest", err)
			if n := reg.Count("GET /v2/layout/manifests/" + tag); n != 6 {
				t.Errorf("the manifest was read %d times in 6 ways", n)
			}
		})
	}
}

// layoutPolicy is a policy in which images of files need a signature of the repository by the key of another policy.
func layoutPolicy(t *testing.T, policies, name, repository string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(policies, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Transports map[string]map[string][]map[string]any
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	rules := p.Transports["docker"]["registry.example.com"]
	if id, ok := rules[0]["signedIdentity"].(map[string]any); !ok || id["type"] != "exactRepository" {
		rules[0]["signedIdentity"] = map[string]any{"type": "exactRepository", "dockerRepository": repository}
	}
	out, err := json.Marshal(map[string]any{"default": rules})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policy.json")
	write(t, file, string(out))
	return file
}

// The same from layouts, archives of them, and directories of the containers tools. They have no name that a signature
// could be for: a policy names the repository.
func TestSignedImagesInFiles(t *testing.T) {
	policies := supplytest.Policies(t)
	for _, v := range signedVectors {
		if v.policy == "p256-default" && strings.HasPrefix(v.vector, "cosign-") {
			continue // with the name of a repository in the policy, signatures need no tag
		}
		t.Run(v.vector+" "+v.policy, func(t *testing.T) {
			repository, tag := v.name()
			policy := layoutPolicy(t, policies, v.policy, repository)
			dir := supplytest.Unpack(t, v.vector)
			archive := filepath.Join(t.TempDir(), "image.tar")
			packLayout(t, supplytest.Vectors(t)[v.vector], archive)
			for _, name := range []string{"oci:" + dir + ":" + tag, "oci-archive:" + archive + ":" + tag} {
				for what, err := range ways(t, ClientOptions{PolicyFile: policy}, name) {
					v.check(t, name[:5]+what, err)
				}
			}
		})
	}
}

// packLayout writes files as an archive.
func packLayout(t *testing.T, files map[string][]byte, archive string) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644,
			Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, archive, b.String())
}

// Of an index whose signature is not accepted, every image that is read must be signed, and no other.
func TestInstancesOfAnIndexThatIsNotSigned(t *testing.T) {
	files := supplytest.Vectors(t)["sig-cimage-index-all"]
	policies := supplytest.Policies(t)
	var index v1.Index
	if err := json.Unmarshal(files[v1.ImageIndexFile], &index); err != nil {
		t.Fatal(err)
	}
	top := slices.IndexFunc(index.Manifests,
		func(d v1.Descriptor) bool { return d.Annotations[v1.AnnotationRefName] == "multi" })
	list := index.Manifests[top].Digest
	var in v1.Index
	if err := json.Unmarshal(files["blobs/sha256/"+list.Encoded()], &in); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		signed  []int // of the two images
		refused map[string]bool
	}{
		{"both images", []int{0, 1}, nil},
		{"the first", []int{0}, map[string]bool{"another platform": true, "describe": true, "survey": true,
			"reference": true, "copy": true}},
		{"the second", []int{1},
			map[string]bool{"open": true, "describe": true, "survey": true, "reference": true, "copy": true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var keep v1.Index
			if err := json.Unmarshal(files[v1.ImageIndexFile], &keep); err != nil {
				t.Fatal(err)
			}
			keep.Manifests = slices.DeleteFunc(keep.Manifests, func(d v1.Descriptor) bool {
				tag := d.Annotations[v1.AnnotationRefName]
				signs := func(i int) bool { return strings.Contains(tag, in.Manifests[i].Digest.Encoded()) }
				return tag != "multi" && !slices.ContainsFunc(c.signed, signs)
			})
			text, err := json.Marshal(keep)
			if err != nil {
				t.Fatal(err)
			}
			changed := map[string][]byte{}
			for name, content := range files {
				changed[name] = content
			}
			changed[v1.ImageIndexFile] = text
			archive := filepath.Join(t.TempDir(), "image.tar")
			packLayout(t, changed, archive)
			o := ClientOptions{PolicyFile: layoutPolicy(t, policies, "p256-default", supplytest.IndexRepository)}
			for what, err := range ways(t, o, "oci-archive:"+archive+":multi") {
				if c.refused[what] != errors.Is(err, trust.ErrPolicy) || !c.refused[what] && err != nil {
					t.Errorf("%s: got %v", what, err)
				}
			}
		})
	}
}

// An index in an index is signed: it covers its own images and no others.
func TestSignedIndexInAnIndex(t *testing.T) {
	files := map[string][]byte{}
	for name, content := range supplytest.Vectors(t)["sig-index-only-list"] {
		files[name] = content
	}
	var index v1.Index
	if err := json.Unmarshal(files[v1.ImageIndexFile], &index); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(index.Manifests,
		func(d v1.Descriptor) bool { return d.Annotations[v1.AnnotationRefName] == "multi" })
	inner := index.Manifests[at]
	add := func(tag string, of ...v1.Descriptor) {
		text := mustJSON(t, v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
			Manifests: of})
		d := v1.Descriptor{MediaType: v1.MediaTypeImageIndex, Digest: digest.FromBytes(text), Size: int64(len(text)),
			Annotations: map[string]string{v1.AnnotationRefName: tag}}
		files["blobs/sha256/"+d.Digest.Encoded()] = text
		index.Manifests = append(index.Manifests, d)
	}
	nested := v1.Descriptor{MediaType: inner.MediaType, Digest: inner.Digest, Size: inner.Size}
	nested.Platform = &v1.Platform{OS: "linux", Architecture: "amd64"}
	add("nested", nested)
	var in v1.Index
	if err := json.Unmarshal(files["blobs/sha256/"+inner.Digest.Encoded()], &in); err != nil {
		t.Fatal(err)
	}
	add("beside", append([]v1.Descriptor{nested}, in.Manifests[1])...)
	files[v1.ImageIndexFile] = mustJSON(t, index)
	archive := filepath.Join(t.TempDir(), "image.tar")
	packLayout(t, files, archive)
	c := quick(t, ClientOptions{
		PolicyFile: layoutPolicy(t, supplytest.Policies(t), "p256-default", supplytest.IndexRepository)})
	src, err := opened(t, c, "oci-archive:"+archive+":nested").NewImageSource(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, d := range []digest.Digest{inner.Digest, in.Manifests[0].Digest, in.Manifests[1].Digest} {
		if _, _, err := src.GetManifest(t.Context(), &d); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
	if err := openOnce(t.Context(), c, "oci-archive:"+archive+":nested"); err != nil {
		t.Error(err)
	}
	if _, err := c.Open(t.Context(), "oci-archive:"+archive+":beside"); !errors.Is(err, trust.ErrPolicy) {
		t.Errorf("an image beside the signed index: got %v", err)
	}
}
