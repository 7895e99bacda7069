package fullbuild

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Invalid requests are refused before any work, with all problems together and without values of secrets.
func TestCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BINDERY_TEST_TOKEN", "s3cret")
	good := Request{File: "Containerfile", Context: ".", Dir: "d"}
	for _, secret := range []string{"id=a,src=" + file, "id=a,source=" + file, "id=a,env=BINDERY_TEST_TOKEN",
		"id=BINDERY_TEST_TOKEN", "id=a,src=" + file + ",type=file"} {
		r := good
		r.Secrets = []string{secret}
		if err := r.check(); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
	}
	for secret, want := range map[string]string{
		"":                             "expected id=",
		"s3cret":                       "expected id=",
		"id=a,value=s3cret":            "unknown field",
		"src=" + file:                  "no id=NAME",
		"id=../a,src=" + file:          "no slash",
		"id=a,src=" + file + "x":       "no such file",
		"id=a,env=BINDERY_NOT_SET":     "not set",
		"id=a,src=" + file + ",env=B":  "either src or env",
		"id=a,mode=0400,src=" + file:   "unknown field",
		"id=a,type=socket,src=" + file: "unknown type",
	} {
		r := good
		r.Secrets = []string{secret}
		if err := r.check(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(),
			"s3cret") {
			t.Errorf("%q: %v", secret, err)
		}
	}
	err := Request{Format: Docker, Zstd: true, Secrets: []string{"x"}}.check()
	for _, want := range []string{"a Containerfile", "a context", "a working directory", "zstd", "--secret"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

// Commands of another architecture run only if the kernel has an enabled emulator for it.
func TestRunnable(t *testing.T) {
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	if other == "" {
		other = "amd64"
	}
	dir := t.TempDir()
	emulator := filepath.Join(dir, "qemu-"+machines[other])
	for _, c := range []struct {
		name, state string
		p           v1.Platform
		want        string
	}{
		{"this machine's", "", v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, ""},
		{"no emulator", "", v1.Platform{OS: "linux", Architecture: other}, "no emulator is registered"},
		{"an emulator", "enabled\ninterpreter /usr/bin/qemu\n", v1.Platform{OS: "linux", Architecture: other}, ""},
		{"one that is off", "disabled\n", v1.Platform{OS: "linux", Architecture: other}, "no emulator is registered"},
		{"another system", "", v1.Platform{OS: "windows", Architecture: runtime.GOARCH}, "linux only"},
	} {
		os.Remove(emulator)
		if c.state != "" {
			if err := os.WriteFile(emulator, []byte(c.state), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := runnable(c.p, dir)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
