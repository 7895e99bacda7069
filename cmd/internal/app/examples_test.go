package app_test

import (
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// helpExamples finds the examples in the descriptions of all commands.
func helpExamples(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	var walk func(path string, cmds []*cli.Command)
	walk = func(path string, cmds []*cli.Command) {
		for _, c := range cmds {
			name := path + " " + c.Name
			walk(name, c.Subcommands)
			_, text, ok := strings.Cut(c.Description, "Examples:\n")
			if !ok {
				if len(c.Subcommands) == 0 && !c.Hidden {
					t.Errorf("%s has no examples", name)
				}
				continue
			}
			for _, line := range strings.Split(text, "\n") {
				out[name] = append(out[name], strings.TrimSpace(line))
			}
		}
	}
	p := &option.Session{Program: &program.Program{Stdin: strings.NewReader(""), Stdout: &cmdline.Pipe{W: io.Discard}, Stderr: io.Discard}}
	walk("bindery", app.New(p).Commands)
	return out
}

// Every example in the help texts works in a directory with the files it names. The host names are examples and are
// never contacted.
func TestHelpExamples(t *testing.T) {
	made := makeExampleImages(t)
	for name, lines := range helpExamples(t) {
		if strings.HasPrefix(name, "bindery alpha ") {
			continue // the same commands as those of list
		}
		for _, line := range lines {
			t.Run(line, func(t *testing.T) {
				dir := clitest.WorkDir(t)
				if err := os.Rename(filepath.Join(dir, "cat"), filepath.Join(dir, "catalog")); err != nil {
					t.Fatal(err)
				}
				clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "index.db"))
				if err := os.CopyFS(filepath.Join(dir, "bundle"),
					os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(line, "bundle.Dockerfile") {
					clitest.WriteFile(t, filepath.Join(dir, "bundle.Dockerfile"),
						"FROM scratch\nARG VERSION\nLABEL "+
							"operators.operatorframework.io.bundle.mediatype.v1=registry+v1\n"+
							"LABEL operators.operatorframework.io.bundle.manifests.v1=manifests/\nCOPY manifests "+
							"/manifests/\nCOPY metadata /metadata/\n")
				}
				if strings.Contains(line, "new-bundle") || strings.Contains(line, "v0.9.5") {
					clitest.NewBundle(t, filepath.Join(dir, "new-bundle"))
				}
				if strings.Contains(line, "operators/") || strings.Contains(line, "--changed") {
					clitest.Submission(t, dir)
				}
				if strings.Contains(line, "selection.yaml") {
					clitest.WriteFile(t, filepath.Join(dir, "selection.yaml"),
						"packages:\n- name: etcd\n  minVersion: 0.9.0\n  channels: [{name: singlenamespace-alpha}]\n")
				}
				if strings.Contains(line, "imageset.yaml") {
					clitest.WriteFile(t, filepath.Join(dir, "imageset.yaml"), clitest.ExampleImageSet)
				}
				if strings.Contains(line, "indexes.txt") {
					if err := os.WriteFile(filepath.Join(dir, "indexes.txt"),
						[]byte("index.db  # by its own name\ncatalog other/name -> example.com/acme/catalog:v1\n"),
						0o644); err != nil {
						t.Fatal(err)
					}
				}
				if strings.Contains(line, "mapping.txt") {
					clitest.WriteFile(t, filepath.Join(dir, "mapping.txt"),
						"oci:"+supplytest.Unpack(t, "unsigned")+":v1=oci:mirror.oci:v1\n")
				}
				signingFiles(t, made.keys, dir, line)
				if strings.Contains(line, "mapping.txt") {
					testregistry.Image{}.WriteLayout(t, filepath.Join(dir, "from.oci"), "v1")
					clitest.WriteFile(t, filepath.Join(dir, "mapping.txt"), "oci:from.oci:v1 oci:to.oci:v1\n")
				}
				if strings.Contains(name, "template") {
					clitest.ExampleTemplates(t, dir)
				}
				if strings.Contains(line, " manifests ") {
					if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(recorded.Export(t))); err != nil {
						t.Fatal(err)
					}
				}
				if !strings.HasPrefix(line, name) {
					t.Fatalf("%q is not an example of %q", line, name)
				}
				if strings.Contains(line, "catalog.oci") || strings.Contains(line, "compose.yaml") {
					from := "catalog"
					if strings.Contains(line, " rm ") {
						from = "index.db" // another package has to be left
					}
					if got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", from, "-t", "catalog:v1", "--server",
						"none"); got.Status != 0 {
						t.Fatal(got.Stderr)
					}
				}
				if strings.Contains(line, "etcd.oci") {
					if got := clitest.RunProgram(t, dir, "bindery", "build", "bundle", "bundle", "-t",
						"etcd:v1"); got.Status != 0 {
						t.Fatal(got.Stderr)
					}
				}
				if strings.Contains(line, "compose.yaml") {
					clitest.WriteFile(t, filepath.Join(dir, "compose.yaml"),
						"repo: registry.example.com/acme/community\ntag: v1\nreferences:\n- name: etcd\n  image: "+
							"oci:catalog.oci:v1\n")
				}
				port := clitest.FreePort(t)
				line := strings.NewReplacer("50051", port, "50052", port, "9090", clitest.FreePort(t), "8080",
					clitest.FreePort(t)).Replace(line)
				args := strings.Fields(line)[1:]
				if strings.HasPrefix(name, "bindery mirror ") && name != "bindery mirror plan" {
					mirrorExample(t, dir, args)
					return
				}
				if accounts[args[0]] {
					p := &option.Session{Program: &program.Program{Stdin: strings.NewReader(""), Stdout: &cmdline.Pipe{W: io.Discard},
						Stderr: io.Discard}}
					if _, err := cmdline.Parse(app.New(p), append([]string{"bindery"}, args...)); err != nil {
						t.Error(err)
					}
					return
				}
				if strings.Contains(line, "--sign-key") {
					args = append(args, "--sign-passphrase-file", "passphrase.txt")
				}
				if (strings.Contains(line, " registry.example.com/") || strings.Contains(line, "imageset.yaml")) &&
					!strings.Contains(line, "build") && !strings.Contains(line, "unpack-job") {
					host, redirect := made.registry(t, dir)
					if writesBeside[args[0]] { // registries.conf redirects what is read only
						args[1] = strings.Replace(args[1], "registry.example.com", host, 1)
						redirect = []string{"--use-http"}
					}
					args = append(args, redirect...)
				}
				if strings.HasSuffix(name, " export") {
					args = withBundles(t, args)
				}
				switch {
				case args[0] == "probe":
					stop := clitest.ServeUntilStopped(t, dir, port, "serve", "catalog", "-p", port)
					defer stop()
				case strings.Contains(name, "serve") && !strings.Contains(line, "--cache-only"):
					if !strings.Contains(line, port) {
						t.Fatalf("%q says no port", line)
					}
					clitest.ServeUntilStopped(t, dir, port, args...)()
					return
				}
				got := clitest.RunProgram(t, dir, "bindery", serverless(t, append([]string{"bindery"}, args...))[1:]...)
				// A check has status 1 for what it finds.
				found := (args[0] == "check" || strings.Contains(line, "fmt catalog --check")) && got.Status == 1 && got.Stdout != "" && got.Stderr == ""
				if got.Status != 0 && !found {
					t.Errorf("status %d\n%s", got.Status, got.Stderr)
				}
			})
		}
	}
}

// accounts are the commands whose examples are parsed alone: their scripts run them, each with a registry of its own.
var accounts = map[string]bool{"login": true, "logout": true, "untag": true}

// writesBeside are the commands that use the registry of their argument, whatever mirrors it has.
var writesBeside = map[string]bool{"tags": true, "sign": true, "attest": true, "attach": true}

// exampleImages are the images that examples read, made once: a registry with them, another in which the catalog is signed, and
// the directory of the key pair.
type exampleImages struct {
	plain, signed *testregistry.Registry
	keys          string
}

func makeExampleImages(t *testing.T) exampleImages {
	t.Helper()
	made := exampleImages{plain: testregistry.New(t), keys: exampleKeys(t)}
	dir := clitest.WorkDir(t)
	clitest.NewBundle(t, filepath.Join(dir, "new-bundle"))
	bundle := filepath.Join("..", "..", "..", "testdata", "bundles", "etcd", "0.9.4")
	at := made.plain.Host() + "/acme/"
	for _, image := range [][]string{
		{"bundle", bundle, "-t", at + "etcd:v0.9.2", "-t", at + "etcd:v0.9.4"},
		{"bundle", filepath.Join(dir, "new-bundle"), "-t", at + "etcd:v0.9.5"},
		{"catalog", filepath.Join(dir, "small.db"), "--server", "none", "--cache", "none", "-t", at + "catalog:v1"},
	} {
		clitest.Done(t, ".", "bindery", append([]string{"build", "--push", "--use-http"}, image...)...)
	}
	made.signed = made.plain.Copy(t)
	clitest.WriteFile(t, filepath.Join(made.keys, "sbom.json"), "{}")
	signExample(t, made.keys, made.signed.Host()+"/acme/catalog:v1")
	return made
}

// registry starts a registry with the images of the examples and returns its host and the flags that redirect
// registry.example.com to it. The catalog is signed with the key of the directory, if there is one.
func (made exampleImages) registry(t *testing.T, dir string) (host string, redirect []string) {
	t.Helper()
	images := made.plain
	if _, err := os.Stat(filepath.Join(dir, "release.pub")); err == nil {
		images = made.signed
	}
	registry := images.Copy(t)
	return registry.Host(), []string{"--registries-conf", registry.RegistriesConf(t, "registry.example.com"), "--no-cache"}
}

// withBundles adds the registry of the bundles in the example's database to the command line.
func withBundles(t *testing.T, args []string) []string {
	t.Helper()
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	at := slices.Index(args, "--registries-conf")
	if at < 0 {
		return append(args, "--registries-conf", conf, "--no-cache")
	}
	both := clitest.ReadFile(t, args[at+1]) + clitest.ReadFile(t, conf)
	if err := os.WriteFile(args[at+1], []byte(both), 0o600); err != nil {
		t.Fatal(err)
	}
	return args
}

// End to end: a database becomes a catalog, an image, and a healthy server; list and render read the image too.
func TestWholeWay(t *testing.T) {
	dir := clitest.WorkDir(t)
	run := func(args ...string) string {
		t.Helper()
		got := clitest.RunProgram(t, dir, "bindery", args...)
		if got.Status != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		return got.Stdout
	}
	run("migrate", "small.db", "out", "--verify", "--report", "report.json")
	if !strings.Contains(clitest.ReadFile(t, filepath.Join(dir, "report.json")), `"same": true`) {
		t.Error("the report does not say that both sides are the same")
	}
	out := run("build", "catalog", "out", "-t", "example.com/acme/catalog:v1", "--digest-file", "digest", "--iid-file",
		"iid", "--image-refs", "refs", "--metadata-file", "metadata.json")
	digest := clitest.ReadFile(t, filepath.Join(dir, "digest"))
	if want := "oci:catalog.oci:v1\nexample.com/acme/catalog@" + digest + "\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if refs := clitest.ReadFile(t, filepath.Join(dir, "refs")); refs != "example.com/acme/catalog@"+digest+"\n" {
		t.Errorf("--image-refs has %q", refs)
	}
	if iid := clitest.ReadFile(t, filepath.Join(dir, "iid")); !strings.HasPrefix(iid, "sha256:") || iid == digest {
		t.Errorf("--iid-file has %q", iid)
	}
	again := run("build", "catalog", "small.db", "-t", "example.com/acme/catalog:v1", "--output", "oci:again",
		"--dry-run")
	if want := "example.com/acme/catalog@" + digest + "\n"; again != want {
		t.Errorf("straight from the database: got %q, want %q", again, want)
	}
	const image = "oci:catalog.oci:v1"
	for _, what := range []string{"packages", "channels", "bundles"} {
		if fromImage, fromDB := run("list", what, image), run("list", what, "small.db"); fromImage != fromDB {
			t.Errorf("list %s: the image has\n%s\nthe database\n%s", what, fromImage, fromDB)
		}
	}
	if fromImage, fromDir := run("render", image), run("render", "out"); fromImage != fromDir {
		t.Error("the image renders otherwise than the catalog in it")
	}
	port := clitest.FreePort(t)
	clitest.ServeUntilStopped(t, dir, port, "serve", image, "-p", port)()
	for _, service := range []string{"", "api.Registry"} {
		stop := clitest.ServeUntilStopped(t, dir, port, "registry", "serve", "-d", "small.db", "-p", port)
		got := clitest.RunProgram(t, dir, "grpc_health_probe", "-addr", "127.0.0.1:"+port, "-service", service)
		if got.Status != 0 || got.Stdout != "status: SERVING\n" {
			t.Errorf("service %q: %+v", service, got)
		}
		stop()
	}
	if got := clitest.RunProgram(t, dir, "grpc_health_probe", "-addr", "127.0.0.1:"+port); got.Status != 2 {
		t.Errorf("connection refused: %+v", got)
	}
}

func TestMigrateLeavesOutputThatIsThere(t *testing.T) {
	dir := clitest.WorkDir(t)
	before := clitest.Snapshot(t, dir)
	got := clitest.RunProgram(t, dir, "bindery", "migrate", "small.db", "cat")
	if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, `output dir "cat" must be empty`) {
		t.Errorf("%+v", got)
	}
	if after := clitest.Snapshot(t, dir); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
}

// A database with an invalid package: nothing is written unless --keep-going is set.
func TestMigrateKeepGoing(t *testing.T) {
	dir := clitest.WorkDir(t)
	db, err := sql.Open("sqlite", filepath.Join(dir, "small.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(
		`UPDATE operatorbundle SET version = 'latest' WHERE name = 'silicom-sts-operator.v0.0.2'`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	got := clitest.RunProgram(t, dir, "bindery", "migrate", "small.db", "out")
	if got.Status != 1 || !strings.Contains(got.Stderr, "silicom-sts-operator") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); !os.IsNotExist(err) {
		t.Errorf("out is there: %v", err)
	}
	got = clitest.RunProgram(t, dir, "bindery", "migrate", "small.db", "out", "--keep-going", "--report", "report.json")
	if got.Status != 4 || !strings.Contains(got.Stderr, "silicom-sts-operator") {
		t.Errorf("%+v", got)
	}
	if listed := clitest.RunProgram(t, dir, "bindery", "list", "packages", "out", "-o",
		"json"); !strings.Contains(listed.Stdout, `"etcd"`) || strings.Contains(listed.Stdout, "silicom") {
		t.Errorf("%+v", listed)
	}
	if report := clitest.ReadFile(t, filepath.Join(dir, "report.json")); !strings.Contains(report, `"quarantined"`) {
		t.Errorf("the report quarantines nothing:\n%s", report)
	}
}
