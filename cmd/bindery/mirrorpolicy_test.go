package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// signedWorld is a registry with a catalog, its bundle, a related image with two platforms, and an additional image, and
// an image set of them. Files of two keys, and of policies, are beside it, one directory above that of a run.
type signedWorld struct {
	*testing.T
	top    string // of the files
	dir    string // of the runs, in it
	source *testregistry.Registry
	images []string // as the source names them
	env    []string // beside that of every test
	runs   int      // that a test has counted
}

// States of the images of a world.
const (
	unsigned      = "unsigned"
	signed        = "signed"
	signedByOther = "signed by another"
)

var signedStates = []string{unsigned, signed, signedByOther}

// newSignedWorld makes a world whose images are signed as the state says: with the key a, which is trusted, or with b.
func newSignedWorld(t *testing.T, state string) *signedWorld {
	t.Helper()
	top := t.TempDir()
	w := &signedWorld{T: t, top: top, dir: filepath.Join(top, "run"), source: testregistry.New(t)}
	host := w.source.Host()
	operand := w.source.AddIndex(t, "acme/operand", "v1", nil, []testregistry.Image{
		{Layers: []map[string]string{{"x": "amd64"}}},
		{Platform: v1.Platform{OS: "linux", Architecture: "arm64"}, Layers: []map[string]string{{"x": "arm64"}}}})
	bundle := w.source.AddImage(t, "acme/etcd", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
	w.source.AddImage(t, "acme/tool", "v1", testregistry.Image{Layers: []map[string]string{{"t": "tool"}}})
	base := opmFor("amd64")
	base.Labels = map[string]string{testConfigsLabel: "/configs"}
	of := func(name string) string {
		text := strings.NewReplacer("NAME", name, "IMAGE", host+"/acme/etcd@"+bundle.String()).Replace(oneBundle)
		return strings.Replace(text, `"properties":`, fmt.Sprintf(`"relatedImages":[{"name":"","image":"%s/acme/operand@%s"}],`+
			`"properties":`, host, operand), 1)
	}
	base.Layers = append(base.Layers, map[string]string{"configs/etcd/catalog.json": of("etcd"),
		"configs/old/catalog.json": of("old")})
	w.source.AddImage(t, "acme/catalog", "v1", base)
	w.images = []string{host + "/acme/catalog:v1", host + "/acme/etcd@" + bundle.String(),
		host + "/acme/operand@" + operand.String(), host + "/acme/tool:v1"}
	writeFile(t, filepath.Join(w.top, "set.yaml"), strings.Replace(exampleImageSet, "registry.example.com", host, 1)+
		"  additionalImages:\n  - name: "+host+"/acme/tool:v1\n")
	w.policies()
	w.sign(state, w.images...)
	w.fresh()
	return w
}

// fresh empties the directory of the runs.
func (w *signedWorld) fresh() {
	w.Helper()
	if err := errors.Join(os.RemoveAll(w.dir), os.Mkdir(w.dir, 0o755)); err != nil {
		w.Fatal(err)
	}
}

// policies writes two keys, a and b, and policies. docker.json wants the key a for registries and accepts layouts.
func (w *signedWorld) policies() {
	w.Helper()
	for _, name := range []string{"a", "b"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			w.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			w.Fatal(err)
		}
		public, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			w.Fatal(err)
		}
		for file, block := range map[string]*pem.Block{name + ".key": {Type: "PRIVATE KEY", Bytes: private},
			name + ".pub": {Type: "PUBLIC KEY", Bytes: public}} {
			writeFile(w.T, filepath.Join(w.top, file), string(pem.EncodeToMemory(block)))
		}
	}
	key := fmt.Sprintf(`[{"type":"sigstoreSigned","keyPath":%q,"signedIdentity":{"type":"matchRepository"}}]`,
		filepath.Join(w.top, "a.pub"))
	accept := `[{"type":"insecureAcceptAnything"}]`
	writeFile(w.T, filepath.Join(w.top, "docker.json"), `{"default":`+accept+`,"transports":{"docker":{"":`+key+`}}}`)
	writeFile(w.T, filepath.Join(w.top, "all.json"), `{"default":`+key+`}`)
	writeFile(w.T, filepath.Join(w.top, "accept.json"), `{"default":`+accept+`}`)
	writeFile(w.T, filepath.Join(w.top, "reject.json"), `{"default":[{"type":"reject"}]}`)
	writeFile(w.T, filepath.Join(w.top, "d", "a.yaml"), "default-docker: {use-sigstore-attachments: true}\n")
}

// sign signs images, with the attached form, which policies read, and bundles.
func (w *signedWorld) sign(state string, images ...string) {
	w.Helper()
	key := map[string]string{signed: "a.key", signedByOther: "b.key"}[state]
	for _, image := range images {
		if key != "" {
			done(w.T, w.top, "bindery", "sign", image, "--sign-key", key,
				"--allow-plain-key", "--use-http", "-q")
		}
	}
}

// run runs a command with an empty cache.
func (w *signedWorld) run(line string, more ...string) result {
	w.Helper()
	return w.finish(append(append(strings.Fields(line), more...), "--use-http", "--no-cache", "-q"))
}

// finish runs a command with the world's own environment.
func (w *signedWorld) finish(args []string) result {
	w.Helper()
	cmd := command(w.dir, "bindery", args...)
	cmd.Env = append(cmd.Env, w.env...)
	return finish(w.T, cmd)
}

// done runs a command that must succeed.
func (w *signedWorld) done(line string, more ...string) {
	w.Helper()
	if got := w.run(line, more...); got.status != 0 {
		w.Fatalf("%s: %+v", line, got)
	}
}

// demanded are ways to demand signatures of the key a.
var demanded = map[string][]string{
	"trusted key":           {"--trusted-key", "../a.pub"},
	"trusted key, required": {"--trusted-key", "../a.pub", "--require-signed"},
	"policy of registries":  {"--policy", "../docker.json", "--registries-d", "../d"},
	"policy of everything":  {"--policy", "../all.json", "--registries-d", "../d"},
}

// twoDemands are the two kinds of them: by flags and by a policy.
var twoDemands = []string{"trusted key", "policy of registries"}

// content is what a registry has, without attachments.
func content(r *testregistry.Registry) (out []string) {
	for _, name := range r.Repositories() {
		for _, tag := range r.Tags(name) {
			if !strings.HasSuffix(tag, ".sig") {
				out = append(out, name+":"+tag)
			}
		}
	}
	slices.Sort(out)
	return out
}

const (
	toMedia     = "mirror run file://media -c ../set.yaml"
	fromMedia   = "mirror run --from media -c ../set.yaml docker://"
	toRegistry  = "mirror run --workspace ws -c ../set.yaml docker://"
	toPublished = "mirror publish --workspace fresh -c ../set.yaml docker://"
)

// Whatever the way to the target, only images that the policy accepts get there.
func TestMirrorAsksThePolicyOnEveryWay(t *testing.T) {
	for name, way := range map[string]struct {
		before func(w *signedWorld, target string)
		line   string
		there  bool // the target has the images before
	}{
		"registry to registry":    {nil, toRegistry, false},
		"a dry run":               {nil, "mirror run --dry-run --workspace ws -c ../set.yaml docker://", false},
		"to an archive":           {nil, toMedia, false},
		"a dry run to an archive": {nil, toMedia + " --dry-run", false},
		"out of an archive":       {func(w *signedWorld, _ string) { w.done(toMedia) }, fromMedia, false},
		"a dry run out of an archive": {func(w *signedWorld, _ string) { w.done(toMedia) }, "mirror run --dry-run " +
			"--from media -c ../set.yaml docker://", false},
		"out of an archive in the form of oc-mirror": {func(w *signedWorld, _ string) {
			w.done(toMedia + " --archive-format oc-mirror")
		}, fromMedia, false},
		"out of an archive and the one after it": {func(w *signedWorld, _ string) {
			w.done(toMedia)
			w.done(toMedia)
		}, fromMedia, false},
		"out of the archives of shards": {func(w *signedWorld, _ string) {
			w.done("mirror run file://parts/1 --shard 1/2 -c ../set.yaml")
			w.done("mirror run file://parts/2 --shard 2/2 -c ../set.yaml")
			w.done("mirror publish --from parts file://parts/3 -c ../set.yaml")
		}, "mirror run --from parts -c ../set.yaml docker://", false},
		"there already": {func(w *signedWorld, target string) { w.done(toRegistry + target) }, toRegistry, true},
		"there already, out of an archive": {func(w *signedWorld, target string) {
			w.done(toMedia)
			w.done(fromMedia + target)
		}, fromMedia, true},
		"verified in an archive": {func(w *signedWorld, _ string) { w.done(toMedia) }, "mirror verify file://media", false},
		"verified in an archive of the other form": {func(w *signedWorld, _ string) {
			w.done(toMedia + " --archive-format oc-mirror")
		}, "mirror verify file://media", false},
		"published out of an archive": {func(w *signedWorld, target string) {
			w.done(toMedia)
			w.done(fromMedia + target)
		}, "mirror publish --from media -c ../set.yaml docker://", true},
		"in an inventory": {func(w *signedWorld, target string) {
			w.done(toRegistry + target)
			w.done("mirror inventory --to inventory.json.gz docker://" + target)
		}, toMedia + " --against inventory.json.gz", true},
		"published": {func(w *signedWorld, target string) { w.done(toRegistry + target) }, toPublished, true},
	} {
		for _, state := range signedStates {
			t.Run(name+", "+state, func(t *testing.T) {
				t.Parallel()
				w := newSignedWorld(t, state)
				for _, how := range twoDemands {
					w.fresh()
					target := testregistry.New(t)
					if way.before != nil {
						way.before(w, target.Host())
					}
					line := way.line
					if strings.HasSuffix(line, "docker://") {
						line += target.Host()
					}
					got := w.run(line, demanded[how]...)
					if state == signed {
						if got.status != 0 {
							t.Errorf("%s: %+v", how, got)
						}
						continue
					}
					if got.status != 4 && got.status != 1 || !strings.Contains(got.stdout+got.stderr, "signature policy: ") {
						t.Errorf("%s: %+v", how, got)
					}
					if now := content(target); !way.there && len(now) > 0 {
						t.Errorf("%s: the target has %q", how, now)
					}
				}
			})
		}
	}
}

// A policy that demands nothing changes nothing, and one that rejects everything lets nothing through.
func TestMirrorOutOfAnArchiveWithOtherPolicies(t *testing.T) {
	for how, test := range map[string]struct {
		demand []string
		status int
	}{
		"accepts":                    {[]string{"--policy", "../accept.json"}, 0},
		"rejects":                    {[]string{"--policy", "../reject.json"}, 1},
		"accepts, signatures wanted": {[]string{"--policy", "../accept.json", "--require-signed"}, 1},
		"another key":                {[]string{"--trusted-key", "../b.pub"}, 1},
	} {
		t.Run(how, func(t *testing.T) {
			w, target := newSignedWorld(t, signed), testregistry.New(t)
			w.done(toMedia)
			got := w.run(fromMedia+target.Host(), test.demand...)
			if got.status != test.status || (len(content(target)) > 0) != (test.status == 0) {
				t.Errorf("%+v, %q", got, content(target))
			}
		})
	}
}

// One image that is not signed is left out, with the bundles that need it, and the rest gets there.
func TestOneImageOfAnArchiveIsRefused(t *testing.T) {
	w, target := newSignedWorld(t, unsigned), testregistry.New(t)
	w.sign(signed, w.images[:3]...)
	w.done(toMedia)
	got := w.run(fromMedia+target.Host()+" -o json", "--trusted-key", "../a.pub")
	var account struct {
		Images []struct{ Source, Status, Error string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &account); err != nil || got.status != 4 {
		t.Fatalf("%v: %+v", err, got)
	}
	for _, i := range account.Images {
		if refused := strings.HasSuffix(i.Source, "/acme/tool:v1"); refused != (i.Status == "failed") ||
			refused != strings.Contains(i.Error, "no trusted key has signed the image") {
			t.Errorf("%+v", i)
		}
	}
	if have := content(target); slices.ContainsFunc(have, func(n string) bool { return strings.HasPrefix(n, "acme/tool") }) ||
		!slices.Contains(have, "acme/catalog:v1") {
		t.Errorf("the target has %q", have)
	}
}

// A filtered catalog in an archive is not trusted for the signature of its source: it is made again, and is the same.
func TestFilteredCatalogOfAnArchiveIsMadeAgain(t *testing.T) {
	for _, form := range []string{"oci", "oc-mirror"} {
		w, plain, strict := newSignedWorld(t, signed), testregistry.New(t), testregistry.New(t)
		w.done(toMedia + " --archive-format " + form)
		for target, flags := range map[*testregistry.Registry][]string{plain: nil, strict: demanded["trusted key"]} {
			if got := w.run(fromMedia+target.Host()+" --workspace ws",
				flags...); got.status != 0 {
				t.Fatalf("%s: %+v", form, got)
			}
		}
		a, b := plain.Manifest("acme/catalog", "v1"), strict.Manifest("acme/catalog", "v1")
		if len(a) == 0 || string(a) != string(b) {
			t.Errorf("%s: the catalogs differ:\n%s\n%s", form, a, b)
		}
		if err := os.RemoveAll(filepath.Join(w.dir, "ws")); err != nil {
			t.Fatal(err)
		}
	}
}
