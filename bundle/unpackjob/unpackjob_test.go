package unpackjob_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/bundle/unpackjob"
)

const image = "quay.io/a/b@sha256:20764874ca1b2665ae825cd2e3bfbf0c1e242ec0e116e9f6a2f56aa5b5ba677a"

// name is the first 63 digits of the output of "printf %s IMAGE | sha256sum".
const name = "708cb81ca1750d274be239559f5fe5a70f5723e8b9120b7cfb72743c3588819"

func objects(t *testing.T, o unpackjob.Options) *unpackjob.Objects {
	t.Helper()
	out, err := unpackjob.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestName(t *testing.T) {
	o := objects(t, unpackjob.Options{Image: image, Namespace: "olm"})
	if got := o.Job.Name; got != name || len(got) != 63 {
		t.Errorf("got %s", got)
	}
}

// The output has only fields of Kubernetes' types and decodes to the same objects.
func TestStrictDecoding(t *testing.T) {
	o := objects(t, unpackjob.Options{Image: image, Namespace: "ns", Timeout: 90 * time.Second, User: 1001,
		PullSecrets: []string{"s"}, Owner: &unpackjob.Owner{Name: "cs", UID: "u-1"}})
	texts, err := o.JSON()
	if err != nil {
		t.Fatal(err)
	}
	into := []any{&corev1.ConfigMap{}, &rbacv1.Role{}, &corev1.ServiceAccount{}, &rbacv1.RoleBinding{}, &batchv1.Job{}}
	for i, want := range []any{o.ConfigMap, o.Role, o.ServiceAccount, o.RoleBinding, o.Job} {
		if err := yaml.UnmarshalStrict(texts[i], into[i]); err != nil {
			t.Errorf("%s: %v", texts[i], err)
		}
		a, err1 := json.Marshal(into[i])
		b, err2 := json.Marshal(want)
		if err1 != nil || err2 != nil || string(a) != string(b) {
			t.Errorf("got  %s\nwant %s", a, b)
		}
		if strings.Contains(string(texts[i]), `"status"`) || strings.Contains(string(texts[i]), "creationTimestamp") {
			t.Errorf("%s has what only a cluster knows", texts[i])
		}
	}
	again, err := objects(t, unpackjob.Options{Image: image, Namespace: "ns", Timeout: 90 * time.Second, User: 1001,
		PullSecrets: []string{"s"}, Owner: &unpackjob.Owner{Name: "cs", UID: "u-1"}}).JSON()
	if err != nil || !reflect.DeepEqual(texts, again) {
		t.Errorf("the second time it is another: %v", err)
	}
}

func TestEverythingHasOneName(t *testing.T) {
	o := objects(t, unpackjob.Options{Image: image, Namespace: "ns"})
	got := []string{
		o.ConfigMap.Name, o.Role.Name, o.ServiceAccount.Name, o.RoleBinding.Name, o.Job.Name, o.RoleBinding.RoleRef.Name,
		o.Role.Rules[0].ResourceNames[0], o.RoleBinding.Subjects[0].Name, o.Job.Spec.Template.Spec.ServiceAccountName,
		o.Job.Spec.Template.Spec.Containers[0].Command[9], o.Job.Labels["operatorframework.io/bundle-unpack-ref"],
		o.Job.Spec.Template.Labels["operatorframework.io/bundle-unpack-ref"],
	}
	for i, n := range got {
		if n != name {
			t.Errorf("%d: %s", i, n)
		}
	}
	if o = objects(t, unpackjob.Options{Image: image, Namespace: "ns", ServiceAccount: "sa"}); o.ServiceAccount != nil {
		t.Errorf("service account %s", o.ServiceAccount.Name)
	}
	if s := o.RoleBinding.Subjects[0]; s.Kind != "ServiceAccount" || s.Name != "sa" || s.Namespace != "ns" ||
		o.Job.Spec.Template.Spec.ServiceAccountName != "sa" {
		t.Errorf("subject %+v", s)
	}
	if got := fmt.Sprint(o.Role.Rules[0].Verbs, o.Role.Rules[0].Resources); got != "[create get update] [configmaps]" {
		t.Errorf("rules %s", got)
	}
}

func TestJob(t *testing.T) {
	job := objects(t, unpackjob.Options{Image: image, Namespace: "ns"}).Job
	if *job.Spec.BackoffLimit != 3 || *job.Spec.TTLSecondsAfterFinished != 300 ||
		job.Spec.ActiveDeadlineSeconds != nil {
		t.Errorf("got %+v", job.Spec)
	}
	pod := job.Spec.Template.Spec
	if pod.RestartPolicy != corev1.RestartPolicyNever || pod.NodeSelector["kubernetes.io/os"] != "linux" ||
		len(pod.NodeSelector) != 1 {
		t.Errorf("got %+v", pod)
	}
	var seen []string
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		seen = append(seen, c.Name+" "+c.Image+" "+strings.Join(c.Command, " "))
	}
	want := []string{
		"util quay.io/operator-framework/olm:latest /bin/cp -Rv /bin/cpb /util/cpb",
		"pull " + image + " /util/cpb /bundle",
		"extract quay.io/operator-framework/opm:latest opm alpha bundle extract -m /bundle/ -n ns -c " + name + " -z",
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("got %q", seen)
	}
	if env := pod.Containers[0].Env; len(env) != 1 || env[0].Name != "CONTAINER_IMAGE" || env[0].Value != image {
		t.Errorf("env %+v", env)
	}
	if pod.InitContainers[1].ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("pull policy %s", pod.InitContainers[1].ImagePullPolicy)
	}
	if p := objects(t, unpackjob.Options{Image: "quay.io/a/b:v1",
		Namespace: "ns"}).Job.Spec.Template.Spec.InitContainers[1].ImagePullPolicy; p != corev1.PullAlways {
		t.Errorf("pull policy of a tag: %s", p)
	}
}

// The pod is admitted by the "restricted" pod security standard; without a user, where the cluster chooses one.
func TestRestricted(t *testing.T) {
	for _, user := range []int64{0, 1001} {
		pod := objects(t, unpackjob.Options{Image: image, Namespace: "ns", User: user}).Job.Spec.Template.Spec
		s := pod.SecurityContext
		if s == nil || (s.RunAsNonRoot != nil && *s.RunAsNonRoot) != (user > 0) || s.SeccompProfile == nil ||
			s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("pod: %+v", s)
		}
		if (s.RunAsUser != nil) != (user > 0) || user > 0 && *s.RunAsUser != user {
			t.Errorf("user %d: %v", user, s.RunAsUser)
		}
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Capabilities == nil ||
				fmt.Sprint(s.Capabilities.Drop) != "[ALL]" || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: %+v", c.Name, s)
			}
		}
		for _, v := range pod.Volumes {
			if v.EmptyDir == nil {
				t.Errorf("volume %+v", v)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for want, o := range map[string]unpackjob.Options{
		"bundle image":    {Image: "Not An Image", Namespace: "ns"},
		"opm image":       {Image: image, Namespace: "ns", OpmImage: "x y"},
		"namespace":       {Image: image, Namespace: "a.b"},
		"service account": {Image: image, Namespace: "ns", ServiceAccount: "A"},
		"pull secret":     {Image: image, Namespace: "ns", PullSecrets: []string{"x\ny"}},
		"UID":             {Image: image, Namespace: "ns", Owner: &unpackjob.Owner{Name: "x"}},
		"timeout":         {Image: image, Namespace: "ns", Timeout: time.Millisecond},
		"user":            {Image: image, Namespace: "ns", User: -1},
		"no version":      {Image: image, Namespace: "ns", Release: "main"},
		"from 0.28.0 on":  {Image: image, Namespace: "ns", Release: "0.27.5"},
		"those of 0.x":    {Image: image, Namespace: "ns", Release: "4.20"},
	} {
		if _, err := unpackjob.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// What the objects of each release have that those of another one lack.
func TestReleases(t *testing.T) {
	for release, want := range map[string]string{
		"0.28": "", "v0.31.0": "", "0.32.0-rc.1": "label", "v0.32.0": "label", "0.33.0": "label hardened",
		"0.38.9": "label hardened", "v0.39.0": "label hardened account", "0.42": "label hardened account",
		"0.43.0": "label hardened account expires", "0.99.0": "label hardened account expires",
		"": "label hardened account expires",
	} {
		o := objects(t, unpackjob.Options{Image: image, Namespace: "ns", Release: release})
		var got []string
		pod := o.Job.Spec.Template
		if pod.Labels["operatorframework.io/bundle-unpack-ref"] == name {
			got = append(got, "label")
		}
		hardened := len(pod.Spec.Tolerations) == 7
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			if (c.SecurityContext.ReadOnlyRootFilesystem != nil) != hardened {
				t.Errorf("%s: %s: %+v", release, c.Name, c.SecurityContext)
			}
		}
		if hardened {
			got = append(got, "hardened")
		}
		if account := pod.Spec.ServiceAccountName; account != o.RoleBinding.Subjects[0].Name ||
			(account == name) != (o.ServiceAccount != nil) || account != name && account != "default" {
			t.Errorf("%s: the service account %s", release, account)
		}
		if o.ServiceAccount != nil {
			got = append(got, "account")
		}
		if o.Job.Spec.TTLSecondsAfterFinished != nil {
			got = append(got, "expires")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %s, want %s", release, got, want)
		}
	}
}
