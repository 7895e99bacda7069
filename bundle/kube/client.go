package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/operator-bindery/bindery/internal/regularfile"
)

// ErrNoCluster is returned if neither a kubeconfig nor a pod's service account selects a cluster.
var ErrNoCluster = errors.New("no cluster: there is no kubeconfig, and this is not a pod")

// Options configure the connection to a cluster.
type Options struct {
	// Kubeconfig is a list of files as in the environment variable KUBECONFIG. Empty means the cluster that this pod
	// runs in.
	Kubeconfig string
	UserAgent  string
	// Warn, unless nil, is called with the cluster's warnings. It may be called concurrently.
	Warn func(message string)
}

// requestTimeout bounds one request; ConfigMaps are small.
const requestTimeout = time.Minute

// Client reads and writes ConfigMaps of a cluster. It is safe for concurrent use.
type Client struct{ rest rest.Interface }

// NewClient returns a client for ConfigMaps. The library's client for all kinds of objects would double the size of the
// program.
func NewClient(ctx context.Context, o Options) (*Client, error) {
	config, err := o.config(ctx)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{})
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.UserAgent = o.UserAgent
	config.Timeout = requestTimeout
	config.WarningHandler = rest.NoWarnings{}
	if o.Warn != nil {
		config.WarningHandler = warnings(o.Warn)
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Client{client}, nil
}

// get reads a ConfigMap.
func (c *Client) get(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{}
	return cm, c.rest.Get().Namespace(namespace).Resource("configmaps").Name(name).Do(ctx).Into(cm)
}

// put replaces a ConfigMap if it has not changed since it was read.
func (c *Client) put(ctx context.Context, namespace, name string, cm *corev1.ConfigMap) error {
	return c.rest.Put().Namespace(namespace).Resource("configmaps").Name(name).Body(cm).Do(ctx).Error()
}

func (o Options) config(ctx context.Context) (*rest.Config, error) {
	if o.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, ErrNoCluster
		}
		return config, err
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(o.Kubeconfig)}
	if len(rules.Precedence) == 1 {
		// A single file must exist; of several some may be missing.
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: rules.Precedence[0]}
	}
	if info, err := os.Stat(rules.ExplicitPath); err == nil && !info.Mode().IsRegular() {
		text, err := regularfile.ReadMounted(ctx, rules.ExplicitPath) // the library may read it more than once
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return config, nil
}

// warnings passes on warnings of the cluster.
type warnings func(string)

// HandleWarningHeader implements [rest.WarningHandler].
func (w warnings) HandleWarningHeader(_ int, _ string, message string) { w(message) }
