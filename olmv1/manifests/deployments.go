package manifests

import (
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addDeployments adds the deployments of the ClusterServiceVersion. Their pods have its annotations, by which they
// learn the target namespaces.
func (g *generation) addDeployments() error {
	withWebhooks := g.webhookDeployments()
	for _, entry := range g.deployments() {
		spec := entry.Spec.DeepCopy()
		spec.Template.Annotations = g.podAnnotations(spec.Template.Annotations)
		history := int32(1)
		spec.RevisionHistoryLimit = &history
		d := &appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: entry.Name,
				Labels: maps.Clone(entry.Label)},
			Spec: *spec,
		}
		if _, served := slices.BinarySearch(withWebhooks, entry.Name); served && g.certs.provided() {
			mountCertificates(&d.Spec.Template.Spec, namesFor(entry.Name).certificate)
		}
		g.config.apply(d)
		if err := g.add("apps/v1", "Deployment", g.namespace, entry.Name, d); err != nil {
			return err
		}
	}
	return nil
}

// podAnnotations returns the annotations of a pod template.
func (g *generation) podAnnotations(own map[string]string) map[string]string {
	all := maps.Clone(g.csv.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, own)
	all["olm.targetNamespaces"] = strings.Join(g.targets, ",")
	all["olm.operatorNamespace"] = g.namespace
	return all
}

// certVolume is a volume with a certificate for webhooks, under the names that the libraries of operators expect.
type certVolume struct{ name, path, certificate, key string }

var certVolumes = []certVolume{
	{"webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"},
	{"apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"},
}

// mountCertificates gives all containers of a pod the certificate volumes in place of those that have their names, or
// that a container mounts at their paths. Init containers are left alone.
func mountCertificates(pod *corev1.PodSpec, secret string) {
	replaced := map[string]bool{}
	var volumes []corev1.Volume
	var mounts []corev1.VolumeMount
	for _, v := range certVolumes {
		replaced[v.name] = true
		volumes = append(volumes, corev1.Volume{Name: v.name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: []corev1.KeyToPath{
				{Key: "tls.crt", Path: v.certificate}, {Key: "tls.key", Path: v.key},
			}},
		}})
		mounts = append(mounts, corev1.VolumeMount{Name: v.name, MountPath: v.path})
	}
	for _, c := range pod.Containers {
		for _, m := range c.VolumeMounts {
			if slices.ContainsFunc(certVolumes, func(v certVolume) bool { return v.path == m.MountPath }) {
				replaced[m.Name] = true
			}
		}
	}
	pod.Volumes = append(slices.DeleteFunc(pod.Volumes, func(v corev1.Volume) bool { return replaced[v.Name] }),
		volumes...)
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.VolumeMounts = append(
			slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return replaced[m.Name] }), mounts...)
	}
}
