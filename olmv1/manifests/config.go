package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// configuration is what a ClusterExtension configures.
type configuration struct {
	targets    []string        // watchNamespace; empty: not set
	deployment json.RawMessage // deploymentConfig; nil: not set
}

// configuration checks spec.config.inline against the schema that operator-controller makes for the bundle. Without a
// configuration it does so only if the gate is on with which the schema can require a field.
func (b *Bundle) configuration(s Settings) (configuration, error) {
	text := s.Config
	if len(text) == 0 {
		if !s.isOn(SingleOwnNamespace) {
			return configuration{}, nil
		}
		text = json.RawMessage("{}")
	}
	if len(text) > maxFile || nesting(text) > maxDepth {
		return configuration{}, limit("the configuration is larger than %d bytes or nested deeper than %d", maxFile,
			maxDepth)
	}
	content, err := b.checkedConfig(text, s)
	if err != nil {
		return configuration{},
			refusef("invalid ClusterExtension configuration: invalid configuration: %v", err)
	}
	var c configuration
	if watch := content["watchNamespace"]; watch != nil {
		c.targets = []string{fmt.Sprint(watch)}
	}
	if dc, ok := content["deploymentConfig"].(map[string]any); ok {
		if c.deployment, err = json.Marshal(dc); err != nil {
			return configuration{}, err
		}
		_, err = parseDeploymentConfig(c.deployment)
	}
	return c, err
}

// checkedConfig returns a configuration that the schema allows.
func (b *Bundle) checkedConfig(text []byte, s Settings) (map[string]any, error) {
	asJSON, err := yaml.YAMLToJSON(text)
	if err == nil && nesting(asJSON) > maxDepth {
		return nil, limit("nested deeper than %d", maxDepth)
	}
	var content any
	if err == nil {
		err = json.Unmarshal(asJSON, &content)
	}
	if err != nil {
		return nil, parseError(err)
	}
	if err := checkSchema(b.configSchema(s), content, s.InstallNamespace); err != nil {
		return nil, err
	}
	object, _ := content.(map[string]any)
	return object, nil
}

// parseError returns the end of the innermost error's text, as operator-controller shows it.
func parseError(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	text := err.Error()
	return errors.New(strings.TrimSpace(text[strings.LastIndexByte(text, ':')+1:]))
}

// The formats of watchNamespace.
const (
	ownFormat    = "ownNamespaceInstallMode"
	singleFormat = "singleNamespaceInstallMode"
)

// namespaceFormat returns an error if a namespace is not allowed by the format. Without an install namespace, all are.
func namespaceFormat(format, namespace, installNamespace string) error {
	switch {
	case installNamespace == "":
	case format == ownFormat && namespace != installNamespace:
		return fmt.Errorf("invalid value %q: must be %q (the namespace where the operator is installed) because this "+
			"operator only supports OwnNamespace install mode", namespace, installNamespace)
	case format == singleFormat && namespace == installNamespace:
		return fmt.Errorf("invalid value %q: must be different from %q (the install namespace) because this operator "+
			"uses SingleNamespace install mode to watch a different namespace", namespace, installNamespace)
	}
	return nil
}

func (b *Bundle) configSchema(s Settings) *shape {
	root := &shape{types: []string{"object"}, properties: map[string]*shape{}, closed: true}
	if b.watchable() {
		watch := &shape{types: []string{"string"}, minLength: 1, maxLength: maxLabel,
			pattern: namespacePattern, format: b.watchFormat()}
		if b.supports(v1alpha1.InstallModeTypeAllNamespaces) {
			watch = &shape{anyOf: []*shape{{types: []string{"null"}}, watch}}
		} else {
			root.required = []string{"watchNamespace"}
		}
		root.properties["watchNamespace"] = watch
	}
	if slices.Contains(s.Gates, DeploymentConfig) {
		root.properties["deploymentConfig"] = deploymentConfigSchema()
	}
	return root
}

// watchFormat returns the format that the install modes demand; empty: any namespace.
func (b *Bundle) watchFormat() string {
	own := b.supports(v1alpha1.InstallModeTypeOwnNamespace)
	single := b.supports(v1alpha1.InstallModeTypeSingleNamespace)
	switch {
	case own && !single:
		return ownFormat
	case single && !own:
		return singleFormat
	default:
		return ""
	}
}
