package manifests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// validator is a check of operator-controller's renderer. It returns a finding for each thing that is wrong, in a
// fixed order. The number is its place in the order in which operator-controller runs its checks.
type validator struct {
	number int
	check  func(*Bundle) []finding
}

// finding is a message of a validator about an object of the bundle, by kind and name.
type finding struct{ message, kind, name string }

// validators run in this order.
var validators = []validator{
	{1, (*Bundle).duplicateDeployments},
	{2, (*Bundle).badDeploymentNames},
	{3, (*Bundle).duplicateDefinitions},
	{4, (*Bundle).missingDefinitions},
	{5, (*Bundle).emptyPackage},
	{6, (*Bundle).conversionModes},
	{7, (*Bundle).webhooksWithoutDeployment},
	{8, (*Bundle).duplicateWebhooks},
	{9, (*Bundle).badWebhookNames},
	{10, (*Bundle).contestedDefinitions},
	{11, (*Bundle).unownedConversions},
	{12, (*Bundle).forbiddenRules},
	{13, (*Bundle).unsupportedKinds},
}

const (
	kindCSV = "ClusterServiceVersion"
	kindCRD = "CustomResourceDefinition"
)

// validate returns the messages of all validators as one error.
func (b *Bundle) validate() error {
	var messages []string
	for _, v := range validators {
		for _, f := range v.check(b) {
			messages = append(messages, f.message)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return &refusal{strings.Join(messages, "\n")}
}

// ofCSV makes findings of messages about the ClusterServiceVersion.
func (b *Bundle) ofCSV(messages []string) []finding {
	var out []finding
	for _, m := range messages {
		out = append(out, finding{m, kindCSV, b.csv.Name})
	}
	return out
}

func (b *Bundle) deployments() []v1alpha1.StrategyDeploymentSpec {
	return b.csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
}

func (b *Bundle) webhooks() []v1alpha1.WebhookDescription { return b.csv.Spec.WebhookDefinitions }

// repeated returns the names that occur more than once, sorted.
func repeated(names []string) []string {
	count := map[string]int{}
	var twice []string
	for _, n := range names {
		if count[n]++; count[n] == 2 {
			twice = append(twice, n)
		}
	}
	slices.Sort(twice)
	return twice
}

func (b *Bundle) duplicateDeployments() []finding {
	var names, out []string
	for _, d := range b.deployments() {
		names = append(names, d.Name)
	}
	for _, n := range repeated(names) {
		out = append(out, fmt.Sprintf("cluster service version contains duplicate strategy deployment spec '%s'", n))
	}
	return b.ofCSV(out)
}

// subdomainErrors returns what makes a name no DNS-1123 subdomain, sorted.
func subdomainErrors(name string) []string {
	return slices.Sorted(slices.Values(validation.IsDNS1123Subdomain(name)))
}

func (b *Bundle) badDeploymentNames() []finding {
	var out []string
	for _, n := range distinct(b.deployments(), func(d v1alpha1.StrategyDeploymentSpec) string { return d.Name }) {
		if why := subdomainErrors(n); len(why) > 0 {
			out = append(out, fmt.Sprintf("invalid cluster service version strategy deployment name '%s': %s", n,
				strings.Join(why, ", ")))
		}
	}
	return b.ofCSV(out)
}

// distinct returns the values of f, sorted, each once.
func distinct[T any, K cmp.Ordered](all []T, f func(T) K) []K {
	keys := make([]K, len(all))
	for i, v := range all {
		keys[i] = f(v)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (b *Bundle) duplicateDefinitions() []finding {
	var names []string
	for _, d := range b.crds {
		names = append(names, d.Name)
	}
	var out []finding
	for _, n := range repeated(names) {
		out = append(out,
			finding{fmt.Sprintf("bundle contains duplicate custom resource definition '%s'", n), kindCRD, n})
	}
	return out
}

func (b *Bundle) missingDefinitions() []finding {
	has := map[string]bool{}
	for _, d := range b.crds {
		has[d.Name] = true
	}
	var out []string
	owned := b.csv.Spec.CustomResourceDefinitions.Owned
	for _, n := range distinct(owned, func(d v1alpha1.CRDDescription) string { return d.Name }) {
		if !has[n] {
			out = append(out, fmt.Sprintf(
				"cluster service definition references owned custom resource definition '%s' not found in bundle", n))
		}
	}
	return b.ofCSV(out)
}

func (b *Bundle) emptyPackage() []finding {
	if b.name != "" {
		return nil
	}
	return []finding{{"package name is empty", "", ""}}
}

func (b *Bundle) unsupportedKinds() []finding {
	var out []finding
	for _, o := range b.others {
		if _, ok := supportedKinds[o.GetKind()]; !ok {
			out = append(out, finding{fmt.Sprintf("unsupported resource %q with kind %q", o.GetName(), o.GetKind()),
				o.GetKind(), o.GetName()})
		}
	}
	return out
}

// supportedKinds are the kinds of other objects, and whether they get the install namespace.
var supportedKinds = map[string]bool{
	"Secret": true, "ConfigMap": true, "Service": true, "ServiceAccount": true, "Role": true, "RoleBinding": true,
	"PrometheusRule": true, "ServiceMonitor": true, "PodMonitor": true, "PodDisruptionBudget": true,
	"NetworkPolicy": true,
	"ClusterRole":   false, "ClusterRoleBinding": false, "PriorityClass": false, "VerticalPodAutoscaler": false,
	"ConsoleYAMLSample": false, "ConsoleQuickStart": false, "ConsoleCLIDownload": false, "ConsoleLink": false,
	"ConsolePlugin": false,
}

// Supported reports whether OLM v1 applies objects of a kind: those of a bundle, or those that it generates.
func Supported(kind string, generated bool) bool {
	_, ok := supportedKinds[kind]
	return ok || generated || kind == kindCRD
}

func (b *Bundle) conversionModes() []finding {
	modes := b.supportedModes()
	if len(modes) == 1 && modes[0] == v1alpha1.InstallModeTypeAllNamespaces {
		return nil
	}
	var out []string
	for _, w := range b.webhooks() {
		if w.Type == v1alpha1.ConversionWebhook {
			out = append(out, fmt.Sprintf("bundle contains conversion webhook %q and supports install modes %v - "+
				"conversion webhooks are only supported for bundles that only support AllNamespaces install mode",
				w.GenerateName, modes))
		}
	}
	return b.ofCSV(out)
}

func (b *Bundle) webhooksWithoutDeployment() []finding {
	has := map[string]bool{}
	for _, d := range b.deployments() {
		has[d.Name] = true
	}
	var out []string
	for _, w := range sortedWebhooks(b.webhooks()) {
		if !has[w.DeploymentName] {
			out = append(out, fmt.Sprintf("webhook of type '%s' with name '%s' references non-existent deployment '%s'",
				w.Type, w.GenerateName, w.DeploymentName))
		}
	}
	return b.ofCSV(out)
}

// sortedWebhooks returns them by deployment, type and name.
func sortedWebhooks(all []v1alpha1.WebhookDescription) []v1alpha1.WebhookDescription {
	return slices.SortedStableFunc(slices.Values(all), func(x, y v1alpha1.WebhookDescription) int {
		return cmp.Or(cmp.Compare(x.DeploymentName, y.DeploymentName), cmp.Compare(x.Type, y.Type),
			cmp.Compare(x.GenerateName, y.GenerateName))
	})
}

// byType calls f with each type of webhook, sorted, and the names of its webhooks in the order of the CSV.
func (b *Bundle) byType(f func(kind v1alpha1.WebhookAdmissionType, names []string)) {
	names := map[v1alpha1.WebhookAdmissionType][]string{}
	for _, w := range b.webhooks() {
		names[w.Type] = append(names[w.Type], w.GenerateName)
	}
	for _, t := range distinct(b.webhooks(), func(w v1alpha1.WebhookDescription) v1alpha1.WebhookAdmissionType {
		return w.Type
	}) {
		f(t, names[t])
	}
}

func (b *Bundle) duplicateWebhooks() []finding {
	var out []string
	b.byType(func(kind v1alpha1.WebhookAdmissionType, names []string) {
		for _, n := range repeated(names) {
			out = append(out, fmt.Sprintf("duplicate webhook '%s' of type '%s'", n, kind))
		}
	})
	return b.ofCSV(out)
}

func (b *Bundle) badWebhookNames() []finding {
	var out []string
	b.byType(func(kind v1alpha1.WebhookAdmissionType, names []string) {
		for _, n := range slices.Compact(slices.Sorted(slices.Values(names))) {
			if why := subdomainErrors(n); len(why) > 0 {
				out = append(out, fmt.Sprintf("webhook of type '%s' has invalid name '%s': %s", kind, n,
					strings.Join(why, ",")))
			}
		}
	})
	return b.ofCSV(out)
}

// conversions returns the conversion webhooks by name.
func (b *Bundle) conversions() []v1alpha1.WebhookDescription {
	var out []v1alpha1.WebhookDescription
	for _, w := range b.webhooks() {
		if w.Type == v1alpha1.ConversionWebhook {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(x, y v1alpha1.WebhookDescription) int {
		return cmp.Compare(x.GenerateName, y.GenerateName)
	})
	return out
}

func (b *Bundle) contestedDefinitions() []finding {
	webhooks := map[string][]string{} // by definition, sorted
	var crds []string
	for _, w := range b.conversions() {
		for _, crd := range w.ConversionCRDs {
			crds = append(crds, crd)
			webhooks[crd] = append(webhooks[crd], w.GenerateName)
		}
	}
	var out []finding
	for _, crd := range repeated(crds) {
		out = append(out, finding{fmt.Sprintf("conversion webhooks [%s] reference same custom resource definition '%s'",
			strings.Join(webhooks[crd], ","), crd), kindCSV, b.csv.Name})
	}
	return out
}

func (b *Bundle) unownedConversions() []finding {
	owned := map[string]bool{}
	for _, d := range b.csv.Spec.CustomResourceDefinitions.Owned {
		owned[d.Name] = true
	}
	var out []string
	for _, w := range b.conversions() {
		for _, crd := range slices.Sorted(slices.Values(w.ConversionCRDs)) {
			if !owned[crd] {
				out = append(out, fmt.Sprintf("conversion webhook '%s' references custom resource definition '%s' not "+
					"owned bundle", w.GenerateName, crd))
			}
		}
	}
	return b.ofCSV(out)
}

const registrationGroup = "admissionregistration.k8s.io"

// protectedResources are resources of that group that webhooks may not be called for.
var protectedResources = []string{"*", "mutatingwebhookconfiguration", "mutatingwebhookconfigurations",
	"validatingwebhookconfiguration", "validatingwebhookconfigurations"}

func (b *Bundle) forbiddenRules() []finding {
	var out []string
	say := func(w v1alpha1.WebhookDescription, what string) {
		out = append(out, fmt.Sprintf("webhook %q contains forbidden rule: admission webhook rules cannot reference %s",
			w.GenerateName, what))
	}
	for _, w := range b.webhooks() {
		if w.Type == v1alpha1.ConversionWebhook {
			continue
		}
		for _, rule := range w.Rules {
			for _, group := range rule.APIGroups {
				if group == "*" || group == "olm.operatorframework.io" {
					say(w, fmt.Sprintf("API group %q", group))
				}
				if group != registrationGroup {
					continue
				}
				for _, r := range rule.Resources {
					if slices.Contains(protectedResources, strings.ToLower(r)) {
						say(w, fmt.Sprintf("resource %q for API group %q", r, group))
					}
				}
			}
		}
	}
	return b.ofCSV(out)
}
