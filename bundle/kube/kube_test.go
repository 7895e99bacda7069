package kube_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operator-bindery/bindery/bundle/kube"
	"github.com/operator-bindery/bindery/internal/testing/kubetest"
)

func client(t *testing.T, c *kubetest.Cluster) *kube.Client {
	t.Helper()
	out, err := kube.NewClient(t.Context(), kube.Options{Kubeconfig: c.Kubeconfig(t)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func existing() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cm", Labels: map[string]string{"olm.managed": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u"}}},
		Data: map[string]string{"old": "x"},
	}
}

func setNew(cm *corev1.ConfigMap) { cm.Data = map[string]string{"new": "y"} }

func TestUpdateKeepsTheRest(t *testing.T) {
	c := kubetest.New(t)
	c.Set(existing())
	if err := client(t, c).Update(context.Background(), "ns", "cm", setNew); err != nil {
		t.Fatal(err)
	}
	got := c.Get("ns", "cm")
	if len(got.Data) != 1 || got.Data["new"] != "y" || got.Labels["olm.managed"] != "true" ||
		len(got.OwnerReferences) != 1 {
		t.Errorf("got %+v", got)
	}
}

// modifyBefore changes the ConfigMap before each of the first n updates, so that these conflict.
func modifyBefore(n int) func(c *kubetest.Cluster, w http.ResponseWriter, r *http.Request) bool {
	return func(c *kubetest.Cluster, _ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && n > 0 {
			n--
			cm := c.Get("ns", "cm")
			cm.Labels["changed"] = "meanwhile"
			c.Set(cm)
		}
		return false
	}
}

func TestConflictIsTriedAgain(t *testing.T) {
	c := kubetest.New(t)
	c.Set(existing())
	c.Interfere(modifyBefore(3))
	if err := client(t, c).Update(context.Background(), "ns", "cm", setNew); err != nil {
		t.Fatal(err)
	}
	if got := c.Get("ns", "cm"); got.Data["new"] != "y" || got.Labels["changed"] != "meanwhile" {
		t.Errorf("got %+v", got)
	}
	if n := len(c.Requests()); n != 8 {
		t.Errorf("%d requests: %q", n, c.Requests())
	}
}

func TestConflictForever(t *testing.T) {
	c := kubetest.New(t)
	c.Set(existing())
	c.Interfere(modifyBefore(1000))
	err := client(t, c).Update(context.Background(), "ns", "cm", setNew)
	if !apierrors.IsConflict(err) || len(c.Requests()) != 10 {
		t.Errorf("%v after %d requests", err, len(c.Requests()))
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.Interfere(func(c *kubetest.Cluster, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			kubetest.Status(w, http.StatusConflict, metav1.StatusReasonConflict, "modified")
			cancel()
			return true
		}
		return false
	})
	if err := client(t, c).Update(ctx, "ns", "cm", setNew); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestErrors(t *testing.T) {
	c := kubetest.New(t)
	err := client(t, c).Update(context.Background(), "ns", "cm", setNew)
	if !errors.Is(err, kube.ErrMissing) || !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "must exist") {
		t.Errorf("missing: %v", err)
	}
	c.Set(existing())
	c.Interfere(func(_ *kubetest.Cluster, w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			kubetest.Status(w, http.StatusForbidden, metav1.StatusReasonForbidden,
				`configmaps "cm" is forbidden: User "x" cannot update`)
		}
		return r.Method == http.MethodPut
	})
	if err := client(t, c).Update(context.Background(), "ns", "cm", setNew); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "cannot update") {
		t.Errorf("forbidden: %v", err)
	}
	if got := c.Get("ns", "cm"); got.Data["old"] != "x" {
		t.Errorf("got %+v", got)
	}
}

func TestKubeconfig(t *testing.T) {
	for _, env := range []string{"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
		t.Setenv(env, "")
	}
	if _, err := kube.NewClient(t.Context(), kube.Options{}); !errors.Is(err, kube.ErrNoCluster) {
		t.Errorf("none: %v", err)
	}
	if _, err := kube.NewClient(t.Context(), kube.Options{Kubeconfig: "/nosuch"}); err == nil {
		t.Error("a missing file is no error")
	}
	c := kubetest.New(t)
	c.Set(existing())
	several, err := kube.NewClient(t.Context(), kube.Options{Kubeconfig: "/nosuch:" + c.Kubeconfig(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := several.Update(context.Background(), "ns", "cm", setNew); err != nil {
		t.Error(err)
	}
}

func TestWarningsAreTold(t *testing.T) {
	c := kubetest.New(t)
	c.Set(existing())
	c.Interfere(func(_ *kubetest.Cluster, w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Warning", `299 - "soon gone"`)
		return false
	})
	var told []string
	k, err := kube.NewClient(t.Context(), kube.Options{Kubeconfig: c.Kubeconfig(t), Warn: func(m string) { told = append(told, m) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Update(context.Background(), "ns", "cm", setNew); err != nil || len(told) == 0 ||
		told[0] != "soon gone" {
		t.Errorf("%q, %v", told, err)
	}
}
