package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// relaxedVariables is the version since which the name of a variable may have other characters.
const relaxedVariables Version = 34

func deployment(d *appsv1.Deployment, v Version) (out field.ErrorList) {
	spec, path := &d.Spec, field.NewPath("spec")
	for _, n := range []struct {
		name  string
		value *int32
	}{{"replicas", spec.Replicas}, {"minReadySeconds", &spec.MinReadySeconds},
		{"revisionHistoryLimit", spec.RevisionHistoryLimit}, {"progressDeadlineSeconds", spec.ProgressDeadlineSeconds}} {
		if n.value != nil {
			out = append(out, validation.ValidateNonnegativeField(int64(*n.value), path.Child(n.name))...)
		}
	}
	if p := spec.ProgressDeadlineSeconds; p != nil && *p <= spec.MinReadySeconds {
		out = append(out, field.Invalid(path.Child("progressDeadlineSeconds"), *p, "must be greater than minReadySeconds"))
	}
	at := path.Child("selector")
	switch {
	case spec.Selector == nil:
		out = append(out, field.Required(at, ""))
	default:
		out = append(out, selector(spec.Selector, at)...)
		if len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
			out = append(out, field.Invalid(at, spec.Selector, "empty selector is invalid for deployment"))
		}
	}
	template := path.Child("template")
	if s, err := metav1.LabelSelectorAsSelector(spec.Selector); err == nil && !s.Empty() &&
		!s.Matches(labels.Set(spec.Template.Labels)) {
		out = append(out, field.Invalid(template.Child("metadata", "labels"), spec.Template.Labels,
			"`selector` does not match template `labels`"))
	}
	out = append(out, strategy(&spec.Strategy, path.Child("strategy"))...)
	out = append(out, v1validation.ValidateLabels(spec.Template.Labels, template.Child("labels"))...)
	out = append(out, validation.ValidateAnnotations(spec.Template.Annotations, template.Child("annotations"))...)
	return append(out, validatePod(&spec.Template.Spec, template.Child("spec"), v)...)
}

func strategy(s *appsv1.DeploymentStrategy, path *field.Path) (out field.ErrorList) {
	typ := cmp.Or(s.Type, appsv1.RollingUpdateDeploymentStrategyType)
	out = append(out, oneOf(path, typ, appsv1.RecreateDeploymentStrategyType,
		appsv1.RollingUpdateDeploymentStrategyType)...)
	at := path.Child("rollingUpdate")
	if typ == appsv1.RecreateDeploymentStrategyType && s.RollingUpdate != nil {
		out = append(out, field.Forbidden(at, "may not be specified when strategy `type` is '"+string(typ)+"'"))
	}
	if r := s.RollingUpdate; r != nil && typ == appsv1.RollingUpdateDeploymentStrategyType {
		out = append(out, numberOrPercent(r.MaxUnavailable, at.Child("maxUnavailable"))...)
		if r.MaxSurge != nil && (r.MaxSurge.Type != intstr.String || len(utilvalidation.IsValidPercent(r.MaxSurge.StrVal)) > 0) {
			out = append(out, numberOrPercent(r.MaxSurge, at.Child("maxSurge"))...) // it may be more than 100%
		}
	}
	return out
}

func validatePod(spec *corev1.PodSpec, path *field.Path, v Version) (out field.ErrorList) {
	volumes, list := podVolumes(spec.Volumes, path.Child("volumes"))
	out = append(out, list...)
	if len(spec.Containers) == 0 {
		out = append(out, field.Required(path.Child("containers"), ""))
	}
	taken := names{}
	for i := range spec.Containers {
		c, at := &spec.Containers[i], path.Child("containers").Index(i)
		out = append(out, container(c, volumes, at, v)...)
		if !taken.add(c.Name) {
			out = append(out, field.Duplicate(at.Child("name"), c.Name))
		}
		out = append(out, probes(c, at)...)
	}
	for i := range spec.InitContainers {
		c, at := &spec.InitContainers[i], path.Child("initContainers").Index(i)
		out = append(out, container(c, volumes, at, v)...)
		if !taken.add(c.Name) {
			out = append(out, field.Duplicate(at.Child("name"), c.Name))
		}
		if c.RestartPolicy != nil {
			out = append(out, probes(c, at)...)
			continue
		}
		for _, not := range []struct {
			name string
			set  bool
		}{{"lifecycle", c.Lifecycle != nil}, {"livenessProbe", c.LivenessProbe != nil},
			{"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil}} {
			if not.set {
				out = append(out, field.Forbidden(at.Child(not.name),
					"may not be set for init containers without restartPolicy=Always"))
			}
		}
	}
	out = append(out, oneOf(path.Child("restartPolicy"), cmp.Or(spec.RestartPolicy, corev1.RestartPolicyAlways),
		corev1.RestartPolicyAlways)...)
	if spec.ActiveDeadlineSeconds != nil {
		out = append(out, field.Forbidden(path.Child("activeDeadlineSeconds"),
			"activeDeadlineSeconds in ReplicaSet is not Supported"))
	}
	out = append(out, oneOf(path.Child("dnsPolicy"), cmp.Or(spec.DNSPolicy, corev1.DNSClusterFirst), corev1.DNSClusterFirstWithHostNet,
		corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)...)
	out = append(out, v1validation.ValidateLabels(spec.NodeSelector, path.Child("nodeSelector"))...)
	if name := cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount); name != "" {
		out = append(out, invalid(path.Child("serviceAccountName"), name, validation.ValidateServiceAccountName(name, false))...)
	}
	if name := spec.PriorityClassName; name != "" {
		out = append(out, invalid(path.Child("priorityClassName"), name, validation.NameIsDNSSubdomain(name, false))...)
	}
	if s := spec.SecurityContext; s != nil && s.SeccompProfile != nil {
		out = append(out, seccomp(s.SeccompProfile, path.Child("securityContext", "seccompProfile"))...)
	}
	return append(out, scheduling(spec, path)...)
}

// podVolumes validates volumes, and returns the names of the valid ones.
func podVolumes(volumes []corev1.Volume, path *field.Path) (valid names, out field.ErrorList) {
	valid = names{}
	for i := range volumes {
		vol, at := &volumes[i], path.Index(i)
		wrong := volumeSource(&vol.VolumeSource, at)
		if vol.Name == "" {
			wrong = append(wrong, field.Required(at.Child("name"), ""))
		} else {
			wrong = append(wrong, invalid(at.Child("name"), vol.Name, utilvalidation.IsDNS1123Label(vol.Name))...)
		}
		if valid[vol.Name] {
			wrong = append(wrong, field.Duplicate(at.Child("name"), vol.Name))
		}
		if len(wrong) == 0 {
			valid[vol.Name] = true
		}
		out = append(out, wrong...)
	}
	return valid, out
}

// volumeSource validates the sources that operators have. A volume without a source is an emptyDir.
func volumeSource(s *corev1.VolumeSource, at *field.Path) (out field.ErrorList) {
	required := func(name, key, value string) {
		if value == "" {
			out = append(out, field.Required(at.Child(name, key), ""))
		}
	}
	several := 0
	if s.EmptyDir != nil {
		several++
	}
	if s.HostPath != nil {
		several++
		required("hostPath", "path", s.HostPath.Path)
	}
	if s.Secret != nil {
		if several++; several == 1 {
			required("secret", "secretName", s.Secret.SecretName)
			out = append(out, keysToPaths(s.Secret.Items, at.Child("secret", "items"))...)
		}
	}
	if s.PersistentVolumeClaim != nil {
		if several++; several == 1 {
			required("persistentVolumeClaim", "claimName", s.PersistentVolumeClaim.ClaimName)
		}
	}
	if s.ConfigMap != nil {
		if several++; several == 1 {
			required("configMap", "name", s.ConfigMap.Name)
			out = append(out, keysToPaths(s.ConfigMap.Items, at.Child("configMap", "items"))...)
		}
	}
	for _, other := range []struct {
		name string
		set  bool
	}{{"secret", s.Secret != nil}, {"persistentVolumeClaim", s.PersistentVolumeClaim != nil},
		{"configMap", s.ConfigMap != nil}} {
		if other.set && several > 1 {
			out = append(out, field.Forbidden(at.Child(other.name), "may not specify more than 1 volume type"))
			break
		}
	}
	return out
}

func keysToPaths(items []corev1.KeyToPath, at *field.Path) (out field.ErrorList) {
	for i, item := range items {
		if item.Key == "" {
			out = append(out, field.Required(at.Index(i).Child("key"), ""))
		}
		if item.Path == "" {
			out = append(out, field.Required(at.Index(i).Child("path"), ""))
		}
		out = append(out, descending(item.Path, at.Index(i).Child("path"))...)
	}
	return out
}

func container(c *corev1.Container, volumes names, at *field.Path, v Version) (out field.ErrorList) {
	if c.Name == "" {
		out = append(out, field.Required(at.Child("name"), ""))
	} else {
		out = append(out, invalid(at.Child("name"), c.Name, utilvalidation.IsDNS1123Label(c.Name))...)
	}
	if c.Image == "" {
		out = append(out, field.Required(at.Child("image"), ""))
	}
	if c.ImagePullPolicy != "" {
		out = append(out, oneOf(at.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent,
			corev1.PullNever)...)
	}
	if c.TerminationMessagePolicy != "" {
		out = append(out, oneOf(at.Child("terminationMessagePolicy"), c.TerminationMessagePolicy,
			corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	}
	out = append(out, containerPorts(c.Ports, at.Child("ports"))...)
	out = append(out, variables(c.Env, at.Child("env"), v)...)
	out = append(out, mounts(c.VolumeMounts, volumes, at.Child("volumeMounts"))...)
	out = append(out, resources(&c.Resources, at.Child("resources"))...)
	if s := c.SecurityContext; s != nil {
		at := at.Child("securityContext")
		for _, id := range []struct {
			name  string
			value *int64
		}{{"runAsUser", s.RunAsUser}, {"runAsGroup", s.RunAsGroup}} {
			if id.value != nil && *id.value < 0 {
				out = append(out, field.Invalid(at.Child(id.name), *id.value, "must be between 0 and 2147483647, inclusive"))
			}
		}
		if s.SeccompProfile != nil {
			out = append(out, seccomp(s.SeccompProfile, at.Child("seccompProfile"))...)
		}
		if s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation && s.Privileged != nil && *s.Privileged {
			out = append(out, field.Invalid(at, field.OmitValueType{},
				"cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
		}
	}
	return out
}

func seccomp(p *corev1.SeccompProfile, at *field.Path) field.ErrorList {
	if p.Type == "" {
		return field.ErrorList{field.Required(at.Child("type"), "type is required when seccompProfile is set")}
	}
	out := oneOf(at.Child("type"), p.Type, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault,
		corev1.SeccompProfileTypeUnconfined)
	local := p.Type == corev1.SeccompProfileTypeLocalhost
	switch at := at.Child("localhostProfile"); {
	case len(out) > 0:
	case local && p.LocalhostProfile == nil:
		out = append(out, field.Required(at, "must be set when seccomp type is Localhost"))
	case local:
		out = descending(*p.LocalhostProfile, at)
	case p.LocalhostProfile != nil:
		out = append(out, field.Invalid(at, struct{ Type, LocalhostProfile string }{string(p.Type), *p.LocalhostProfile},
			"can only be set when seccomp type is Localhost"))
	}
	return out
}

func containerPorts(ports []corev1.ContainerPort, path *field.Path) (out field.ErrorList) {
	taken := names{}
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			if wrong := utilvalidation.IsValidPortName(p.Name); len(wrong) > 0 {
				out = append(out, invalid(at.Child("name"), p.Name, wrong)...)
			} else if !taken.add(p.Name) {
				out = append(out, field.Duplicate(at.Child("name"), p.Name))
			}
		}
		if p.ContainerPort == 0 {
			out = append(out, field.Required(at.Child("containerPort"), ""))
		} else {
			out = append(out, invalid(at.Child("containerPort"), p.ContainerPort,
				utilvalidation.IsValidPortNum(int(p.ContainerPort)))...)
		}
		if p.HostPort != 0 {
			out = append(out, invalid(at.Child("hostPort"), p.HostPort, utilvalidation.IsValidPortNum(int(p.HostPort)))...)
		}
		out = append(out, validateProtocol(at.Child("protocol"), cmp.Or(p.Protocol, corev1.ProtocolTCP))...)
	}
	return out
}

func variables(env []corev1.EnvVar, path *field.Path, v Version) (out field.ErrorList) {
	for i, e := range env {
		at := path.Index(i)
		switch {
		case e.Name == "":
			out = append(out, field.Required(at.Child("name"), ""))
		case v >= relaxedVariables:
			out = append(out, invalid(at.Child("name"), e.Name, utilvalidation.IsRelaxedEnvVarName(e.Name))...)
		default:
			out = append(out, invalid(at.Child("name"), e.Name, utilvalidation.IsEnvVarName(e.Name))...)
		}
		from := e.ValueFrom
		if from == nil {
			continue
		}
		at = at.Child("valueFrom")
		sources := 0
		for _, set := range []bool{from.FieldRef != nil, from.ResourceFieldRef != nil, from.ConfigMapKeyRef != nil,
			from.SecretKeyRef != nil, from.FileKeyRef != nil} {
			if set {
				sources++
			}
		}
		switch {
		case sources == 0:
			out = append(out, field.Invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`"+
				lastSource(v)))
		case e.Value != "":
			out = append(out, field.Invalid(at, "", "may not be specified when `value` is not empty"))
		case sources > 1:
			out = append(out, field.Invalid(at, "", "may not have more than one field specified at a time"))
		}
		for _, key := range []struct {
			source, name string
			missing      bool
		}{{"fieldRef", "fieldPath", from.FieldRef != nil && from.FieldRef.FieldPath == ""},
			{"configMapKeyRef", "key", from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Key == ""},
			{"secretKeyRef", "key", from.SecretKeyRef != nil && from.SecretKeyRef.Key == ""}} {
			if key.missing {
				out = append(out, field.Required(at.Child(key.source, key.name), ""))
			}
		}
	}
	return out
}

func mounts(mounts []corev1.VolumeMount, volumes names, path *field.Path) (out field.ErrorList) {
	taken := names{}
	for i, m := range mounts {
		at := path.Index(i)
		if m.Name == "" {
			out = append(out, field.Required(at.Child("name"), ""))
		}
		if !volumes[m.Name] {
			out = append(out, field.NotFound(at.Child("name"), m.Name))
		}
		if m.MountPath == "" {
			out = append(out, field.Required(at.Child("mountPath"), ""))
		}
		if !taken.add(m.MountPath) {
			out = append(out, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		if m.SubPath != "" && m.SubPathExpr != "" {
			out = append(out, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr,
				"subPathExpr and subPath are mutually exclusive"))
		}
		// The API server leaves the index out.
		out = append(out, descending(m.SubPath, path.Child("subPath"))...)
		out = append(out, descending(m.SubPathExpr, path.Child("subPathExpr"))...)
	}
	return out
}

// descending refuses a path that is absolute or goes up.
func descending(name string, at *field.Path) (out field.ErrorList) {
	if path.IsAbs(name) {
		out = append(out, field.Invalid(at, name, "must be a relative path"))
	}
	if slices.Contains(strings.Split(name, "/"), "..") {
		out = append(out, field.Invalid(at, name, "must not contain '..'"))
	}
	return out
}

func resources(r *corev1.ResourceRequirements, path *field.Path) (out field.ErrorList) {
	limits, requests := path.Child("limits"), path.Child("requests")
	negative := func(q resource.Quantity, at *field.Path) {
		if q.Sign() < 0 {
			out = append(out, field.Invalid(at, q.String(), "must be greater than or equal to 0"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Limits)) {
		out = append(out, resourceName(name, limits.Key(string(name)))...)
		negative(r.Limits[name], limits.Key(string(name)))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		out = append(out, resourceName(name, requests.Key(string(name)))...)
		q := r.Requests[name]
		negative(q, requests.Key(string(name)))
		limit, limited := r.Limits[name]
		switch {
		case !limited && !canOvercommit(string(name)):
			out = append(out, field.Required(limits, "Limit must be set for non overcommitable resources"))
		case !limited:
		case q.Cmp(limit) != 0 && !canOvercommit(string(name)):
			out = append(out, field.Invalid(requests, q.String(),
				fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case q.Cmp(limit) > 0:
			out = append(out, field.Invalid(requests, q.String(),
				fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	return out
}

// canOvercommit reports whether the limit of a resource may be more than the request.
func canOvercommit(name string) bool {
	return !strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) &&
		(!strings.Contains(name, "/") || strings.Contains(name, "kubernetes.io/"))
}

// resourceName refuses names without a domain that Kubernetes does not have.
func resourceName(name corev1.ResourceName, at *field.Path) (out field.ErrorList) {
	if wrong := utilvalidation.IsQualifiedName(string(name)); len(wrong) > 0 {
		return invalid(at, name, wrong)
	}
	if !strings.Contains(string(name), "/") && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) &&
		!slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory,
			corev1.ResourceEphemeralStorage}, name) {
		return field.ErrorList{field.Invalid(at, name, "must be a standard resource for containers")}
	}
	return nil
}

func probes(c *corev1.Container, at *field.Path) (out field.ErrorList) {
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
		once  bool
	}{{"livenessProbe", c.LivenessProbe, true}, {"readinessProbe", c.ReadinessProbe, false},
		{"startupProbe", c.StartupProbe, true}} {
		if p.probe == nil {
			continue
		}
		at := at.Child(p.name)
		out = append(out, handler(&p.probe.ProbeHandler, at)...)
		for _, n := range []struct {
			name  string
			value int32
		}{{"initialDelaySeconds", p.probe.InitialDelaySeconds}, {"timeoutSeconds", p.probe.TimeoutSeconds},
			{"periodSeconds", p.probe.PeriodSeconds}, {"successThreshold", p.probe.SuccessThreshold},
			{"failureThreshold", p.probe.FailureThreshold}} {
			out = append(out, validation.ValidateNonnegativeField(int64(n.value), at.Child(n.name))...)
		}
		if n := p.probe.SuccessThreshold; p.once && n != 0 && n != 1 {
			out = append(out, field.Invalid(at.Child("successThreshold"), n, "must be 1"))
		}
	}
	return out
}

func handler(h *corev1.ProbeHandler, at *field.Path) (out field.ErrorList) {
	n := 0
	more := func(name string, set bool) bool {
		if !set {
			return false
		}
		if n++; n > 1 {
			out = append(out, field.Forbidden(at.Child(name), "may not specify more than 1 handler type"))
		}
		return n == 1
	}
	if more("exec", h.Exec != nil) && len(h.Exec.Command) == 0 {
		out = append(out, field.Required(at.Child("exec", "command"), ""))
	}
	if more("httpGet", h.HTTPGet != nil) {
		out = append(out, portOrName(at.Child("httpGet", "port"), h.HTTPGet.Port)...)
		out = append(out, oneOf(at.Child("httpGet", "scheme"), cmp.Or(h.HTTPGet.Scheme, corev1.URISchemeHTTP),
			corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	}
	if more("tcpSocket", h.TCPSocket != nil) {
		out = append(out, portOrName(at.Child("tcpSocket", "port"), h.TCPSocket.Port)...)
	}
	more("grpc", h.GRPC != nil)
	if n == 0 {
		out = append(out, field.Required(at, "must specify a handler type"))
	}
	return out
}

// lastSource ends the list of the sources of variables.
func lastSource(v Version) string {
	if v >= 35 {
		return ", `secretKeyRef` or `fileKeyRef`"
	}
	return " or `secretKeyRef`"
}
