package cluster

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The objects that unpack a bundle image are taken, in the form of each version of OLM v0.
func TestUnpackJob(t *testing.T) {
	for name, flags := range map[string][]string{"current": nil, "older": {"--olm-version", "0.40"}, "user of the cluster": {"--user", "0"}} {
		t.Run(name, func(t *testing.T) {
			accepted(t, output(t, append([]string{"bundle", "unpack-job", "registry.example.com/acme/hello-bundle:v1.0.0", "-n", "olm"}, flags...)...),
				"Job", "Role", "RoleBinding", "ConfigMap")
		})
	}
}

// What the container of the Job does: it updates the ConfigMap that is there, and one that is not there is an error.
func TestExtract(t *testing.T) {
	namespace(t, "olm")
	env := []string{"KUBECONFIG=" + apiserver.kubeconfig, "CONTAINER_IMAGE=registry.example.com/acme/etcd:v1"}
	args := []string{"bundle", "extract", "-m", root + "testdata/bundles/etcd/0.9.4", "-n", "olm", "-c", "unpacked", "-z"}
	objects, err := decode([]byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unpacked", "namespace": "olm"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := apiserver.create(t.Context(), objects[0], "olm", false); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it finds what it wrote
		if r := ran(t, env, args...); r.status != 0 {
			t.Fatal(r.err)
		}
	}
	client, err := apiserver.resource(objects[0], "olm")
	if err != nil {
		t.Fatal(err)
	}
	there, err := client.Get(t.Context(), "unpacked", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	printed := ran(t, env[1:], append(args, "--dry-run", "-o", "json")...)
	var want struct {
		Metadata   metav1.ObjectMeta
		BinaryData map[string]string `json:"binaryData"`
	}
	decodeJSON(t, printed.out, &want)
	text, err := json.Marshal(there.Object["binaryData"])
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	decodeJSON(t, string(text), &got)
	if len(got) == 0 || len(got) != len(want.BinaryData) {
		t.Errorf("%d entries, printed are %d", len(got), len(want.BinaryData))
	}
	for name, data := range want.BinaryData {
		if got[name] != data {
			t.Errorf("%s differs from what --dry-run prints", name)
		}
	}
	for name, value := range want.Metadata.Annotations {
		if there.GetAnnotations()[name] != value {
			t.Errorf("annotation %s is %q, printed is %q", name, there.GetAnnotations()[name], value)
		}
	}
}

// The manifests of deploy are taken as they are.
func TestDeploy(t *testing.T) {
	var files []string
	for _, pattern := range []string{"mirror/*.yaml", "serve/*.yaml", "ci/*pod.yaml"} {
		some, err := filepath.Glob(filepath.Join(root, "deploy", pattern))
		if err != nil || len(some) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, some...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { accepted(t, jenkins(read(t, file))) })
	}
}

// jenkins fills in what Jenkins adds to the pod of an agent: its name, and the image of the container that talks to Jenkins.
func jenkins(text string) string {
	return strings.Replace(strings.Replace(text, "kind: Pod\nspec:", "kind: Pod\nmetadata: {name: agent}\nspec:", 1),
		"- name: jnlp\n", "- name: jnlp\n      image: jenkins/inbound-agent\n", 1)
}

func decodeJSON(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}
