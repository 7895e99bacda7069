package manifests

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// generation makes the objects of one rendering.
type generation struct {
	*Bundle
	namespace string   // of the operator
	targets   []string // the target namespaces
	certs     certificates
	config    *deploymentConfig // nil: none
	objects   []Object
	size      int    // bytes of the objects
	from      origin // of the objects that are added
	origins   []origin
}

// generate runs the generators in their order. The bundle is valid.
func (b *Bundle) generate(o RenderOptions, targets []string) ([]Object, error) {
	g, err := b.generation(o, targets)
	if err != nil {
		return nil, err
	}
	return g.objects, nil
}

func (b *Bundle) generation(o RenderOptions, targets []string) (*generation, error) {
	config, err := parseDeploymentConfig(o.DeploymentConfig)
	if err != nil {
		return nil, err
	}
	g := &generation{Bundle: b, namespace: o.InstallNamespace, targets: targets, certs: certificatesOf(o.Certs),
		config: config}
	for _, step := range []func() error{
		g.addServiceAccounts, g.addRoles, g.addClusterRoles, g.addDefinitions, g.addOthers, g.addDeployments,
		g.addValidatingWebhooks, g.addMutatingWebhooks, g.addServices, g.addCertificates,
	} {
		g.from = origin{file: b.csvFile}
		if err := step(); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// add prints a value of a Kubernetes type.
func (g *generation) add(apiVersion, kind, namespace, name string, value any) error {
	o, err := newObject(apiVersion, kind, namespace, name, value)
	if err != nil {
		return err
	}
	return g.append(o)
}

// append adds a manifest within the limit of their size.
func (g *generation) append(o Object) error {
	if g.size += len(o.JSON); g.size > maxRendered {
		return limit("the manifests have more than %d bytes", maxRendered)
	}
	g.objects, g.origins = append(g.objects, o), append(g.origins, g.from)
	return nil
}

// allNamespaces reports whether all namespaces, and nothing else, are the target.
func (g *generation) allNamespaces() bool { return len(g.targets) == 1 && g.targets[0] == "" }

// addOthers adds the other objects as they are, in the operator's namespace if their kind has one.
func (g *generation) addOthers() error {
	for _, o := range g.others {
		g.from = origin{o.file, true}
		u := &unstructured.Unstructured{Object: o.Object}
		if supportedKinds[o.GetKind()] {
			u = inNamespace(u, g.namespace)
		}
		if err := g.add(u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), u.Object); err != nil {
			return err
		}
	}
	return nil
}

// inNamespace returns an object in a namespace; what it does not change is shared. Metadata of another type, null
// included, stays, as Kubernetes' own method leaves it.
func inNamespace(u *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	top := make(map[string]any, len(u.Object))
	for k, v := range u.Object {
		top[k] = v
	}
	if old, ok := top["metadata"].(map[string]any); ok {
		metadata := make(map[string]any, len(old)+1)
		for k, v := range old {
			metadata[k] = v
		}
		top["metadata"] = metadata
	}
	out := &unstructured.Unstructured{Object: top}
	out.SetNamespace(namespace)
	return out
}

// webhookDeployments returns the names of the deployments that serve webhooks, sorted.
func (b *Bundle) webhookDeployments() []string {
	var names []string
	for _, w := range b.webhooks() {
		names = append(names, w.DeploymentName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
