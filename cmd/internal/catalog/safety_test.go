package catalog_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Concurrent edits wait for one another, and the result has the additions of all.
func TestEditsAtOnce(t *testing.T) {
	for _, path := range []string{"index.db", "catalog"} {
		t.Run(path, func(t *testing.T) {
			dir := clitest.EditDir(t)
			type run struct {
				stderr bytes.Buffer
				wait   func() error
			}
			var runs []*run
			for _, bundle := range []string{"etcd", "constraint-1"} {
				r := &run{}
				cmd := clitest.Command(dir, "bindery", "registry", "add", "-d", path, "-b", bundle, "--image-ref-template",
					clitest.RefTemplate, "--wait", "1m")
				cmd.Stderr = &r.stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				r.wait = cmd.Wait
				runs = append(runs, r)
			}
			for _, r := range runs {
				if err := r.wait(); err != nil {
					t.Errorf("%v\n%s", err, r.stderr.String())
				}
			}
			heads := channelsOf(t, dir, path)
			for _, want := range []string{"etcd/singlenamespace-alpha=v0.9.5",
				"synth-constraint/alpha=synth-constraint.v0.1.0"} {
				if !strings.Contains(heads, want) {
					t.Errorf("no %s in %s", want, heads)
				}
			}
		})
	}
}

// Adding a bundle twice changes nothing the second time; the exit status is opm's, 2 or 3.
func TestAddTwice(t *testing.T) {
	for _, path := range []string{"index.db", "catalog"} {
		t.Run(path, func(t *testing.T) {
			dir := clitest.EditDir(t)
			args := []string{"registry", "add", "-d", path, "-b", "etcd", "--image-ref-template", clitest.RefTemplate}
			clitest.Done(t, dir, "bindery", args...)
			start := clitest.Snapshot(t, dir)
			if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 2 {
				t.Errorf("%+v", got)
			}
			if got := clitest.RunProgram(t, dir, "bindery",
				append(args[:len(args)-1], "registry.example.com/other:v{{.Version}}")...); got.Status != 3 {
				t.Errorf("under another name: %+v", got)
			}
			if got := clitest.RunProgram(t, dir, "bindery", append(args, "--permissive")...); got.Status != 0 {
				t.Errorf("permissively: %+v", got)
			}
			if now := clitest.Snapshot(t, dir); now != start {
				t.Errorf("before\n%s\nafter\n%s", start, now)
			}
		})
	}
}

// A signal ends an add that waits for a registry; nothing has changed, and no temporary files are left.
func TestAddInterrupted(t *testing.T) {
	for _, path := range []string{"index.db", "catalog"} {
		t.Run(path, func(t *testing.T) {
			dir := clitest.EditDir(t)
			registry := testregistry.New(t)
			name := registry.Host() + "/acme/etcd:v0.9.5"
			clitest.Done(t, dir, "bindery", "build", "bundle", "etcd", "-t", name, "--push", "--use-http")
			asked, end := make(chan struct{}, 100), make(chan struct{})
			defer close(end)
			registry.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/blobs/") {
					return false
				}
				asked <- struct{}{}
				select {
				case <-end:
				case <-r.Context().Done():
				}
				return true
			})
			start, temp := clitest.Snapshot(t, dir), t.TempDir()
			cmd := clitest.Command(dir, "bindery", "registry", "add", "-d", path, "-b", "constraint-1,"+name, "--use-http",
				"--no-cache", "--image-ref-template", clitest.RefTemplate)
			cmd.Env = append(cmd.Env, "TMPDIR="+temp)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-asked
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 143 {
				t.Errorf("%v\n%s", err, stderr.String())
			}
			if now := clitest.Snapshot(t, dir); now != start {
				t.Errorf("before\n%s\nafter\n%s", start, now)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// Directories with the names of opm's temporary directories are not touched, and no others are created.
func TestEditsLeaveTheWorkingDirectoryAlone(t *testing.T) {
	dir := clitest.EditDir(t)
	for _, name := range []string{"cache", "database", "index_tmp_1", "bundle_tmp1"} {
		clitest.WriteFile(t, filepath.Join(dir, name, "mine"), name)
	}
	registry := testregistry.New(t)
	name := registry.Host() + "/acme/etcd:v0.9.5"
	clitest.Done(t, dir, "bindery", "build", "bundle", "etcd", "-t", name, "--push", "--use-http")
	start := strings.Split(clitest.Snapshot(t, dir), "\n")
	for _, args := range []string{"add -d index.db -b " + name + " --use-http --no-cache", "rm -d index.db -o etcd",
		"prune -d index.db -p silicom-sts-operator", "prune-stranded -d index.db"} {
		clitest.Done(t, dir, "opm", append([]string{"registry"}, strings.Fields(args)...)...)
	}
	now := strings.Split(clitest.Snapshot(t, dir), "\n")
	if len(now) != len(start) {
		t.Fatalf("before\n%s\nafter\n%s", strings.Join(start, "\n"), strings.Join(now, "\n"))
	}
	for i := range now {
		if now[i] != start[i] && !strings.HasPrefix(now[i], "index.db ") {
			t.Errorf("%q is %q now", start[i], now[i])
		}
	}
}

// Output files never replace a catalog that is being edited, and are not written into one.
func TestAccountsAreNoCatalogs(t *testing.T) {
	dir := clitest.EditDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "list"), "index.db out\n")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	start := clitest.Snapshot(t, dir)
	for _, line := range []string{
		"registry rm -d index.db -o etcd --account index.db",
		"registry rm -d index.db -o etcd --account ./empty/../index.db",
		"catalog rm catalog etcd --account catalog/account.json",
		"catalog merge index.db catalog --replace --account catalog/account.json",
		"catalog filter index.db -p etcd --to out --account index.db",
		"catalog filter index.db -p etcd --to empty --account empty/account.json",
		"index rm -f index.db -o etcd --server none --output oci:new -t acme/index:v1 --account index.db",
		"index rm -f catalog -o etcd --server none --output oci:new -t acme/index:v1 --digest-file catalog/digest",
		"index rm -f catalog -o etcd --generate -d catalog/Dockerfile",
		"index rm -f . -o etcd --generate",
		"migrate index.db out --report index.db",
		"migrate index.db empty --report empty/report.json",
		"migrate index.db -t acme/index:v1 --output oci:new --digest-file index.db",
		"migrate --from-file list --results index.db",
	} {
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(line)...)
		if got.Status == 0 || !strings.Contains(got.Stderr, "is the input") {
			t.Errorf("%s: %+v", line, got)
		}
		if now := clitest.Snapshot(t, dir); now != start {
			t.Fatalf("%s: before\n%s\nafter\n%s", line, start, now)
		}
	}
}

// Image flags without an image destination are an error.
func TestFlagsOfImagesWithoutImage(t *testing.T) {
	dir := clitest.EditDir(t)
	start := clitest.Snapshot(t, dir)
	for _, command := range []string{"catalog rm catalog etcd", "catalog filter index.db -p etcd --to out",
		"index rm -f catalog -o etcd --generate"} {
		for _, flag := range []string{"--annotation=a=b", "--compression=zstd", "--server=none", "--digest-file=digest",
			"--metadata-file=-", "--max-layers=3"} {
			got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(command), flag)...)
			if name, _, _ := strings.Cut(flag, "="); got.Status != 1 || !strings.Contains(got.Stderr, name) ||
				clitest.Snapshot(t, dir) != start {
				t.Errorf("%s %s: %+v", command, flag, got)
			}
		}
	}
	if got := clitest.RunProgram(t, dir, "bindery", "catalog", "rm", "catalog", "etcd", "--output-format",
		"sqlite"); got.Status != 1 || clitest.Snapshot(t, dir) != start {
		t.Errorf("--output-format: %+v", got)
	}
}

// Credentials in a reference do not appear in any message or account.
func TestNoCredentialsOfReferences(t *testing.T) {
	dir := clitest.EditDir(t)
	const secret = "s3cr3t"
	for _, line := range []string{
		"catalog add catalog docker://user:s3cr3t@127.0.0.1:1/x/y:v1",
		"catalog add catalog user:s3cr3t@127.0.0.1:1/x/y:v1 --permissive --account -",
		"registry add -d index.db -b user:s3cr3t@127.0.0.1:1/x/y:v1 --permissive --account account.json",
		"index rm -f docker://user:s3cr3t@127.0.0.1:1/x/y:v1 -o etcd -t acme/index:v1",
		"registry mirror catalog --to user:s3cr3t@mirror.example.com",
	} {
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(line)...)
		if strings.Contains(got.Stdout+got.Stderr, secret) || got.Stderr == "" {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if text := clitest.ReadFile(t, filepath.Join(dir, "account.json")); strings.Contains(text, secret) ||
		!strings.Contains(text, "127.0.0.1:1/x/y") {
		t.Error(text)
	}
}
