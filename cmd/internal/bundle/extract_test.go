package bundle_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/kubetest"
)

// withEnv runs the program with additional environment variables.
func withEnv(t *testing.T, dir, name string, env []string, args ...string) clitest.Result {
	t.Helper()
	cmd := clitest.Command(dir, name, args...)
	cmd.Env = append(slices.DeleteFunc(cmd.Env, func(e string) bool {
		return strings.HasPrefix(e, "KUBE") || strings.HasPrefix(e, "CONTAINER_IMAGE=")
	}), env...)
	return clitest.Finish(t, cmd)
}

// The ConfigMap in the cluster gets the content that --dry-run prints and keeps its labels and owners.
func TestBundleExtract(t *testing.T) {
	cluster := kubetest.New(t)
	cluster.Set(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "cm", Labels: map[string]string{"olm.managed": "true"},
			Annotations: map[string]string{"old": "gone"}},
		Data: map[string]string{"old": "gone"},
	})
	dir := clitest.BundleDir(t)
	config := cluster.Kubeconfig(t)
	image := "CONTAINER_IMAGE=example.com/etcd@sha256:0123"
	args := []string{"bundle", "extract", "-m", "bundle/", "-n", "olm", "-c", "cm", "-z"}

	dry := withEnv(t, dir, "bindery", []string{image}, append(args, "--dry-run", "-o", "json")...)
	var want corev1.ConfigMap
	if err := json.Unmarshal([]byte(dry.Stdout), &want); err != nil || dry.Status != 0 {
		t.Fatalf("%+v: %v", dry, err)
	}
	got := withEnv(t, dir, "opm", []string{image, "KUBECONFIG=" + config},
		append([]string{"alpha"}, append(args, "-k", "nosuch")...)...)
	if got.Status != 0 || got.Stdout != "" {
		t.Fatalf("%+v", got)
	}
	is := cluster.Get("olm", "cm")
	same := maps.EqualFunc(is.BinaryData, want.BinaryData, func(a, b []byte) bool { return string(a) == string(b) })
	if !same || len(is.BinaryData) != 4 || len(is.Data) != 0 || !maps.Equal(is.Annotations, want.Annotations) ||
		is.Labels["olm.managed"] != "true" {
		t.Errorf("got %+v", is)
	}
	if is.Annotations["olm.sourceImage"] != "example.com/etcd@sha256:0123" ||
		is.Annotations["olm.contentEncoding"] != "gzip+base64" || len(is.Annotations) != 8 {
		t.Errorf("annotations %q", is.Annotations)
	}
	// The -k flag works too, and the trailing slash of the directory is optional.
	got = withEnv(t, dir, "bindery", nil, "bundle", "extract", "bundle", "-n", "olm", "-c", "cm", "-k", config)
	if is := cluster.Get("olm", "cm"); got.Status != 0 || len(is.Data) != 4 || len(is.BinaryData) != 0 ||
		len(is.Annotations) != 6 {
		t.Errorf("%+v: %+v", got, is)
	}
}

func TestBundleExtractErrors(t *testing.T) {
	cluster := kubetest.New(t)
	cluster.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "forbidden"}})
	cluster.Interfere(func(_ *kubetest.Cluster, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/forbidden") {
			return false
		}
		kubetest.Status(w, http.StatusForbidden, metav1.StatusReasonForbidden, `configmaps "forbidden" is forbidden`)
		return true
	})
	config := "KUBECONFIG=" + cluster.Kubeconfig(t)
	for _, c := range []struct{ name, env, args, want string }{
		{"missing", config, "bundle extract bundle -n olm -c nosuch",
			`error: ConfigMap olm/nosuch: the ConfigMap must exist: configmaps "nosuch" not found`},
		{"forbidden", config, "bundle extract bundle -n olm -c forbidden --error-format json",
			`"class":4,"message":"ConfigMap olm/forbidden: configmaps \"forbidden\" is forbidden","object":"olm/forbidden"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := withEnv(t, clitest.BundleDir(t), "bindery", []string{c.env}, strings.Fields(c.args)...)
			if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) {
				t.Errorf("%+v without %s", got, c.want)
			}
		})
	}
}

// The encoded data can be decoded with standard programs.
func TestBundleExtractReadByOthers(t *testing.T) {
	if _, err := exec.LookPath("gunzip"); err != nil {
		t.Skip("gunzip is not there")
	}
	dir := clitest.BundleDir(t)
	got := withEnv(t, dir, "bindery", nil, "bundle", "extract", "bundle", "-c", "cm", "-z", "--dry-run", "-o", "json")
	var cm struct{ BinaryData map[string]string }
	if err := json.Unmarshal([]byte(got.Stdout), &cm); err != nil {
		t.Fatal(err)
	}
	if len(cm.BinaryData) != 4 {
		t.Errorf("%d entries", len(cm.BinaryData))
	}
	for name, text := range cm.BinaryData {
		cmd := exec.Command("sh", "-c", "base64 -d | base64 -d | gunzip")
		cmd.Stdin, cmd.Stderr = strings.NewReader(text), os.Stderr
		out, err := cmd.Output()
		if want := clitest.ReadFile(t, filepath.Join(dir, "bundle", "manifests", name)); err != nil || string(out) != want {
			t.Errorf("%s: %v, got %q", name, err, out)
		}
	}
}
