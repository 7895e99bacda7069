package fullbuild

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The catalog server and the small command do not link the libraries for builds with RUN and for podman's store.
func TestWhatIsLinked(t *testing.T) {
	const tags = "containers_image_openpgp,exclude_graphdriver_btrfs"
	for _, c := range []struct {
		name, program, tags, cgo string
		forbidden, wanted        string
	}{
		{"the server", "cmd/opm-server", tags, "0",
			`buildah|imagebuilder|^go\.podman\.io/(storage/(drivers|types|pkg/archive)|image/v5/(copy|storage))|^go\.podman\.io/storage$|^go\.podman\.io/common`, `^google\.golang\.org/grpc$`},
		{"the small command", "cmd/bindery", tags + ",nobuildah", "0",
			`buildah|imagebuilder|^go\.podman\.io/(storage/(drivers|types)|image/v5/storage|common)|^go\.podman\.io/storage$`, `^go\.podman\.io/image/v5/copy$`},
		{"the command", "cmd/bindery", tags, "0", `^go\.podman\.io/(buildah|common)`, `^go\.podman\.io/image/v5/copy$`},
		{"the full command", "cmd/bindery", tags + ",netgo,osusergo,buildah", "1", `^github\.com/containers/libhvee`,
			`^go\.podman\.io/buildah$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("go", "list", "-deps", "-tags", c.tags,
				"github.com/operator-bindery/bindery/"+c.program)
			cmd.Env = append(os.Environ(), "CGO_ENABLED="+c.cgo, "GOFLAGS=-buildvcs=false", "GOOS=linux")
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			forbidden, wanted, found := regexp.MustCompile(c.forbidden), regexp.MustCompile(c.wanted), false
			for pkg := range strings.Lines(string(out)) {
				pkg = strings.TrimSpace(pkg)
				if forbidden.MatchString(pkg) {
					t.Errorf("%s is linked", pkg)
				}
				found = found || wanted.MatchString(pkg)
			}
			if !found {
				t.Errorf("%s is not linked: this test looks at something else", c.wanted)
			}
		})
	}
}
