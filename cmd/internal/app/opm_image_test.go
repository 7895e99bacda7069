package app_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// opm's recorded answers for index images in a registry are reproduced byte for byte.
func TestOpmAnswersForImages(t *testing.T) {
	answers := recorded.All(t)
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	for args, file := range map[string]string{
		"render 127.0.0.1:5056/index/mini-fbc:v1 --use-http":                     "render-mini-fbc.json",
		"render 127.0.0.1:5056/index/small-db:v1 --use-http":                     "render-small-db.json",
		"render 127.0.0.1:5056/index/small-fbc:v1 --use-http":                    "render-small-fbc.json",
		"render small.db cat 127.0.0.1:5056/community/etcd:v0.9.4 --use-http":    "render-two.json",
		"alpha list bundles 127.0.0.1:5056/index/mini-fbc:v1 --use-http":         "list-mini-fbc.txt",
		"alpha list bundles 127.0.0.1:5056/index/small-db:v1 --use-http":         "list-small-db.txt",
		"alpha list bundles 127.0.0.1:5056/index/small-fbc:v1 --use-http":        "list-small-fbc.txt",
		"alpha render-graph 127.0.0.1:5056/index/mini-fbc:v1 --use-http":         "graph-mini-fbc.mmd",
		"alpha render-graph 127.0.0.1:5056/index/small-db:v1 --use-http":         "graph-small-db.mmd",
		"alpha render-graph 127.0.0.1:5056/index/small-fbc:v1 --use-http":        "graph-small-fbc.mmd",
		"render docker://127.0.0.1:5056/index/small-fbc:v1 --use-http --jobs 1":  "render-small-fbc.json",
		"render 127.0.0.1:5056/index/small-fbc:v1 --use-http --no-cache -o json": "render-small-fbc.json",
	} {
		t.Run(args, func(t *testing.T) {
			got := clitest.RunOpm(t, conf, clitest.WorkDir(t), strings.Fields(args)...)
			if got.Status != 0 || got.Stderr != "" {
				t.Fatalf("status %d\n%.2000s", got.Status, got.Stderr)
			}
			want := string(answers.File(t, "golden-misc/"+file))
			if file == "render-two.json" {
				// opm prints two bundles with the same name, one from a database and one from an image, in random
				// order.
				got.Stdout, want = sortedBlobs(got.Stdout), sortedBlobs(want)
			}
			if got.Stdout != want {
				t.Errorf("%d bytes differ from the %d of %s", len(got.Stdout), len(want), file)
			}
		})
	}
}

// sortedBlobs sorts the indented blobs of a stream.
func sortedBlobs(stream string) string {
	blobs := strings.Split(strings.TrimSuffix(stream, "}\n"), "}\n{")
	slices.Sort(blobs)
	return strings.Join(blobs, "}\n{")
}

// Errors about images contain opm's own wording, and standard output is empty.
func TestOpmErrorsForImages(t *testing.T) {
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	for args, want := range map[string]string{
		"render 127.0.0.1:5056/index/nosuch:v1 --use-http": `render reference "127.0.0.1:5056/index/nosuch:v1": failed to pull image "127.0.0.1:5056/index/nosuch:v1": `,
		// Commands that pull with containerd's resolver have a different text for a missing image.
		"registry add -b 127.0.0.1:5056/index/nosuch:v1 --use-http -d small.db":        `Error: error resolving remote name "127.0.0.1:5056/index/nosuch:v1": 127.0.0.1:5056/index/nosuch:v1: not found`,
		"index add -b 127.0.0.1:5056/index/nosuch:v1 --use-http -t example.com/a/b:v1": `Error: error resolving remote name "127.0.0.1:5056/index/nosuch:v1": 127.0.0.1:5056/index/nosuch:v1: not found`,
		"alpha bundle unpack 127.0.0.1:5056/index/nosuch:v1 --use-http":                `Error: error resolving remote name "127.0.0.1:5056/index/nosuch:v1": 127.0.0.1:5056/index/nosuch:v1: not found`,
		"alpha bundle validate -t 127.0.0.1:5056/index/nosuch:v1 -b none --use-http":   `Error: error resolving remote name "127.0.0.1:5056/index/nosuch:v1": 127.0.0.1:5056/index/nosuch:v1: not found`,
		"render nosuchdir/":    `render reference "nosuchdir/": failed to pull image "nosuchdir/": invalid reference format`,
		"render unknown-index": `render reference "unknown-index": failed to pull image "unknown-index": repository name must be canonical`,
		"alpha list bundles 127.0.0.1:5056/community/etcd:v0.9.4":                       `cannot list non-index "127.0.0.1:5056/community/etcd:v0.9.4"`,
		"alpha list packages unknown-index":                                             `render reference "unknown-index": failed to pull image "unknown-index": repository name must be canonical`,
		"migrate 127.0.0.1:5056/community/etcd:v0.9.4 out --use-http":                   `render reference "127.0.0.1:5056/community/etcd:v0.9.4": cannot render bundle image: not allowed`,
		"render 127.0.0.1:5056/community/etcd:v0.9.4 --alpha-image-ref-template {{.X}}": "",
	} {
		t.Run(args, func(t *testing.T) {
			dir := clitest.WorkDir(t)
			before := clitest.Snapshot(t, dir)
			got := clitest.RunOpm(t, conf, dir, strings.Fields(args)...)
			if want == "" { // a template is not used for bundles with an image
				if got.Status != 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Status != 1 || got.Stdout != "" || !strings.Contains(strings.ReplaceAll(got.Stderr, `\"`, `"`),
				want) {
				t.Errorf("got status %d\n%s\nwithout %s", got.Status, got.Stderr, want)
			}
			if after := clitest.Snapshot(t, dir); after != before {
				t.Errorf("files before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// A database in an image migrates to the recorded migration of the same database.
func TestMigrateFromAnImage(t *testing.T) {
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	dir := clitest.WorkDir(t)
	if got := clitest.RunOpm(t, conf, dir, "migrate", "127.0.0.1:5056/index/small-db:v1", "image",
		"--use-http"); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	if got := clitest.RunProgram(t, dir, "opm", "migrate", "small.db", "file"); got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	fromImage, fromFile := os.DirFS(dir+"/image"), os.DirFS(dir+"/file")
	if a, b := clitest.TreeOf(t, fromImage), clitest.TreeOf(t, fromFile); a != b || a == "" {
		t.Errorf("from the image\n%.500s\nfrom the file\n%.500s", a, b)
	}
}
