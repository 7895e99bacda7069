package manifests

import (
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Manifests returns what a ClusterExtension with these settings installs, in the order of operator-controller. The
// error is the first of its reasons not to install the bundle, with its text, and of the class [ErrInvalid].
func (b *Bundle) Manifests(s Settings) ([]Object, error) {
	if refused := b.refusals(s); len(refused) > 0 {
		return nil, &refusal{refused[0].message}
	}
	c, err := b.configuration(s)
	if err != nil {
		return nil, err
	}
	return b.Render(RenderOptions{InstallNamespace: s.InstallNamespace, TargetNamespaces: c.targets, Certs: s.Certs,
		DeploymentConfig: c.deployment})
}

// refused is a reason not to render a bundle at all.
type refused struct{ id, message string }

// refusals returns all of these reasons, in the order of operator-controller.
func (b *Bundle) refusals(s Settings) []refused {
	var out []refused
	if len(b.csv.Spec.APIServiceDefinitions.Owned) > 0 {
		out = append(out, refused{IDAPIService, "unsupported bundle: apiServiceDefintions are not supported"}) // sic
	}
	if b.HasWebhooks() && s.Certs != CertManager && s.Certs != ServiceCA {
		out = append(out, refused{IDWebhook, "unsupported bundle: webhookDefinitions are not supported"})
	}
	all := b.supports(v1alpha1.InstallModeTypeAllNamespaces)
	if !s.isOn(SingleOwnNamespace) && !all {
		out = append(out, refused{IDInstallMode,
			"unsupported bundle: bundle does not support AllNamespaces install mode"})
	}
	if !all && !b.watchable() {
		out = append(out, refused{IDInstallMode, "unsupported bundle: bundle must support at least one of " +
			"[AllNamespaces SingleNamespace OwnNamespace] install modes"})
	}
	return out
}

// watchable reports whether watchNamespace can be set.
func (b *Bundle) watchable() bool {
	return b.supports(v1alpha1.InstallModeTypeSingleNamespace) || b.supports(v1alpha1.InstallModeTypeOwnNamespace)
}

// Render returns the objects of the renderer alone: the validators, the target namespaces, then service accounts,
// roles, cluster roles, definitions, other objects, deployments, webhooks, services and certificates.
// The error has the text of operator-controller and is of the class [ErrInvalid].
func (b *Bundle) Render(o RenderOptions) ([]Object, error) {
	if err := b.validate(); err != nil {
		return nil, err
	}
	targets, err := b.targets(o.InstallNamespace, o.TargetNamespaces)
	if err != nil {
		return nil, err
	}
	return b.generate(o, targets)
}

// Definitions returns the CustomResourceDefinitions of the manifests, as [Bundle.Manifests] has them, whether or not
// the bundle can be installed.
func (b *Bundle) Definitions(s Settings) ([]Object, error) {
	g := &generation{Bundle: b, namespace: s.InstallNamespace, certs: s.Certs}
	if err := g.addDefinitions(); err != nil {
		return nil, err
	}
	return g.objects, nil
}
