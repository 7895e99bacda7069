package manifests

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-bindery/bindery/internal/nearest"
	"github.com/operator-bindery/bindery/olmv1"
)

// CertProvider is what makes the certificates of webhooks. The zero value means none.
type CertProvider string

const (
	// CertManager adds an Issuer and a Certificate of cert-manager. It is operator-controller's default.
	CertManager CertProvider = "cert-manager"
	// ServiceCA adds the annotations of OpenShift's service CA.
	ServiceCA CertProvider = "service-ca"
	// NoCerts makes no certificates; [Bundle.Manifests] then refuses bundles with webhooks.
	NoCerts CertProvider = "none"
)

// CertProviders returns the names of the certificate providers.
func CertProviders() []string {
	return []string{string(CertManager), string(ServiceCA), string(NoCerts)}
}

// UnmarshalText sets the certificate provider by its name. The error suggests a similar name.
func (p *CertProvider) UnmarshalText(name []byte) error {
	return setKnown(p, "certificate provider", string(name), CertProviders())
}

// Gate is a feature gate of operator-controller that has an effect on rendering.
type Gate string

const (
	// SingleOwnNamespace lets bundles be installed that do not support AllNamespaces, and watchNamespace be set. It is
	// off by default.
	SingleOwnNamespace Gate = "SingleOwnNamespaceInstallSupport"
	// DeploymentConfig lets deploymentConfig be set. It is off by default.
	DeploymentConfig Gate = "DeploymentConfig"
)

// otherGates are gates of operator-controller and catalogd without an effect on rendering. Those of certificate
// providers choose what [CertProvider] names.
var otherGates = []string{"WebhookProviderCertManager", "WebhookProviderOpenshiftServiceCA", "BoxcutterRuntime",
	"BundleReleaseSupport", "APIV1MetasHandler", "GraphQLCatalogQueries"}

// Gates returns the names of the gates.
func Gates() []string { return []string{string(SingleOwnNamespace), string(DeploymentConfig)} }

// UnmarshalText sets the gate by its name. The error suggests a similar name.
func (g *Gate) UnmarshalText(name []byte) error {
	if slices.Contains(otherGates, string(name)) {
		return fmt.Errorf("the gate %s has no effect on what is rendered; those that have are %s", name,
			strings.Join(Gates(), " and "))
	}
	return setKnown(g, "gate", string(name), Gates())
}

// setKnown sets a value to a name, and refuses one that is not among names.
func setKnown[T ~string](value *T, what, name string, names []string) error {
	if slices.Contains(names, name) {
		*value = T(name)
		return nil
	}
	if near, ok := nearest.Name(name, names); ok {
		return fmt.Errorf("unknown %s %.100q, did you mean %q?", what, name, near)
	}
	return fmt.Errorf("unknown %s %.100q, expected one of %s", what, name, strings.Join(names, ", "))
}

// Settings are those of a cluster and of the ClusterExtension that installs a bundle.
type Settings struct {
	// InstallNamespace is spec.namespace.
	InstallNamespace string
	// Certs is the certificate provider of the cluster.
	Certs CertProvider
	// Gates are the gates that are on.
	Gates []Gate
	// Config is spec.config.inline, YAML or JSON; nil: none.
	Config json.RawMessage
}

func (s Settings) isOn(g Gate) bool { return slices.Contains(s.Gates, g) }

// RenderOptions are those of the renderer alone.
type RenderOptions struct {
	// InstallNamespace is the namespace of the operator.
	InstallNamespace string
	// TargetNamespaces are the namespaces that the operator watches; one empty name means all. Without any it is all
	// namespaces if the bundle supports that, and an error otherwise.
	TargetNamespaces []string
	// Certs is the certificate provider. Without one, webhooks get no certificates.
	Certs CertProvider
	// DeploymentConfig is the configuration's deploymentConfig, a JSON object; nil: none. It is not checked against
	// the schema.
	DeploymentConfig json.RawMessage
}

// Runtime is the part of operator-controller that applies the objects of a bundle.
type Runtime string

const (
	// Helm applies the objects as the release of a chart. It is the default of operator-controller.
	Helm Runtime = "helm"
	// Boxcutter applies them as a ClusterObjectSet, phase by phase. The gate BoxcutterRuntime turns it on.
	Boxcutter Runtime = "boxcutter"
)

// Runtimes returns the names of the runtimes.
func Runtimes() []string { return []string{string(Helm), string(Boxcutter)} }

// UnmarshalText sets the runtime by its name. The error suggests a similar name.
func (r *Runtime) UnmarshalText(name []byte) error {
	return setKnown(r, "runtime", string(name), Runtimes())
}

// CheckExtension refuses what a ClusterExtension cannot be called whose bundle the runtime applies.
func (r Runtime) CheckExtension(name string) error { return olmv1.ExtensionName(name, r == Helm) }

// Marks are what OLM writes on every object that it applies for a ClusterExtension.
type Marks struct {
	// Extension is the name of the ClusterExtension.
	Extension string
	// Package and Version are those of the bundle. Boxcutter writes them, unless they are empty; Helm does not.
	Package, Version string
}

// The labels and annotations that operator-controller writes on what a ClusterExtension owns.
const (
	labelOwnerKind    = "olm.operatorframework.io/owner-kind"
	labelOwnerName    = "olm.operatorframework.io/owner-name"
	annotationPackage = "olm.operatorframework.io/package-name"
	annotationVersion = "olm.operatorframework.io/bundle-version"
)

// For returns the objects as a runtime applies them. Helm applies them as they are. Boxcutter removes the status, and all
// metadata but names, labels and annotations, and applies every CustomResourceDefinition as one of
// apiextensions.k8s.io/v1. With an extension in the marks, the objects get the labels and annotations of the runtime.
func (r Runtime) For(objects []Object, m Marks) ([]Object, error) {
	labels, annotations := map[string]string{}, map[string]string{}
	if m.Extension != "" {
		labels = map[string]string{labelOwnerKind: "ClusterExtension", labelOwnerName: m.Extension}
	}
	if m.Extension != "" && r == Boxcutter {
		annotations = map[string]string{annotationPackage: m.Package, annotationVersion: m.Version}
		maps.DeleteFunc(annotations, func(_, value string) bool { return value == "" })
	}
	if r != Boxcutter && len(labels) == 0 {
		return objects, nil
	}
	out := slices.Clone(objects)
	for i := range out {
		if err := out[i].mark(r, labels, annotations); err != nil {
			return nil, fmt.Errorf("%s: %w", out[i], err)
		}
	}
	return out, nil
}

// mark changes an object to what the runtime applies.
func (o *Object) mark(r Runtime, labels, annotations map[string]string) error {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(o.JSON, &top); err != nil {
		return err
	}
	metadata := map[string]json.RawMessage{}
	if err := objectIn(top["metadata"], &metadata); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	if r == Boxcutter {
		delete(top, "status")
		maps.DeleteFunc(metadata, func(name string, _ json.RawMessage) bool {
			return !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, name)
		})
		if o.Kind == kindCRD {
			o.APIVersion = apiextensionsv1.SchemeGroupVersion.String()
			top["apiVersion"] = json.RawMessage(`"` + o.APIVersion + `"`)
		}
	}
	if err := addMembers(metadata, "labels", labels); err != nil {
		return err
	}
	if err := addMembers(metadata, "annotations", annotations); err != nil {
		return err
	}
	if r == Boxcutter {
		if err := dropLastApplied(metadata); err != nil {
			return err
		}
	}
	var err error
	if top["metadata"], err = indentless(metadata); err != nil {
		return err
	}
	text, err := indentless(top)
	if err == nil {
		o.JSON, err = sortedJSON(text)
	}
	return err
}

// addMembers adds texts to the object that is a member of metadata.
func addMembers(metadata map[string]json.RawMessage, name string, texts map[string]string) error {
	if len(texts) == 0 {
		return nil
	}
	all := map[string]json.RawMessage{}
	if err := objectIn(metadata[name], &all); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for k, v := range texts {
		text, err := indentless(v)
		if err != nil {
			return err
		}
		all[k] = text
	}
	text, err := indentless(all)
	metadata[name] = text
	return err
}

// dropLastApplied removes the annotation in which kubectl keeps the whole object.
func dropLastApplied(metadata map[string]json.RawMessage) error {
	all := map[string]json.RawMessage{}
	if err := objectIn(metadata["annotations"], &all); err != nil {
		return fmt.Errorf("annotations: %w", err)
	}
	if _, ok := all[corev1.LastAppliedConfigAnnotation]; !ok {
		return nil
	}
	delete(all, corev1.LastAppliedConfigAnnotation)
	if len(all) == 0 {
		delete(metadata, "annotations")
		return nil
	}
	text, err := indentless(all)
	metadata["annotations"] = text
	return err
}

// Marks returns what [Runtime.For] wrote on an object, and for which runtime; without an extension nothing is known.
func (o Object) Marks() (Marks, Runtime) {
	var content struct {
		Metadata struct {
			Labels      map[string]any `json:"labels"`
			Annotations map[string]any `json:"annotations"`
		} `json:"metadata"`
	}
	if json.Unmarshal(o.JSON, &content) != nil {
		return Marks{}, Helm
	}
	var m Marks
	m.Extension, _ = content.Metadata.Labels[labelOwnerName].(string)
	m.Package, _ = content.Metadata.Annotations[annotationPackage].(string)
	m.Version, _ = content.Metadata.Annotations[annotationVersion].(string)
	if m.Extension != "" && m.Package != "" {
		return m, Boxcutter
	}
	return m, Helm
}
