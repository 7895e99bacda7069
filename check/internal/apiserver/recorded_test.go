package apiserver_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/check/internal/apiserver"
)

// answer is what an API server said of an object: the status of a dry run, and each field that is wrong.
type answer struct {
	Object json.RawMessage
	Code   int
	Causes []struct{ Message, Field string }
}

// shortened are the fields of which the API server's message has the whole value, and this package's has not.
var shortened = []string{"spec.strategy", "spec.template.spec.containers[0].securityContext"}

// What is said of an object, the API server says in the same words, and nothing is said of an object that it takes.
// Nearly all of what it refuses is found.
func TestRecordedAnswers(t *testing.T) {
	f, err := os.Open("../../../testdata/olmv1/apiserver.jsonl.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	refused, found := 0, 0
	for lines.Scan() {
		var a answer
		var head struct{ APIVersion, Kind string }
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(a.Object, &head); err != nil {
			t.Fatal(err)
		}
		got := apiserver.Validate(head.APIVersion, head.Kind, a.Object, 36)
		if a.Code >= 300 {
			refused++
			if got.Decode != nil || len(got.Fields) > 0 {
				found++
			}
		}
		if got.Decode != nil && (a.Code < 300 || len(a.Causes) > 0) {
			t.Errorf("%s: %v, and the API server says %d %v", a.Object, got.Decode, a.Code, a.Causes)
		}
		for _, e := range got.Fields {
			if !slices.ContainsFunc(a.Causes, func(c struct{ Message, Field string }) bool {
				return c.Field == e.Field && (c.Message == e.ErrorBody() || slices.Contains(shortened, e.Field) ||
					strings.Contains(e.ErrorBody(), "must specify one of"))
			}) {
				t.Errorf("%s: %v, and the API server says %d %v", a.Object, e, a.Code, a.Causes)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if refused < 1000 || found*100 < refused*95 {
		t.Errorf("%d of %d refused objects are found", found, refused)
	}
	t.Logf("%d of %d", found, refused)
}

func TestServed(t *testing.T) {
	for _, c := range []struct {
		apiVersion, kind string
		version          apiserver.Version
		why, instead     string
	}{
		{"policy/v1beta1", "PodDisruptionBudget", 24, "", ""},
		{"policy/v1beta1", "PodDisruptionBudget", 25, `no matches for kind "PodDisruptionBudget" in version ` +
			`"policy/v1beta1": Kubernetes 1.25 has removed it`, "policy/v1"},
		{"policy/v1", "PodDisruptionBudget", 20, `no matches for kind "PodDisruptionBudget" in version "policy/v1": ` +
			`Kubernetes 1.21 brought it`, "policy/v1beta1"},
		{"rbac.authorization.k8s.io/v1beta1", "Role", 21, "", ""},
		{"rbac.authorization.k8s.io/v1beta1", "Role", 22, `no matches for kind "Role" in version ` +
			`"rbac.authorization.k8s.io/v1beta1": Kubernetes 1.22 has removed it`, "rbac.authorization.k8s.io/v1"},
		{"rbac.authorization.k8s.io/v1alpha1", "Role", 10,
			`no matches for kind "Role" in version "rbac.authorization.k8s.io/v1alpha1"`, "rbac.authorization.k8s.io/v1"},
		{"extensions/v1beta1", "NetworkPolicy", 15, "", ""},
		{"extensions/v1beta1", "NetworkPolicy", 36, `no matches for kind "NetworkPolicy" in version ` +
			`"extensions/v1beta1": Kubernetes 1.16 has removed it`, "networking.k8s.io/v1"},
		{"apps/v1", "Service", 36, `no matches for kind "Service" in version "apps/v1"`, "v1"},
		{"serving.knative.dev/v1", "Service", 36, "", ""},
		{"", "ConfigMap", 36, `no matches for kind "ConfigMap" in version ""`, "v1"},
		{"monitoring.coreos.com/v1", "ServiceMonitor", 36, "", ""},
	} {
		why, instead := apiserver.Served(c.apiVersion, c.kind, c.version)
		if why != c.why || instead != c.instead {
			t.Errorf("%s %s in %s: %q, %q", c.apiVersion, c.kind, c.version, why, instead)
		}
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]apiserver.Version{"1.36": 36, "v1.25": 25, "1.22.3": 22, "v1.9.0": 9} {
		if got, err := apiserver.ParseVersion(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "2.1", "1.", "1.x", "1.36-alpha", "v1.0", "1.1000", "1.36 "} {
		if got, err := apiserver.ParseVersion(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("v1", "Service", []byte(`{"spec":{"ports":[{"name":"a","port":1},{"name":"a","port":1,"targetPort":"x"}]}}`))
	f.Add("apps/v1", "Deployment", []byte(`{"spec":{"selector":{},"template":{"spec":{"containers":[{}]}}}}`))
	f.Add("policy/v1", "PodDisruptionBudget", []byte(`{"spec":{"minAvailable":"1%","maxUnavailable":-1}}`))
	f.Fuzz(func(_ *testing.T, apiVersion, kind string, object []byte) {
		apiserver.Served(apiVersion, kind, apiserver.Current)
		apiserver.Validate(apiVersion, kind, object, apiserver.Current)
	})
}
