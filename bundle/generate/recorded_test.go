package generate_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/bundle/generate"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testbundles"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

// run generates and returns the messages.
func run(t *testing.T, o generate.Options) []string {
	t.Helper()
	var messages []string
	o.Info = func(m string) { messages = append(messages, m) }
	if _, err := generate.Generate(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	return messages
}

// messagesOf returns opm's recorded standard error with the directories replaced.
func messagesOf(t *testing.T, file, recorded, here string) []string {
	t.Helper()
	var out []string
	pattern := regexp.MustCompile(`level=info msg="(.*)"$`)
	for lines := bufio.NewScanner(strings.NewReader(read(t, file))); lines.Scan(); {
		m := pattern.FindStringSubmatch(lines.Text())
		if m == nil {
			t.Fatalf("%s: %s", file, lines.Text())
		}
		out = append(out, strings.ReplaceAll(m[1], recorded, here))
	}
	return out
}

// Every recorded bundle gets the same annotations.yaml and bundle.Dockerfile as from opm, with the same messages.
func TestRecordedAnswers(t *testing.T) {
	golden := filepath.Join(string(recorded.All(t)), "golden-bundles")
	compared := 0
	for _, name := range testbundles.Names(t) {
		answers := filepath.Join(golden, name)
		if _, err := os.Stat(answers); err != nil {
			continue
		}
		compared++
		t.Run(name, func(t *testing.T) {
			pkg := regexp.MustCompile(`(?m)bundle\.package\.v1=(.*)$`).FindStringSubmatch(
				read(t, filepath.Join(answers, "bundle.Dockerfile")))[1]
			work := t.TempDir()
			manifests := filepath.Join(testbundles.Write(t, t.TempDir(), name), "manifests")
			if err := os.CopyFS(filepath.Join(work, "gen", "manifests"), os.DirFS(manifests)); err != nil {
				t.Fatal(err)
			}

			gen := filepath.Join(work, "gen")
			got := run(t, generate.Options{Dir: filepath.Join(gen, "manifests"), WorkDir: gen,
				Metadata: generate.Metadata{Package: pkg, Channels: "stable,beta", DefaultChannel: "stable"}})
			recorded := "ORACLE/golden-bundles/" + name
			same(t, "messages", strings.Join(got, "\n"),
				strings.Join(messagesOf(t, filepath.Join(answers, "generate.stderr"), recorded, work), "\n"))
			for _, f := range []string{"metadata/annotations.yaml", "bundle.Dockerfile"} {
				same(t, f, read(t, filepath.Join(gen, f)), read(t, filepath.Join(answers, "gen", f)))
			}

			got = run(t, generate.Options{Dir: manifests, WorkDir: work, OutputDir: filepath.Join(work, "gen2"),
				Metadata: generate.Metadata{Package: pkg, Channels: "alpha"}})
			same(t, "messages", strings.Join(got, "\n"),
				strings.Join(messagesOf(t, filepath.Join(answers, "generate-outdir.stderr"), recorded, work), "\n"))
			for _, f := range []string{"gen2/metadata/annotations.yaml", "bundle.Dockerfile"} {
				same(t, f, read(t, filepath.Join(work, f)), read(t, filepath.Join(answers, f)))
			}
			for _, line := range strings.Split(
				strings.TrimSpace(read(t, filepath.Join(answers, "gen2.manifests.sha256"))), "\n") {
				sum, file, _ := strings.Cut(line, "  ")
				is := sha256.Sum256([]byte(read(t, filepath.Join(work, "gen2", "manifests", file))))
				same(t, file, hex.EncodeToString(is[:]), sum)
			}
		})
	}
	if compared < 29 {
		t.Errorf("only %d recorded bundles were compared", compared)
	}
}

// The same for the bundle in testdata.
func TestAnswersInTheProject(t *testing.T) {
	work := t.TempDir()
	if err := os.CopyFS(filepath.Join(work, "manifests"),
		os.DirFS("../../testdata/bundles/etcd/0.9.4/manifests")); err != nil {
		t.Fatal(err)
	}
	run(t, generate.Options{Dir: filepath.Join(work, "manifests"), WorkDir: work,
		Metadata: generate.Metadata{Package: "etcd", Channels: "stable,beta", DefaultChannel: "stable"}})
	same(t, "annotations.yaml", read(t, filepath.Join(work, "metadata", "annotations.yaml")),
		read(t, "testdata/etcd/annotations.yaml"))
	same(t, "bundle.Dockerfile", read(t, filepath.Join(work, "bundle.Dockerfile")),
		read(t, "testdata/etcd/bundle.Dockerfile"))

	work = t.TempDir()
	run(t, generate.Options{Dir: "../../testdata/bundles/etcd/0.9.4/manifests", WorkDir: work,
		OutputDir: filepath.Join(work, "gen2"),
		Metadata:  generate.Metadata{Package: "etcd", Channels: "alpha"}})
	same(t, "annotations.yaml", read(t, filepath.Join(work, "gen2", "metadata", "annotations.yaml")),
		read(t, "testdata/etcd/outdir-annotations.yaml"))
	same(t, "bundle.Dockerfile", read(t, filepath.Join(work, "bundle.Dockerfile")),
		read(t, "testdata/etcd/outdir-bundle.Dockerfile"))
}
