package manifests

import (
	"fmt"
	"maps"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func preservesUnknown(name string) string {
	return fmt.Sprintf("custom resource definition '%s' must have .spec.preserveUnknownFields set to false to let API "+
		"Server call webhook to do the conversion", name)
}

// addDefinitions adds the CustomResourceDefinitions; those with a conversion webhook get its address.
func (g *generation) addDefinitions() error {
	converted := map[string]v1alpha1.WebhookDescription{}
	for _, w := range g.webhooks() {
		if w.Type == v1alpha1.ConversionWebhook {
			for _, name := range w.ConversionCRDs {
				converted[name] = w
			}
		}
	}
	for _, d := range g.crds {
		o := d.Object
		if w, ok := converted[d.Name]; ok {
			if d.preservesUnknown {
				return refusef("%s", preservesUnknown(d.Name))
			}
			var err error
			if o, err = g.withConversion(o, w); err != nil {
				return err
			}
		}
		g.objects = append(g.objects, o)
	}
	return nil
}

// withConversion returns a definition with the address of its conversion webhook.
func (g *generation) withConversion(o Object, w v1alpha1.WebhookDescription) (Object, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := utiljson.Unmarshal(o.JSON, &crd); err != nil {
		return o, fmt.Errorf("%s: %w", o, err)
	}
	crd.Spec.Conversion = g.conversion(w)
	crd.Annotations = g.certs.annotate(crd.Annotations, g.namespace, namesFor(w.DeploymentName))
	return newObject(o.APIVersion, o.Kind, o.Namespace, o.Name, crd)
}

func (g *generation) conversion(w v1alpha1.WebhookDescription) *apiextensionsv1.CustomResourceConversion {
	path, port := "/", w.ContainerPort
	if w.WebhookPath != nil {
		path = *w.WebhookPath
	}
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: g.namespace, Name: namesFor(w.DeploymentName).service, Path: &path, Port: &port,
			}},
			ConversionReviewVersions: w.AdmissionReviewVersions,
		},
	}
}

// with returns a copy of a map with one more entry.
func with(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}
