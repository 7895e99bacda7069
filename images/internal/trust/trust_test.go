package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The policy is the file that the environment names, else that of the user.
func TestDefault(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("CONTAINERS_POLICY_JSON", "/named/policy.json")
	if path, err := Default(); path != "/named/policy.json" || err != nil {
		t.Errorf("%q, %v", path, err)
	}
	t.Setenv("CONTAINERS_POLICY_JSON", "")
	own := filepath.Join(home, ".config", "containers", "policy.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(own), 0o700), os.WriteFile(own, []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if path, err := Default(); path != own || err != nil {
		t.Errorf("%q, %v", path, err)
	}
	if err := errors.Join(os.Remove(own), os.Symlink("policy.json", own)); err != nil {
		t.Fatal(err)
	}
	path, err := Default()
	var file *PolicyFileError
	if !errors.As(err, &file) || file.File != own || !errors.Is(err, ErrPolicy) {
		t.Errorf("a policy that cannot be opened: %q, %v", path, err)
	}
}

// Errors name the file once, and are of the class of policies.
func TestErrors(t *testing.T) {
	cause := errors.New("no trusted key has signed the image")
	for _, c := range []struct {
		err  error
		want string
	}{
		{&PolicyError{File: "policy.json", Err: cause}, "signature policy: no trusted key has signed the image"},
		{&PolicyFileError{"policy.json", cause}, "signature policy: policy.json: no trusted key has signed the image"},
		{&PolicyFileError{"policy.json", &fs.PathError{Op: "open", Path: "policy.json", Err: cause}},
			"signature policy: open policy.json: no trusted key has signed the image"},
	} {
		if c.err.Error() != c.want || !errors.Is(c.err, ErrPolicy) || !errors.Is(c.err, cause) {
			t.Errorf("%v", c.err)
		}
	}
	long := &PolicyError{Err: errors.New(strings.Repeat("x", 10_000))}
	if n := len(long.Error()); n > 3000 {
		t.Errorf("the text has %d bytes", n)
	}
}
