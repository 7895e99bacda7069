// Package kubetest is a Kubernetes API server in memory: it reads and replaces ConfigMaps, over TLS and with a token.
package kubetest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a running API server. It is safe for concurrent use.
type Cluster struct {
	server *httptest.Server

	mu        sync.Mutex
	maps      map[string]*corev1.ConfigMap // by NAMESPACE/NAME
	requests  []string
	interfere func(c *Cluster, w http.ResponseWriter, r *http.Request) bool
}

// Token is the token that clients must send.
const Token = "the-token-of-the-test"

// New starts a cluster and stops it when the test ends.
func New(t testing.TB) *Cluster {
	c := &Cluster{maps: map[string]*corev1.ConfigMap{}}
	c.server = httptest.NewTLSServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// Kubeconfig writes a kubeconfig file for the cluster.
func (c *Cluster) Kubeconfig(t testing.TB) string {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test",
			"cluster": map[string]any{"server": c.server.URL, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "test", "user": map[string]any{"token": Token}}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": "test"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Interfere sets a function that may answer a request instead of the cluster and then returns true.
func (c *Cluster) Interfere(f func(c *Cluster, w http.ResponseWriter, r *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interfere = f
}

// Set stores a ConfigMap under its namespace and name with a new resource version.
func (c *Cluster) Set(cm *corev1.ConfigMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(cm)
}

func (c *Cluster) set(cm *corev1.ConfigMap) *corev1.ConfigMap {
	key := cm.Namespace + "/" + cm.Name
	version := 0
	if old, ok := c.maps[key]; ok {
		version, _ = strconv.Atoi(old.ResourceVersion)
	}
	stored := cm.DeepCopy()
	stored.ResourceVersion = strconv.Itoa(version + 1)
	c.maps[key] = stored
	return stored
}

// Get returns the current ConfigMap; nil if there is none.
func (c *Cluster) Get(namespace, name string) *corev1.ConfigMap {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.maps[namespace+"/"+name].DeepCopy()
}

// Requests returns the requests so far as "METHOD PATH".
func (c *Cluster) Requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.requests...)
}

// ServeHTTP implements [http.Handler].
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.requests = append(c.requests, r.Method+" "+r.URL.Path)
	interfere := c.interfere
	c.mu.Unlock()
	if interfere != nil && interfere(c, w, r) {
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Token:
		Status(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
	case len(parts) != 3 || parts[1] != "configmaps":
		Status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	default:
		c.answer(w, r, parts[0], parts[2])
	}
}

func (c *Cluster) answer(w http.ResponseWriter, r *http.Request, namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cm, ok := c.maps[namespace+"/"+name]
	if !ok {
		Status(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("configmaps %q not found", name))
		return
	}
	switch r.Method {
	case http.MethodGet:
	case http.MethodPut:
		body, err := io.ReadAll(r.Body)
		sent := &corev1.ConfigMap{}
		if err == nil {
			err = json.Unmarshal(body, sent)
		}
		if err != nil || sent.Kind != "ConfigMap" || sent.APIVersion != "v1" || sent.Name != name ||
			sent.Namespace != namespace {
			Status(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("not the ConfigMap: %v", err))
			return
		}
		if sent.ResourceVersion != cm.ResourceVersion {
			Status(w, http.StatusConflict, metav1.StatusReasonConflict,
				fmt.Sprintf("Operation cannot be fulfilled on configmaps %q: the object has been modified", name))
			return
		}
		cm = c.set(sent)
	default:
		Status(w, http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "method not allowed")
		return
	}
	out := cm.DeepCopy()
	out.Kind, out.APIVersion = "ConfigMap", "v1"
	reply(w, http.StatusOK, out)
}

// Status answers with an error as Kubernetes does.
func Status(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	reply(w, code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code),
		Reason: reason, Message: message,
	})
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}
