package manifests

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

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
