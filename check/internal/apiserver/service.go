package apiserver

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// relaxedServiceNames is the version since which the name of a Service may begin with a digit.
const relaxedServiceNames Version = 36

func serviceName(v Version) validation.ValidateNameFunc {
	if v >= relaxedServiceNames {
		return validation.NameIsDNSLabel
	}
	return validation.NameIsDNS1035Label
}

func service(s *corev1.Service, _ Version) (out field.ErrorList) {
	spec, path := &s.Spec, field.NewPath("spec")
	typ := cmp.Or(spec.Type, corev1.ServiceTypeClusterIP)
	out = append(out, oneOf(path.Child("type"), typ, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName,
		corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort)...)
	headless := spec.ClusterIP == corev1.ClusterIPNone
	if len(spec.Ports) == 0 && !headless && typ != corev1.ServiceTypeExternalName {
		out = append(out, field.Required(path.Child("ports"), ""))
	}
	if typ == corev1.ServiceTypeExternalName && spec.ExternalName == "" {
		out = append(out, field.Required(path.Child("externalName"), ""))
	}
	out = append(out, v1validation.ValidateLabels(spec.Selector, path.Child("selector"))...)
	out = append(out, oneOf(path.Child("sessionAffinity"), cmp.Or(spec.SessionAffinity, corev1.ServiceAffinityNone),
		corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone)...)
	return append(out, servicePorts(spec.Ports, typ, path.Child("ports"))...)
}

// portKey is what a port of a Service shares with no other, in the form of the API server's message.
type portKey struct {
	Name                       string
	Protocol                   corev1.Protocol
	AppProtocol                *string
	Port, TargetPort, NodePort int32
}

func servicePorts(ports []corev1.ServicePort, typ corev1.ServiceType, path *field.Path) (out field.ErrorList) {
	taken, numbers := names{}, map[portKey]bool{}
	for i, p := range ports {
		at := path.Index(i)
		p.Protocol = cmp.Or(p.Protocol, corev1.ProtocolTCP)
		switch {
		case p.Name == "" && len(ports) > 1:
			out = append(out, field.Required(at.Child("name"), ""))
		case p.Name != "":
			out = append(out, invalid(at.Child("name"), p.Name, utilvalidation.IsDNS1123Label(p.Name))...)
			if !taken.add(p.Name) {
				out = append(out, field.Duplicate(at.Child("name"), p.Name))
			}
		}
		out = append(out, invalid(at.Child("port"), p.Port, utilvalidation.IsValidPortNum(int(p.Port)))...)
		out = append(out, validateProtocol(at.Child("protocol"), p.Protocol)...)
		if p.TargetPort != intstr.FromInt32(0) && p.TargetPort != intstr.FromString("") { // otherwise the target port is the port
			out = append(out, portOrName(at.Child("targetPort"), p.TargetPort)...)
		}
		if p.NodePort != 0 && typ == corev1.ServiceTypeClusterIP {
			out = append(out, field.Forbidden(at.Child("nodePort"), "may not be used when `type` is 'ClusterIP'"))
		}
		key := portKey{Protocol: p.Protocol, Port: p.Port}
		if numbers[key] {
			out = append(out, field.Duplicate(at, key))
		}
		numbers[key] = true
	}
	return out
}

func validateProtocol(path *field.Path, p corev1.Protocol) field.ErrorList {
	return oneOf(path, p, corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)
}

func portOrName(path *field.Path, p intstr.IntOrString) field.ErrorList {
	if p.Type == intstr.Int {
		return invalid(path, p.IntValue(), utilvalidation.IsValidPortNum(p.IntValue()))
	}
	return invalid(path, p.StrVal, utilvalidation.IsValidPortName(p.StrVal))
}

// maxData is the limit of the values of a ConfigMap or Secret.
const maxData = 1 << 20

func configMap(m *corev1.ConfigMap, _ Version) (out field.ErrorList) {
	size := 0
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		at := field.NewPath("data").Key(key)
		out = append(out, invalid(at, key, utilvalidation.IsConfigMapKey(key))...)
		if _, twice := m.BinaryData[key]; twice {
			out = append(out, field.Invalid(at, key, "duplicate of key present in binaryData"))
		}
		size += len(m.Data[key])
	}
	for _, key := range slices.Sorted(maps.Keys(m.BinaryData)) {
		out = append(out, invalid(field.NewPath("binaryData").Key(key), key, utilvalidation.IsConfigMapKey(key))...)
		size += len(m.BinaryData[key])
	}
	if size > maxData {
		out = append(out, field.TooLong(field.NewPath(""), "", maxData))
	}
	return out
}

// secretKeys are the keys that the data of a Secret of a type has.
var secretKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
}

func secret(s *corev1.Secret, _ Version) (out field.ErrorList) {
	data, path, size := maps.Clone(s.Data), field.NewPath("data"), 0
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range s.StringData {
		data[key] = []byte(value)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		out = append(out, invalid(path.Key(key), key, utilvalidation.IsConfigMapKey(key))...)
		size += len(data[key])
	}
	if size > maxData {
		out = append(out, field.TooLong(path, "", maxData))
	}
	for _, key := range secretKeys[s.Type] {
		if _, ok := data[key]; !ok {
			out = append(out, field.Required(path.Key(key), ""))
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			out = append(out, field.Required(
				field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeBasicAuth:
		_, username := data[corev1.BasicAuthUsernameKey]
		_, password := data[corev1.BasicAuthPasswordKey]
		if !username && !password {
			out = append(out, field.Required(path.Key(corev1.BasicAuthUsernameKey), ""),
				field.Required(path.Key(corev1.BasicAuthPasswordKey), ""))
		}
	}
	return out
}
