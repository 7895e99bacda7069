package app_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

const ciDir = "../../../deploy/ci/"

func strictly(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(clitest.ReadFile(t, ciDir+file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// ciPods returns the pods of the CI recipes.
func ciPods(t *testing.T) map[string]*corev1.PodSpec {
	t.Helper()
	var job batchv1.Job
	strictly(t, "pod.yaml", &job)
	var agent corev1.Pod
	strictly(t, "jenkins-pod.yaml", &agent)
	served, _ := clitest.ServedCatalog(t)
	out := map[string]*corev1.PodSpec{"serve/catalog.yaml": &served.Spec.Template.Spec,
		"pod.yaml": &job.Spec.Template.Spec, "jenkins-pod.yaml": &agent.Spec}
	for name, m := range mirrorManifests(t) {
		for _, j := range m.jobs {
			out["mirror/"+name] = &j.Spec.Template.Spec
		}
	}
	return out
}

// The pods of the recipes pass Kubernetes' own check of the restricted profile; a pod without restrictions fails it.
func TestCIPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	refused := func(spec *corev1.PodSpec) string {
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &metav1.ObjectMeta{}, spec))
		return result.ForbiddenDetail()
	}
	for name, spec := range ciPods(t) {
		if why := refused(spec); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		yes := true
		for what, spoil := range map[string]func(*corev1.PodSpec){
			"root":       func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
			"privileges": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = &yes },
			"host files": func(s *corev1.PodSpec) {
				s.Volumes = append(s.Volumes,
					corev1.Volume{Name: "h",
						VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
			},
		} {
			spoiled := spec.DeepCopy()
			spoil(spoiled)
			if refused(spoiled) == "" {
				t.Errorf("%s: nothing forbids %s", name, what)
			}
		}
	}
}
