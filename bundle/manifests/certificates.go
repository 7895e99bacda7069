package manifests

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// certificates is what a certificate provider adds to objects.
type certificates struct {
	provider CertProvider
}

func certificatesOf(p CertProvider) certificates { return certificates{p} }

// provided reports whether there is a provider.
func (c certificates) provided() bool { return c.provider == CertManager || c.provider == ServiceCA }

// annotate returns the annotations of a webhook configuration or definition with that which puts the CA bundle in.
func (c certificates) annotate(annotations map[string]string, namespace string, n webhookNames) map[string]string {
	switch c.provider {
	case CertManager:
		return with(annotations, "cert-manager.io/inject-ca-from", namespace+"/"+n.certificate)
	case ServiceCA:
		return with(annotations, "service.beta.openshift.io/inject-cabundle", "true")
	default:
		return annotations
	}
}

// annotateService returns the annotations of a service with that which makes its certificate.
func (c certificates) annotateService(n webhookNames) map[string]string {
	if c.provider == ServiceCA {
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
	if g.certs.provider != CertManager {
		return nil
	}
	var names []webhookNames
	for _, d := range g.webhookDeployments() {
		names = append(names, namesFor(d))
	}
	for _, n := range sortedByCertificate(names) {
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
