package unpackjob

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Defaults of [Options], as in the Operator Lifecycle Manager, and the limit of [Options.Release].
const (
	DefaultOpmImage  = "quay.io/operator-framework/opm:latest"
	DefaultUtilImage = "quay.io/operator-framework/olm:latest"
	DefaultTimeout   = 10 * time.Minute
	DefaultUser      = 1001
	// OldestRelease is the oldest release of the Operator Lifecycle Manager whose objects [New] describes.
	OldestRelease = "0.28.0"
)

// Options configure [New]. Image and Namespace are required.
type Options struct {
	// Image is the reference of the bundle image as in the catalog.
	Image     string
	Namespace string
	// OpmImage contains opm; UtilImage contains the program /bin/cpb, which copies a bundle out of its own image.
	OpmImage, UtilImage string
	// ServiceAccount is an existing service account for the pod. If it is empty, the objects have one of their name; in
	// releases before 0.39 it is "default".
	ServiceAccount string
	// PullSecrets are the names of secrets with credentials for the images.
	PullSecrets []string
	// Timeout ends the job; 0 means never. It is rounded to whole seconds.
	Timeout time.Duration
	// User is the user id of the pod, which is then not root; 0 lets the cluster choose, as OpenShift requires.
	User int64
	// Release is the version of the Operator Lifecycle Manager that creates such objects, from [OldestRelease] on; empty
	// is the newest.
	Release string
	// Owner, unless nil, is the catalog source that owns the objects.
	Owner *Owner
}

// Owner is a CatalogSource. A cluster identifies it by its UID.
type Owner struct{ Name, UID string }

// nameOf returns the name of all objects for a bundle image: the first 63 hexadecimal digits of the sha256 of its
// reference, the maximum length of a label value.
func nameOf(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])[:63]
}

// Labels of the objects.
const (
	labelManaged = "olm.managed"
	labelRef     = "operatorframework.io/bundle-unpack-ref"
)

// Objects are the objects to create on the cluster, in order.
type Objects struct {
	ConfigMap *corev1.ConfigMap
	Role      *rbacv1.Role
	// ServiceAccount is nil if the pod uses another one.
	ServiceAccount *corev1.ServiceAccount
	RoleBinding    *rbacv1.RoleBinding
	Job            *batchv1.Job
}

// New describes the objects. Names that are invalid in Kubernetes are an error.
func New(o Options) (*Objects, error) {
	of, err := releaseOf(o.Release)
	if err = errors.Join(err, o.normalize()); err != nil {
		return nil, err
	}
	name := nameOf(o.Image)
	meta := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: map[string]string{labelManaged: "true"}}
	}
	cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta()}
	if o.Owner != nil {
		no := false
		cm.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "operators.coreos.com/v1alpha1", Kind: "CatalogSource", Name: o.Owner.Name,
			UID: types.UID(o.Owner.UID), Controller: &no, BlockOwnerDeletion: &no,
		}}
	}
	var account *corev1.ServiceAccount
	switch {
	case o.ServiceAccount != "":
	case of.account:
		o.ServiceAccount = name
		account = &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: rbacv1.ServiceAccountKind},
			ObjectMeta: meta()}
	default:
		o.ServiceAccount = "default"
	}
	role := &rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: meta(),
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"},
			ResourceNames: []string{name}, Verbs: []string{"create", "get", "update"}}},
	}
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: meta(),
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: o.ServiceAccount, Namespace: o.Namespace}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}
	job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: meta(), Spec: o.job(name, of)}
	job.Labels[labelRef] = name
	return &Objects{cm, role, account, binding, job}, nil
}

// JSON returns each object as JSON, with sorted keys and without fields that only the cluster sets.
func (o *Objects) JSON() ([]json.RawMessage, error) {
	objects := []any{o.ConfigMap, o.Role}
	if o.ServiceAccount != nil {
		objects = append(objects, o.ServiceAccount)
	}
	var out []json.RawMessage
	for _, object := range append(objects, o.RoleBinding, o.Job) {
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			return nil, err
		}
		delete(fields, "status")
		if text, err = json.Marshal(fields); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}
