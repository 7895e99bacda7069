package manifests

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// generation makes the objects of one rendering.
type generation struct {
	*Bundle
	namespace string   // of the operator
	targets   []string // the target namespaces
	certs     CertProvider
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
	g := &generation{Bundle: b, namespace: o.InstallNamespace, targets: targets, certs: o.Certs,
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
	top := maps.Clone(u.Object)
	if metadata, ok := top["metadata"].(map[string]any); ok {
		top["metadata"] = maps.Clone(metadata)
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

const maxLabel = 63

// short joins a base and a suffix with a dash. The base is cut so that the name has at most 63 bytes; where base and
// suffix have 63 bytes together, nothing is cut and the name has 64, as in operator-controller.
func short(base, suffix string) string {
	if len(base)+len(suffix) > maxLabel {
		base = base[:max(maxLabel-len(suffix)-1, 0)]
	}
	return base + "-" + suffix
}

// uniqueName returns a name for what is made of a value: the base with a hash of the value's JSON, in base 36.
func uniqueName(base string, value any) (string, error) {
	h := sha256.New224()
	if err := json.NewEncoder(h).Encode(value); err != nil {
		return "", err
	}
	return short(base, new(big.Int).SetBytes(h.Sum(nil)).Text(36)), nil
}

// webhookNames are the names of what serves the webhooks of a deployment.
type webhookNames struct{ service, certificate, issuer string }

func namesFor(deployment string) webhookNames {
	n := webhookNames{service: short(strings.ReplaceAll(deployment, ".", "-"), "service")}
	n.certificate = short(n.service, "cert")
	n.issuer = short(n.certificate, "selfsigned-issuer")
	return n
}

// supportedModes returns the supported install modes, sorted, each once.
func (b *Bundle) supportedModes() []v1alpha1.InstallModeType {
	modes := []v1alpha1.InstallModeType{}
	for _, m := range b.csv.Spec.InstallModes {
		if m.Supported {
			modes = append(modes, m.Type)
		}
	}
	slices.Sort(modes)
	return slices.Compact(modes)
}

func (b *Bundle) supports(mode v1alpha1.InstallModeType) bool {
	return slices.ContainsFunc(b.csv.Spec.InstallModes, func(m v1alpha1.InstallMode) bool {
		return m.Supported && m.Type == mode
	})
}

// targets returns the target namespaces: those given, or all namespaces if the bundle supports that.
func (b *Bundle) targets(installNamespace string, given []string) ([]string, error) {
	targets := given
	if len(given) == 0 && b.supports(v1alpha1.InstallModeTypeAllNamespaces) {
		targets = []string{""}
	}
	if err := b.checkTargets(installNamespace, targets); err != nil {
		return nil, refusef("invalid option(s): invalid target namespaces %v: %v", targets, err)
	}
	return targets, nil
}

// checkTargets refuses target namespaces that the install modes do not allow. It takes them as a set.
func (b *Bundle) checkTargets(installNamespace string, targets []string) error {
	set := slices.Compact(slices.Sorted(slices.Values(targets)))
	own, all := slices.Contains(set, installNamespace), slices.Contains(set, "")
	modes := b.supportedModes()
	switch {
	case len(set) == 0 && b.supports(v1alpha1.InstallModeTypeMultiNamespace):
		return errors.New("at least one target namespace must be specified")
	case len(set) == 0:
		return errors.New("exactly one target namespace must be specified")
	case len(set) == 1 && all:
		if b.supports(v1alpha1.InstallModeTypeAllNamespaces) {
			return nil
		}
		return fmt.Errorf("supported install modes %v do not support targeting all namespaces", modes)
	case len(set) == 1 && own && b.supports(v1alpha1.InstallModeTypeOwnNamespace):
		return nil
	case own && !b.supports(v1alpha1.InstallModeTypeOwnNamespace):
		return fmt.Errorf("supported install modes %v do not support targeting own namespace", modes)
	case len(set) == 1 && b.supports(v1alpha1.InstallModeTypeSingleNamespace):
		return nil
	case len(set) > 1 && !all && b.supports(v1alpha1.InstallModeTypeMultiNamespace):
		return nil
	}
	return fmt.Errorf("supported install modes %v do not support target namespaces %v", modes, targets)
}
