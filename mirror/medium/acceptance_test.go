package medium_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/mirror/medium"
)

func skopeo(t *testing.T, from string, i image) {
	t.Helper()
	to := t.TempDir()
	c := exec.Command("skopeo", "copy", "--all", "--insecure-policy", "--src-tls-verify=false", "--preserve-digests",
		from, "dir:"+to)
	c.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "XDG_RUNTIME_DIR="+to)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %s %v", from, out, err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "manifest.json")); err != nil ||
		!bytes.Equal(text, i.manifest.content) {
		t.Errorf("%s: %s %v", from, text, err)
	}
}

// Skopeo reads an archive of one segment as it is, and one of several when it is extracted.
func TestSkopeo(t *testing.T) {
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skip("skopeo is not installed")
	}
	s := newSample(t)
	all := map[string]image{"acme/app:" + hexTag(s.app): s.app, "acme/multi:v1": s.multi, "acme/bundle:v1": s.bundle}
	one := t.TempDir()
	w := create(t, one, medium.Options{})
	s.write(t, w)
	finish(t, w, medium.Contents{})
	for name, i := range all {
		skopeo(t, "oci-archive:"+filepath.Join(one, "mirror_000001.tar")+":"+name, i)
	}
	several, layout := t.TempDir(), t.TempDir()
	w = create(t, several, medium.Options{SegmentBytes: 1 << 20})
	s.write(t, w)
	for _, seg := range finish(t, w, medium.Contents{}).Segments {
		extract(t, filepath.Join(several, seg.Name), layout)
	}
	for name, i := range all {
		skopeo(t, "oci:"+layout+":"+name, i)
	}
}

// What is extracted of an archive in the form of oc-mirror is the storage of a docker distribution registry.
func TestDockerRegistry(t *testing.T) {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("docker-registry is not installed")
	}
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skip("skopeo is not installed")
	}
	s := newSample(t)
	dir, root := t.TempDir(), t.TempDir()
	w := create(t, dir, medium.Options{Form: medium.OCMirror, SegmentBytes: 1 << 20})
	s.write(t, w)
	for _, seg := range finish(t, w, medium.Contents{}).Segments {
		extract(t, filepath.Join(dir, seg.Name), root)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	l.Close()
	config := filepath.Join(t.TempDir(), "config.yml")
	text := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: "+
		"{addr: %q}\n",
		root, host)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "serve", config)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	answers := func() bool {
		resp, err := http.Get("http://" + host + "/v2/")
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}
	tick, end := time.Tick(10*time.Millisecond), time.After(20*time.Second)
	for !answers() {
		select {
		case <-tick:
		case <-end:
			t.Fatal("the registry does not answer")
		}
	}
	for name, i := range map[string]image{"acme/app:" + hexTag(s.app): s.app, "acme/multi:v1": s.multi,
		"acme/bundle:v1": s.bundle, "acme/app:" + hexTag(s.app) + ".sig": s.signature,
		"acme/app@" + s.referrer.manifest.Digest.String(): s.referrer} {
		skopeo(t, "docker://"+host+"/"+name, i)
	}
}
