package manifests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/nearest"
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

func (s Settings) on(g Gate) bool { return slices.Contains(s.Gates, g) }

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
