package mirror_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The tag sha256-HEX of an image that is named by digest has, at registries without the referrers API, the list of its
// signatures. The image is verified and deleted by its digest, and what is listed goes with it. Of an index that a
// key did not sign, the entries must be signed.
func TestMirrorOfImagesWithReferrers(t *testing.T) {
	source, target := mirrortest.Source(t), testregistry.New(t)
	target.Separate(true)
	w := &clitest.MirrorWorld{T: t, Dir: t.TempDir(), Conf: source.RegistriesConf(t, mirrortest.Host), Target: "docker://" + target.Host() + "/olm", Registry: target}
	index := ""
	for _, m := range mirrortest.Manifests(t) {
		if m.Repository == "extra/multi" && len(m.Tags) > 0 {
			index = m.Digest
		}
	}
	keys := supplytest.Vectors(t)["keys"]
	w.Write("p256.key", string(keys["p256.pkcs8.pem"]))
	w.Write("p256.pub", string(keys["p256.pub"]))
	const set = "kind: %sSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\n%s:\n  additionalImages:\n" +
		"  - name: registry.example.com/extra/multi@%s\n"
	w.Write("imageset.yaml", fmt.Sprintf(set, "Image", "mirror", index))
	w.Write("delete.yaml", fmt.Sprintf(set, "DeleteImage", "delete", index))
	expect := func(line string, status int, want string) {
		t.Helper()
		if r := w.Run(line); r.Status != status || !strings.Contains(r.Stdout+r.Stderr, want) {
			t.Errorf("%s: status %d\n%s%s\nwanted %d and %q", line, r.Status, r.Stdout, r.Stderr, status, want)
		}
	}
	expect("mirror run -c imageset.yaml --workspace w TARGET/unsigned", 0, "1 copied")
	expect("mirror verify TARGET/unsigned -c imageset.yaml --trusted-key p256.pub", 1, "no trusted key has signed the image")
	clitest.Done(t, w.Dir, "bindery", "sign", source.Host()+"/extra/multi@"+index, "--sign-key", "p256.key",
		"--allow-plain-key", "--sign-format", "bundle", "--use-http")
	expect("mirror run -c imageset.yaml --workspace w TARGET", 0, "1 copied")
	if text := string(target.Manifest("olm/extra/multi", strings.Replace(index, ":", "-", 1))); !strings.Contains(text,
		"sigstore.bundle") {
		t.Fatalf("the tag has no list of signatures: %s", text)
	}
	expect("mirror verify TARGET -c imageset.yaml --trusted-key p256.pub", 0, ": all is there\n")
	expect("mirror delete -c delete.yaml --workspace w --list list.yaml --delete-signatures TARGET", 0, "to delete")
	expect("mirror delete --list list.yaml TARGET", 0, " 0 failed\n")
	if left := target.Tags("olm/extra/multi"); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	if target.Manifest("olm/extra/multi", index) != nil {
		t.Error("the image is left")
	}
}
