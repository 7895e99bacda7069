package unpackjob

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// The number of failed pods after which the job has failed: the default would retry for ten minutes.
	backoffLimit = 3
	// The number of seconds for which a finished job is kept.
	keepFinished = 300
	// The number of seconds for which a pod stays on a node that is lost.
	lostNode = 120
)

// The directories that the containers of the pod share.
const (
	bundleVolume = "bundle"
	utilVolume   = "util"
)

// job returns the job: its pod copies a program into the bundle's own image, which then copies out the bundle, and opm
// writes it to the ConfigMap.
func (o Options) job(name string, of release) batchv1.JobSpec {
	backoff, keep := int32(backoffLimit), int32(keepFinished)
	spec := batchv1.JobSpec{
		BackoffLimit: &backoff,
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelManaged: "true"}},
			Spec:       o.pod(name, of),
		},
	}
	if of.expires {
		spec.TTLSecondsAfterFinished = &keep
	}
	if of.podRef {
		spec.Template.Labels[labelRef] = name
	}
	if o.Timeout > 0 {
		seconds := int64(o.Timeout / time.Second)
		spec.ActiveDeadlineSeconds = &seconds
	}
	return spec
}

func (o Options) pod(name string, of release) corev1.PodSpec {
	yes := true
	security := &corev1.PodSecurityContext{
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if o.User > 0 {
		security.RunAsUser, security.RunAsNonRoot = &o.User, &yes
	}
	spec := corev1.PodSpec{
		// A failed pod stays, so that its log can be read.
		RestartPolicy:      corev1.RestartPolicyNever,
		ServiceAccountName: o.ServiceAccount,
		SecurityContext:    security,
		NodeSelector:       map[string]string{corev1.LabelOSStable: string(corev1.Linux)},
		InitContainers: []corev1.Container{
			container(utilVolume, o.UtilImage, []string{"/bin/cp", "-Rv", "/bin/cpb", "/util/cpb"}, utilVolume),
			container("pull", o.Image, []string{"/util/cpb", "/bundle"}, bundleVolume, utilVolume),
		},
		Containers: []corev1.Container{
			container("extract", o.OpmImage,
				[]string{"opm", "alpha", "bundle", "extract", "-m", "/bundle/", "-n", o.Namespace, "-c", name, "-z"},
				bundleVolume),
		},
	}
	spec.InitContainers[1].ImagePullPolicy = pullPolicy(o.Image)
	spec.Containers[0].Env = []corev1.EnvVar{{Name: "CONTAINER_IMAGE", Value: o.Image}}
	for _, s := range o.PullSecrets {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
	}
	for _, v := range []string{bundleVolume, utilVolume} {
		spec.Volumes = append(spec.Volumes,
			corev1.Volume{Name: v, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	for _, arch := range []string{"amd64", "arm64", "ppc64le", "s390x"} {
		spec.Tolerations = append(spec.Tolerations,
			corev1.Toleration{Key: corev1.LabelArchStable, Operator: corev1.TolerationOpEqual, Value: arch})
	}
	if of.hardened {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				list[i].SecurityContext.ReadOnlyRootFilesystem = &yes
			}
		}
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: "node-role.kubernetes.io/master",
			Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
		lost := int64(lostNode)
		for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &lost})
		}
	}
	return spec
}

// container returns a container that the "restricted" pod security standard admits, with volumes mounted at their
// names.
func container(name, image string, command []string, volumes ...string) corev1.Container {
	no := false
	c := corev1.Container{
		Name: name, Image: image, Command: command,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("50Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	for _, v := range volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v, MountPath: "/" + v})
	}
	return c
}

// pullPolicy pulls an image again unless its name has a digest.
func pullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}
