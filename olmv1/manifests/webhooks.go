package manifests

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const admissionVersion = "admissionregistration.k8s.io/v1"

func (g *generation) addValidatingWebhooks() error {
	const kind = "ValidatingWebhookConfiguration"
	for _, w := range g.webhooks() {
		if w.Type != v1alpha1.ValidatingAdmissionWebhook {
			continue
		}
		meta := g.webhookMeta(w)
		err := g.add(admissionVersion, kind, g.namespace, meta.Name, admissionv1.ValidatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionVersion, Kind: kind},
			ObjectMeta: meta,
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: meta.Name, ClientConfig: g.client(w), Rules: w.Rules, FailurePolicy: w.FailurePolicy,
				MatchPolicy: w.MatchPolicy, NamespaceSelector: g.selector(), ObjectSelector: w.ObjectSelector,
				SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
				AdmissionReviewVersions: w.AdmissionReviewVersions,
			}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *generation) addMutatingWebhooks() error {
	const kind = "MutatingWebhookConfiguration"
	for _, w := range g.webhooks() {
		if w.Type != v1alpha1.MutatingAdmissionWebhook {
			continue
		}
		meta := g.webhookMeta(w)
		err := g.add(admissionVersion, kind, g.namespace, meta.Name, admissionv1.MutatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionVersion, Kind: kind},
			ObjectMeta: meta,
			Webhooks: []admissionv1.MutatingWebhook{{
				Name: meta.Name, ClientConfig: g.client(w), Rules: w.Rules, FailurePolicy: w.FailurePolicy,
				MatchPolicy: w.MatchPolicy, NamespaceSelector: g.selector(), ObjectSelector: w.ObjectSelector,
				SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
				AdmissionReviewVersions: w.AdmissionReviewVersions, ReinvocationPolicy: w.ReinvocationPolicy,
			}},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// webhookMeta returns the metadata of a webhook's configuration. It has a namespace although its kind has none.
func (g *generation) webhookMeta(w v1alpha1.WebhookDescription) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: g.namespace, Name: strings.TrimSuffix(w.GenerateName, "-"),
		Annotations: g.certs.annotate(nil, g.namespace, namesFor(w.DeploymentName))}
}

// client returns where a webhook is served. The port is that of the ClusterServiceVersion, also if it is 0.
func (g *generation) client(w v1alpha1.WebhookDescription) admissionv1.WebhookClientConfig {
	port := w.ContainerPort
	return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: g.namespace,
		Name: namesFor(w.DeploymentName).service, Path: w.WebhookPath, Port: &port}}
}

// selector returns the namespaces that webhooks are called for; nil: all.
func (g *generation) selector() *metav1.LabelSelector {
	if len(g.targets) == 0 || slices.Contains(g.targets, "") {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: g.targets},
	}}
}

// addServices adds a service for each deployment with webhooks.
func (g *generation) addServices() error {
	served := map[string][]v1alpha1.WebhookDescription{}
	for _, w := range g.webhooks() {
		served[w.DeploymentName] = append(served[w.DeploymentName], w)
	}
	for _, d := range g.deployments() {
		ports := servicePorts(served[d.Name])
		if len(ports) == 0 {
			continue
		}
		var pods map[string]string
		if d.Spec.Selector != nil {
			pods = d.Spec.Selector.MatchLabels
		}
		n := namesFor(d.Name)
		err := g.add("v1", "Service", g.namespace, n.service, corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: n.service,
				Annotations: g.certs.annotateService(n)},
			Spec: corev1.ServiceSpec{Ports: ports, Selector: pods},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// servicePorts returns the ports of a deployment's webhooks, each once, by port and target port. A named target port
// counts as 0; several of them are sorted by name, where the real program's order is by chance.
func servicePorts(webhooks []v1alpha1.WebhookDescription) []corev1.ServicePort {
	var ports []corev1.ServicePort
	seen := map[corev1.ServicePort]bool{}
	for _, w := range webhooks {
		if p := servicePort(w); !seen[p] {
			seen[p] = true
			ports = append(ports, p)
		}
	}
	slices.SortFunc(ports, func(x, y corev1.ServicePort) int {
		return cmp.Or(cmp.Compare(x.Port, y.Port), cmp.Compare(x.TargetPort.IntValue(), y.TargetPort.IntValue()),
			cmp.Compare(x.TargetPort.String(), y.TargetPort.String()))
	})
	return ports
}

func servicePort(w v1alpha1.WebhookDescription) corev1.ServicePort {
	port := int32(443)
	if w.ContainerPort > 0 {
		port = w.ContainerPort
	}
	target := intstr.FromInt32(port)
	if w.TargetPort != nil {
		target = *w.TargetPort
	}
	return corev1.ServicePort{Name: strconv.Itoa(int(port)), Port: port, TargetPort: target}
}

func (p CertProvider) provided() bool { return p == CertManager || p == ServiceCA }

// annotate returns the annotations of a webhook configuration or definition with the one by
// which the certificate provider inserts the CA bundle.
func (p CertProvider) annotate(annotations map[string]string, namespace string, n webhookNames) map[string]string {
	switch p {
	case CertManager:
		return addEntry(annotations, "cert-manager.io/inject-ca-from", namespace+"/"+n.certificate)
	case ServiceCA:
		return addEntry(annotations, "service.beta.openshift.io/inject-cabundle", "true")
	default:
		return annotations
	}
}

// annotateService returns the annotations of a service with that which makes its certificate.
func (p CertProvider) annotateService(n webhookNames) map[string]string {
	if p == ServiceCA {
		return map[string]string{"service.beta.openshift.io/serving-cert-secret-name": n.certificate}
	}
	return nil
}

const certManagerVersion = "cert-manager.io/v1"

// issuer is an Issuer of cert-manager, as far as it is used.
type issuer struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		SelfSigned struct{} `json:"selfSigned"`
	} `json:"spec"`
	Status struct{} `json:"status"`
}

// certificate is a Certificate of cert-manager, as far as it is used.
type certificate struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            certificateSpec   `json:"spec"`
	Status          struct{}          `json:"status"`
}

type certificateSpec struct {
	CommonName  string    `json:"commonName"`
	DNSNames    []string  `json:"dnsNames"`
	Duration    string    `json:"duration"`
	IssuerRef   issuerRef `json:"issuerRef"`
	RenewBefore string    `json:"renewBefore"`
	SecretName  string    `json:"secretName"`
	Usages      []string  `json:"usages"`
}

type issuerRef struct {
	Name string `json:"name"`
}

// addCertificates adds an Issuer and a Certificate of cert-manager for each deployment with webhooks.
func (g *generation) addCertificates() error {
	if g.certs != CertManager {
		return nil
	}
	var names []webhookNames
	for _, d := range g.webhookDeployments() {
		names = append(names, namesFor(d))
	}
	slices.SortStableFunc(names, func(x, y webhookNames) int { return cmp.Compare(x.certificate, y.certificate) })
	for _, n := range names {
		own := issuer{TypeMeta: metav1.TypeMeta{APIVersion: certManagerVersion, Kind: "Issuer"},
			Metadata: metav1.ObjectMeta{Namespace: g.namespace, Name: n.issuer}}
		if err := g.add(certManagerVersion, "Issuer", g.namespace, n.issuer, own); err != nil {
			return err
		}
		host := n.service + "." + g.namespace
		err := g.add(certManagerVersion, "Certificate", g.namespace, n.certificate, certificate{
			TypeMeta: metav1.TypeMeta{APIVersion: certManagerVersion, Kind: "Certificate"},
			Metadata: metav1.ObjectMeta{Namespace: g.namespace, Name: n.certificate},
			Spec: certificateSpec{
				CommonName: host, DNSNames: []string{host, host + ".svc", host + ".svc.cluster.local"},
				Duration: "17520h0m0s", RenewBefore: "24h0m0s", Usages: []string{"server auth"},
				SecretName: n.certificate, IssuerRef: issuerRef{n.issuer},
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
