package images

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A user without an entry in /etc/passwd and without HOME can read images. The program is this test in another process.
func TestWithoutHome(t *testing.T) {
	const where = "BINDERY_TEST_REGISTRY"
	if host := os.Getenv(where); host != "" {
		yes := true
		c, err := NewClient(ClientOptions{Policy: policy.Read,
			Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &yes, PlainHTTP: true}.Env(os.Getenv)}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got, err := read(t.Context(), c, host+"/a/b:v1"); err != nil || got != "x" {
			t.Errorf("got %q, %v", got, err)
		}
		return
	}
	reg := testregistry.New(t)
	put(reg, "a/b", "v1", simple(t, "x"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "test"), program, 0o755) //nolint:gosec // it is a program
	}
	// Another user runs it, whatever the umask is.
	if err = errors.Join(err, os.Chmod(filepath.Join(dir, "test"), 0o755), os.Chmod(dir, 0o777),
		os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "test"), "-test.run=^TestWithoutHome$")
	cmd.Dir, cmd.Env = dir, []string{where + "=" + reg.Host(), "TMPDIR=" + dir}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1_000_690_000, Gid: 0}}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if n := reg.Count("GET /v2/a/b/manifests/v1"); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// Pushes find credentials in the same places as reading does, credential stores among them.
func TestPushWithACredentialStore(t *testing.T) {
	reg := testregistry.New(t)
	reg.Interfere(basic(nil))
	helper(t, "push", reg.Host(), "user", canary)
	config := filepath.Join(t.TempDir(), "config.json")
	write(t, config, `{"credsStore":"push"}`)
	r := insecure()
	r.AuthFiles = []string{filepath.Join(t.TempDir(), "none.json"), config}
	if _, err := copyOf(t.Context(), of(t, simple(t, "x")), dests(t, "docker://"+reg.Host()+"/a/b:v1"),
		CopyOptions{Options: registries.Options{Registry: r}}); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: r}}), reg.Host()+"/a/b:v1"); err != nil ||
		got != "x" {
		t.Errorf("got %q, %v", got, err)
	}
}
