package ocmirror_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
)

// signatureRun is a directory to mirror releases of the channel candidate-4.17 in.
type signatureRun struct{ *replay }

// mirror mirrors 4.17.N and returns the answer. to are the arguments after the image set.
func (r signatureRun) mirror(n int, env []string, to ...string) clitest.Result {
	r.Helper()
	clitest.WriteFile(r.T, filepath.Join(r.dir, "isc.yaml"), fmt.Sprintf("kind: ImageSetConfiguration\n"+
		"apiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  platform:\n    channels:\n"+
		"    - {name: candidate-4.17, minVersion: 4.17.%d, maxVersion: 4.17.%[1]d}\n", n))
	return r.execute(step{args: slices.Concat([]string{"-c", "$W/isc.yaml"}, to, []string{"--v2",
		"--dest-tls-verify=false", "--cache-dir", "$W/cache", "--retry-times", "1", "--retry-delay", "100ms"})},
		slices.Concat([]string{"UPDATE_URL_OVERRIDE=" + r.world.GraphURL, "OCP_SIGNATURE_URL=" + r.world.SignatureURL,
			"OCP_SIGNATURE_VERIFICATION_PK=" + r.world.KeyFile}, env))
}

// A release is mirrored if one of its signatures is good, as far as the message goes, for the digest that is mirrored, and
// not otherwise; from a registry, and from an archive with the keys of that place.
func TestSignaturesOfReleases(t *testing.T) {
	images := releasetest.Images(t)
	for n, c := range map[int]struct {
		about  string
		status int
		tag    string // of the release image at the destination
		says   string // in the messages
	}{
		0:  {"unknown key", 2, "", "4.17.0"},
		1:  {"none", 2, "", "4.17.1"},
		5:  {"damaged", 2, "", "4.17.5"},
		6:  {"of another release", 2, "", "4.17.6"},
		7:  {"expired", 2, "", "2020-01-02"},
		11: {"content exchanged", 2, "", "4.17.11"},
		12: {"the second one is good", 0, "4.17.12-x86_64", ""},
		13: {"the tag shows another image", 0, "4.17.13-x86_64", images.Moved.String()},
		14: {"identity by digest", 0, images.Releases["4.17.14 amd64"].Encoded(), ""},
		15: {"no message", 2, "", "4.17.15"},
	} {
		t.Run(c.about, func(t *testing.T) {
			t.Parallel()
			r := signatureRun{newReplay(t, releases, "r01-m2m-heads")}
			mirrored := func(how string, got clitest.Result) {
				t.Helper()
				if got.Status != c.status || !strings.Contains(got.Stderr, c.says) {
					t.Errorf("%s: status %d instead of %d, or without %q: %s", how, got.Status, c.status, c.says, got.Stderr)
				}
				list := r.listing()
				if c.tag == "" && len(list) > 0 {
					t.Errorf("%s: %q", how, list)
				}
				if want := images.Releases[fmt.Sprintf("4.17.%d amd64", n)]; c.tag != "" &&
					digest.FromBytes(r.target.Manifest("m/openshift/release-images", c.tag)) != want {
					t.Errorf("%s: no %s under %s: %q", how, want, c.tag, list)
				}
			}
			mirrored("registry", r.mirror(n, nil, "--workspace", "file://$W/ws", "docker://127.0.0.1:46502/m"))
			r.target.Clear()
			if got := r.mirror(n, nil, "file://$W/disk"); got.Status != c.status {
				t.Errorf("archive: %+v", got)
			}
			if len(r.tree("disk", "mirror_*.tar")) == 0 {
				if c.status == 0 {
					t.Error("no archive")
				}
				return
			}
			if c.status != 0 {
				t.Error("an archive with a release that is not verified")
			}
			r.world.Down(true)
			other := "OCP_SIGNATURE_VERIFICATION_PK=" + filepath.Join(r.dir, "fx", "keys", "other.asc")
			from := []string{"--from", "file://$W/disk", "docker://127.0.0.1:46502/m"}
			if got := r.mirror(n, []string{other}, from...); got.Status != 2 || len(r.listing()) > 0 {
				t.Errorf("from an archive, with another key: %+v, %q", got, r.listing())
			}
			c.says = ""
			mirrored("from an archive", r.mirror(n, nil, from...))
		})
	}
}
