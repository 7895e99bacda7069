package mirror_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Whatever the way to the target, only images that the policy accepts get there.
func TestMirrorAsksThePolicyOnEveryWay(t *testing.T) {
	for name, way := range map[string]struct {
		before func(w *clitest.SignedWorld, target string)
		line   string
		there  bool // the target has the images before
	}{
		"registry to registry":    {nil, clitest.ToRegistry, false},
		"a dry run":               {nil, "mirror run --dry-run --workspace ws -c ../set.yaml docker://", false},
		"to an archive":           {nil, clitest.ToMedia, false},
		"a dry run to an archive": {nil, clitest.ToMedia + " --dry-run", false},
		"out of an archive":       {func(w *clitest.SignedWorld, _ string) { w.Done(clitest.ToMedia) }, clitest.FromMedia, false},
		"a dry run out of an archive": {func(w *clitest.SignedWorld, _ string) { w.Done(clitest.ToMedia) }, "mirror run --dry-run " +
			"--from media -c ../set.yaml docker://", false},
		"out of an archive in the form of oc-mirror": {func(w *clitest.SignedWorld, _ string) {
			w.Done(clitest.ToMedia + " --archive-format oc-mirror")
		}, clitest.FromMedia, false},
		"out of an archive and the one after it": {func(w *clitest.SignedWorld, _ string) {
			w.Done(clitest.ToMedia)
			w.Done(clitest.ToMedia)
		}, clitest.FromMedia, false},
		"out of the archives of shards": {func(w *clitest.SignedWorld, _ string) {
			w.Done("mirror run file://parts/1 --shard 1/2 -c ../set.yaml")
			w.Done("mirror run file://parts/2 --shard 2/2 -c ../set.yaml")
			w.Done("mirror publish --from parts file://parts/3 -c ../set.yaml")
		}, "mirror run --from parts -c ../set.yaml docker://", false},
		"there already": {func(w *clitest.SignedWorld, target string) { w.Done(clitest.ToRegistry + target) }, clitest.ToRegistry, true},
		"there already, out of an archive": {func(w *clitest.SignedWorld, target string) {
			w.Done(clitest.ToMedia)
			w.Done(clitest.FromMedia + target)
		}, clitest.FromMedia, true},
		"verified in an archive": {func(w *clitest.SignedWorld, _ string) { w.Done(clitest.ToMedia) }, "mirror verify file://media", false},
		"verified in an archive of the other form": {func(w *clitest.SignedWorld, _ string) {
			w.Done(clitest.ToMedia + " --archive-format oc-mirror")
		}, "mirror verify file://media", false},
		"published out of an archive": {func(w *clitest.SignedWorld, target string) {
			w.Done(clitest.ToMedia)
			w.Done(clitest.FromMedia + target)
		}, "mirror publish --from media -c ../set.yaml docker://", true},
		"in an inventory": {func(w *clitest.SignedWorld, target string) {
			w.Done(clitest.ToRegistry + target)
			w.Done("mirror inventory --to inventory.json.gz docker://" + target)
		}, clitest.ToMedia + " --against inventory.json.gz", true},
		"published": {func(w *clitest.SignedWorld, target string) { w.Done(clitest.ToRegistry + target) }, clitest.ToPublished, true},
	} {
		for _, state := range clitest.SignedStates {
			t.Run(name+", "+state, func(t *testing.T) {
				t.Parallel()
				w := clitest.NewSignedWorld(t, state)
				for _, how := range clitest.TwoDemands {
					w.Fresh()
					target := testregistry.New(t)
					if way.before != nil {
						way.before(w, target.Host())
					}
					line := way.line
					if strings.HasSuffix(line, "docker://") {
						line += target.Host()
					}
					got := w.Run(line, clitest.Demanded[how]...)
					if state == clitest.Signed {
						if got.Status != 0 {
							t.Errorf("%s: %+v", how, got)
						}
						continue
					}
					if got.Status != 4 && got.Status != 1 || !strings.Contains(got.Stdout+got.Stderr, "signature policy: ") {
						t.Errorf("%s: %+v", how, got)
					}
					if now := clitest.Content(target); !way.there && len(now) > 0 {
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
			w, target := clitest.NewSignedWorld(t, clitest.Signed), testregistry.New(t)
			w.Done(clitest.ToMedia)
			got := w.Run(clitest.FromMedia+target.Host(), test.demand...)
			if got.Status != test.status || (len(clitest.Content(target)) > 0) != (test.status == 0) {
				t.Errorf("%+v, %q", got, clitest.Content(target))
			}
		})
	}
}

// One image that is not signed is left out, with the bundles that need it, and the rest gets there.
func TestOneImageOfAnArchiveIsRefused(t *testing.T) {
	w, target := clitest.NewSignedWorld(t, clitest.Unsigned), testregistry.New(t)
	w.Sign(clitest.Signed, w.Images[:3]...)
	w.Done(clitest.ToMedia)
	got := w.Run(clitest.FromMedia+target.Host()+" -o json", "--trusted-key", "../a.pub")
	var account struct {
		Images []struct{ Source, Status, Error string }
	}
	if err := json.Unmarshal([]byte(got.Stdout), &account); err != nil || got.Status != 4 {
		t.Fatalf("%v: %+v", err, got)
	}
	for _, i := range account.Images {
		if refused := strings.HasSuffix(i.Source, "/acme/tool:v1"); refused != (i.Status == "failed") ||
			refused != strings.Contains(i.Error, "no trusted key has signed the image") {
			t.Errorf("%+v", i)
		}
	}
	if have := clitest.Content(target); slices.ContainsFunc(have, func(n string) bool { return strings.HasPrefix(n, "acme/tool") }) ||
		!slices.Contains(have, "acme/catalog:v1") {
		t.Errorf("the target has %q", have)
	}
}

// A filtered catalog in an archive is not trusted for the signature of its source: it is made again, and is the same.
func TestFilteredCatalogOfAnArchiveIsMadeAgain(t *testing.T) {
	for _, form := range []string{"oci", "oc-mirror"} {
		w, plain, strict := clitest.NewSignedWorld(t, clitest.Signed), testregistry.New(t), testregistry.New(t)
		w.Done(clitest.ToMedia + " --archive-format " + form)
		for target, flags := range map[*testregistry.Registry][]string{plain: nil, strict: clitest.Demanded["trusted key"]} {
			if got := w.Run(clitest.FromMedia+target.Host()+" --workspace ws",
				flags...); got.Status != 0 {
				t.Fatalf("%s: %+v", form, got)
			}
		}
		a, b := plain.Manifest("acme/catalog", "v1"), strict.Manifest("acme/catalog", "v1")
		if len(a) == 0 || string(a) != string(b) {
			t.Errorf("%s: the catalogs differ:\n%s\n%s", form, a, b)
		}
		if err := os.RemoveAll(filepath.Join(w.Dir, "ws")); err != nil {
			t.Fatal(err)
		}
	}
}
