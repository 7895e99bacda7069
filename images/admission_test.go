package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/copy"
	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/oci/layout"
	"go.podman.io/image/v5/signature"

	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
)

const signedImage = supplytest.Repository + ":v1"

// openOnce opens an image with a client, and closes it.
func openOnce(ctx context.Context, c *Client, name string) error {
	img, err := c.Image(ctx, name, v1.Platform{})
	if err != nil {
		return err
	}
	return img.Close()
}

// A failure to read signatures is never an answer of the policy: neither that the image is not signed, nor, for an
// index, that its images have to be.
func TestFailuresToReadSignatures(t *testing.T) {
	policies := supplytest.Policies(t)
	for _, vector := range []string{"sig-cimage-p256", "sig-cimage-index-all"} {
		v := signedVector{vector: vector}
		repository, tag := v.name()
		for what, part := range map[string]string{"manifest": ".sig", "payload": "/blobs/"} {
			for _, status := range []int{400, 401, 403, 429, 500, 503, 404} {
				if what == "manifest" && status == 404 {
					continue // that is none
				}
				t.Run(fmt.Sprint(vector, what, status), func(t *testing.T) {
					reg, access := vectorRegistry(t, vector, repository)
					reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
						refuse := strings.Contains(r.URL.Path, part)
						if refuse {
							w.WriteHeader(status)
						}
						return refuse
					})
					c := quick(t,
						ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: filepath.Join(policies, "p256-default.json")})
					err := openOnce(t.Context(), c, repository+":"+tag)
					if !errors.Is(err, ErrRegistry) || errors.Is(err, trust.ErrPolicy) {
						t.Errorf("got %v", err)
					}
				})
			}
		}
	}
}

// Signatures are read with the client's retries.
func TestSignaturesAreReadAgain(t *testing.T) {
	reg, access := vectorRegistry(t, "sig-cimage-p256", supplytest.Repository)
	var failed atomic.Int32
	reg.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, ".sig") || failed.Add(1) > 2 {
			return false
		}
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	c := quick(t, ClientOptions{Options: registries.Options{Registry: access, Retries: 2},
		PolicyFile: filepath.Join(supplytest.Policies(t), "p256-default.json")})
	if err := openOnce(t.Context(), c, signedImage); err != nil {
		t.Error(err)
	}
}

// Images are checked at the same time: each request for signatures is answered when all have been made.
func TestImagesAreCheckedConcurrently(t *testing.T) {
	const images = 4
	reg, access := vectorRegistry(t, "sig-cimage-p256", supplytest.Repository)
	var all sync.WaitGroup
	all.Add(images)
	reg.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".sig") {
			all.Done()
			all.Wait()
		}
		return false
	})
	c := quick(t, ClientOptions{Options: registries.Options{Registry: access},
		PolicyFile: filepath.Join(supplytest.Policies(t), "p256-default.json")})
	answers := make(chan error)
	for range images {
		go func() { answers <- openOnce(t.Context(), c, signedImage) }()
	}
	for range images {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// An accepted image is reported as an event, and the policy is not asked about it again.
func TestAcceptedSignaturesAreToldOnce(t *testing.T) {
	policies := supplytest.Policies(t)
	for _, c := range []struct {
		policy string
		want   int
	}{{"p256-default", 1}, {"", 0}} {
		reg, access := vectorRegistry(t, "sig-cimage-p256", supplytest.Repository)
		var told []store.Event
		o := ClientOptions{Options: registries.Options{Registry: access, Events: func(e store.Event) {
			if e.Kind == store.EventVerified {
				told = append(told, e)
			}
		}}}
		if c.policy != "" {
			o.PolicyFile = filepath.Join(policies, c.policy+".json")
		} else {
			o.PolicyFile = filepath.Join(t.TempDir(), "policy.json")
			write(t, o.PolicyFile, `{"default":[{"type":"insecureAcceptAnything"}]}`)
		}
		client := quick(t, o)
		for range 3 {
			if err := openOnce(t.Context(), client, signedImage); err != nil {
				t.Fatal(err)
			}
		}
		asked := 0
		for _, r := range reg.Requests() {
			if strings.HasSuffix(r, ".sig") {
				asked++
			}
		}
		if len(told) != c.want || asked != c.want {
			t.Errorf("%q: got %v, and signatures were asked for %d times", c.policy, told, asked)
		}
	}
}

// The policy goes by the name, and signatures are read where the image is.
func TestSignaturesInMirrors(t *testing.T) {
	policies := supplytest.Policies(t)
	reg, access := vectorRegistry(t, "sig-cimage-p256", "mirror.example.com/acme/catalog")
	conf := filepath.Join(t.TempDir(), "registries.conf")
	write(t, conf, fmt.Sprintf("[[registry]]\nprefix = %q\nlocation = \"nowhere.invalid/x\"\n[[registry.mirror]]\n"+
		"location = \"%s/layout\"\ninsecure = true\n", supplytest.Repository, reg.Host()))
	mirrored := registries.Config{RegistriesConf: conf, RegistriesDir: access.RegistriesDir}
	only := func(scope string) registries.Config {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.yaml"), fmt.Sprintf("docker: {%q: {use-sigstore-attachments: true}}", scope))
		return registries.Config{RegistriesConf: conf, RegistriesDir: dir}
	}
	for _, v := range []struct {
		what, name, policy string
		access             registries.Config
		accepted           bool
	}{
		{"the name of a mirror is not signed", "mirror.example.com/acme/catalog:v1", "p256-default", access, false},
		{"a policy maps the name", "mirror.example.com/acme/catalog:v1", "remap", access, true},
		{"a mirror of the name that is signed", signedImage, "p256-default", mirrored, true},
		{"registries.d is for the mirror", signedImage, "p256-default", only(reg.Host() + "/layout"), true},
		{"registries.d is for the name alone", signedImage, "p256-default", only(supplytest.Repository), false},
	} {
		c := quick(t, ClientOptions{Options: registries.Options{Registry: v.access}, PolicyFile: filepath.Join(policies, v.policy+".json")})
		err := openOnce(t.Context(), c, v.name)
		if v.accepted && err != nil || !v.accepted && !errors.Is(err, trust.ErrPolicy) {
			t.Errorf("%s: got %v", v.what, err)
		}
	}
}

// A refusal says why no signature was found.
func TestWhyThereIsNoSignature(t *testing.T) {
	policies := supplytest.Policies(t)
	policy := filepath.Join(policies, "p256-default.json")
	reg, access := vectorRegistry(t, "unsigned", supplytest.Repository)
	physical := reg.Host() + "/layout"
	off := t.TempDir()
	write(t, filepath.Join(off, "off.yaml"), "default-docker: {use-sigstore-attachments: false}")
	nothing := access
	nothing.RegistriesDir = t.TempDir()
	switchedOff := access
	switchedOff.RegistriesDir = off
	layout := "oci:" + supplytest.Unpack(t, "unsigned") + ":v1"
	top := "sha256-00a8352e405c0289f552a59e94682534c793ffa121cd93de0d4c13b5de3f99a8.sig"
	for name, c := range map[string]struct {
		o    ClientOptions
		name string
		want trust.PolicyError
	}{
		"not signed": {ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: policy}, signedImage,
			trust.PolicyError{NotFound: physical + ":" + top}},
		"registries.d says nothing": {ClientOptions{Options: registries.Options{Registry: nothing}, PolicyFile: policy}, signedImage,
			trust.PolicyError{SearchOff: physical}},
		"registries.d says no": {ClientOptions{Options: registries.Options{Registry: switchedOff}, PolicyFile: policy}, signedImage,
			trust.PolicyError{SearchOff: physical, SearchOffBy: filepath.Join(off, "off.yaml")}},
		"a layout": {ClientOptions{PolicyFile: layoutPolicy(t, policies, "p256-repo", supplytest.Repository)}, layout,
			trust.PolicyError{NotFound: top}},
		"another key": {ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: filepath.Join(policies, "p256-other-default.json")},
			signedImage, trust.PolicyError{NotFound: physical + ":" + top}},
	} {
		err := openOnce(t.Context(), quick(t, c.o), c.name)
		var got *trust.PolicyError
		if !errors.As(err, &got) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if got.SearchOff != c.want.SearchOff || got.SearchOffBy != c.want.SearchOffBy ||
			got.NotFound != c.want.NotFound || got.Unverified || got.File != c.o.PolicyFile || got.Scope == "" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A missing key is an error about the policy and not about an image, for the images that need it.
func TestMissingKeys(t *testing.T) {
	_, access := vectorRegistry(t, "unsigned", supplytest.Repository)
	dir := t.TempDir()
	file, key := filepath.Join(dir, "policy.json"), filepath.Join(dir, "none.pub")
	for _, rule := range []string{
		`"type":"sigstoreSigned","keyPath":%q`,
		`"type":"sigstoreSigned","keyPaths":[%q]`,
		`"type":"sigstoreSigned","pki":{"caRootsPath":%q,"subjectEmail":"a@example.com"}`,
		`"type":"signedBy","keyType":"GPGKeys","keyPath":%q`,
		`"type":"signedBy","keyType":"GPGKeys","keyPaths":[%q]`,
	} {
		write(t, file, fmt.Sprintf(`{"default":[{"type":"insecureAcceptAnything"}],"transports":{"docker":{`+
			`"registry.example.com/acme":[{`+rule+`}]}}}`, key))
		c := quick(t, ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: file})
		err := openOnce(t.Context(), c, signedImage)
		var policy *trust.PolicyFileError
		if !errors.As(err, &policy) || !errors.Is(err, trust.ErrPolicy) || !strings.Contains(err.Error(), file) ||
			!strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "failed to pull") {
			t.Errorf("%s: got %v", rule, err)
		}
		layout := "oci:" + supplytest.Unpack(t, "unsigned") + ":v1"
		if err := openOnce(t.Context(), c, layout); err != nil {
			t.Errorf("%s: an image that needs no key: %v", rule, err)
		}
	}
}

// With RequireSigned, a policy that accepts images without a signature is not enough.
func TestRequiredSignatures(t *testing.T) {
	policies := supplytest.Policies(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	anything := filepath.Join(t.TempDir(), "anything.json")
	write(t, anything, `{"default":[{"type":"insecureAcceptAnything"}]}`)
	both := filepath.Join(t.TempDir(), "both.json")
	write(t, both, fmt.Sprintf(`{"default":[{"type":"insecureAcceptAnything"},{"type":"sigstoreSigned","keyPath":%q}]}`,
		filepath.Join(policies, "p256.pub")))
	layout := "oci:" + supplytest.Unpack(t, "sig-cimage-p256") + ":v1"
	for name, c := range map[string]struct {
		vector, policy, image string
		unverified, refused   bool
	}{
		"a signature": {"sig-cimage-p256", filepath.Join(policies, "p256-default.json"), signedImage,
			false, false},
		"a signature, and anything": {"sig-cimage-p256", both, signedImage, false, false},
		"no signature": {"unsigned", filepath.Join(policies, "p256-default.json"), signedImage, false,
			true},
		"anything":                      {"sig-cimage-p256", anything, signedImage, true, true},
		"another transport is accepted": {"unsigned", filepath.Join(policies, "p256-default.json"), layout, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, access := vectorRegistry(t, c.vector, supplytest.Repository)
			for what, err := range ways(t, ClientOptions{Options: registries.Options{Registry: access}, PolicyFile: c.policy, RequireSigned: true},
				c.image) {
				var policy *trust.PolicyError
				if !c.refused && err != nil || c.refused && (!errors.As(err, &policy) ||
					policy.Unverified != c.unverified || policy.File != c.policy) {
					t.Errorf("%s: got %v", what, err)
				}
			}
		})
	}
}

// Without a policy no image has a required signature. The policy of the machine, if it has one, is taken away.
func TestRequiredSignaturesWithoutAPolicy(t *testing.T) {
	_, access := vectorRegistry(t, "sig-cimage-p256", supplytest.Repository)
	client := quick(t, ClientOptions{Options: registries.Options{Registry: access}, RequireSigned: true})
	if err := client.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	client.policy = nil
	_, err := client.Image(t.Context(), signedImage, v1.Platform{})
	var policy *trust.PolicyError
	if !errors.As(err, &policy) || !policy.Unverified || policy.File != "" {
		t.Errorf("got %v", err)
	}
}

// Images that the library signs while it copies them are accepted from its directories, single images and indexes.
func TestDirectoriesThatTheLibrarySigned(t *testing.T) {
	policies := supplytest.Policies(t)
	passphrase := filepath.Join(policies, "p256.key")
	accept, err := signature.NewPolicyContext(&signature.Policy{
		Default: signature.PolicyRequirements{signature.NewPRInsecureAcceptAnything()}})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []signedVector{{vector: "unsigned"}, {vector: "multi-unsigned"}} {
		repository, tag := v.name()
		from, err := layout.NewReference(supplytest.Unpack(t, v.vector), tag)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		to, err := directory.NewReference(dir)
		if err != nil {
			t.Fatal(err)
		}
		identity, err := reference.ParseNormalizedNamed(repository + ":" + tag)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := copy.Image(t.Context(), accept, to, from, &copy.Options{
			ImageListSelection: copy.CopyAllImages, SignBySigstorePrivateKeyFile: passphrase,
			SignSigstorePrivateKeyPassphrase: []byte(supplytest.Passphrase), SignIdentity: identity}); err != nil {
			t.Fatal(err)
		}
		good := ClientOptions{PolicyFile: layoutPolicy(t, policies, "p256-repo", repository)}
		bad := ClientOptions{PolicyFile: layoutPolicy(t, policies, "p256-other-repo", repository)}
		for what, err := range ways(t, good, "dir:"+dir) {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, err := range ways(t, bad, "dir:"+dir) {
			if !errors.Is(err, trust.ErrPolicy) {
				t.Errorf("%s by another key: %v", what, err)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*signature-1"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%q, %v", files, err)
		}
		for _, f := range files {
			write(t, f, "no signature")
		}
		for what, err := range ways(t, good, "dir:"+dir) {
			if !errors.Is(err, trust.ErrPolicy) {
				t.Errorf("%s without a good signature: %v", what, err)
			}
		}
	}
}

// A copy of an image that the policy accepts has no signatures, which the library's destinations could not keep.
func TestReferencesHaveNoSignatures(t *testing.T) {
	_, access := vectorRegistry(t, "sig-index-only-list", supplytest.IndexRepository)
	c := quick(t, ClientOptions{Options: registries.Options{Registry: access},
		PolicyFile: filepath.Join(supplytest.Policies(t), "p256-default.json")})
	src, err := opened(t, c, supplytest.IndexRepository+":multi").NewImageSource(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if found, err := src.GetSignatures(t.Context(), nil); len(found) > 0 || err != nil {
		t.Errorf("got %q, %v", found, err)
	}
	d, err := c.Describe(t.Context(), supplytest.IndexRepository+":multi")
	if err != nil || len(d.Variants) != 2 || !slices.ContainsFunc(d.Variants,
		func(v Variant) bool {
			return v.Platform.Architecture == v1.Platform{Architecture: "arm64"}.Architecture
		}) {
		t.Errorf("got %+v, %v", d, err)
	}
}
