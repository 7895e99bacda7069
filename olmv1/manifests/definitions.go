package manifests

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-bindery/bindery/internal/jsonscan"
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
		g.from = origin{d.file, true}
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
		if err := g.append(o); err != nil {
			return err
		}
	}
	return nil
}

// withConversion returns a definition with the address of its conversion webhook.
func (g *generation) withConversion(o Object, w v1alpha1.WebhookDescription) (Object, error) {
	conversion, err := json.Marshal(g.conversion(w))
	if err == nil {
		conversion, err = sortedJSON(conversion)
	}
	if err != nil {
		return o, fmt.Errorf("%s: %w", o, err)
	}
	o.JSON = withMember(o.JSON, "spec", withMember(jsonscan.Member(o.JSON, "spec"), "conversion", conversion))
	metadata := jsonscan.Member(o.JSON, "metadata")
	annotations := jsonscan.Member(metadata, "annotations")
	for key, value := range g.certs.annotate(nil, g.namespace, namesFor(w.DeploymentName)) {
		text, err := indentless(value)
		if err != nil {
			return o, err
		}
		annotations = withMember(annotations, key, text)
		o.JSON = withMember(o.JSON, "metadata", withMember(metadata, "annotations", annotations))
	}
	return o, nil
}

// withMember returns an object, canonical JSON or nothing, with a member in place of the one of its name.
func withMember(object []byte, name string, value []byte) []byte {
	out := make([]byte, 0, len(object)+len(name)+len(value)+8)
	out = append(out, '{')
	add := func(key string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), key...), `":`...), value...)
	}
	done := false
	jsonscan.Members(object, func(key, old []byte) bool {
		if !done && string(key) >= name {
			done = true
			add(name, value)
		}
		if string(key) != name {
			add(string(key), old)
		}
		return true
	})
	if !done {
		add(name, value)
	}
	return append(out, '}')
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

// addEntry returns a copy of a map with one more entry.
func addEntry(m map[string]string, key, value string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[key] = value
	return out
}
