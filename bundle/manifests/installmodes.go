package manifests

import (
	"errors"
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// supportedModes returns the supported install modes, sorted, each once.
func (b *Bundle) supportedModes() []v1alpha1.InstallModeType {
	modes := []v1alpha1.InstallModeType{}
	for _, m := range b.csv.Spec.InstallModes {
		if m.Supported {
			modes = append(modes, m.Type)
		}
	}
	slices.Sort(modes)
	return slices.Compact(modes)
}

func (b *Bundle) supports(mode v1alpha1.InstallModeType) bool {
	return slices.ContainsFunc(b.csv.Spec.InstallModes, func(m v1alpha1.InstallMode) bool {
		return m.Supported && m.Type == mode
	})
}

// targets returns the target namespaces: those given, or the default (OLMV1 section 1.4).
func (b *Bundle) targets(installNamespace string, given []string) ([]string, error) {
	targets := given
	if len(given) == 0 && b.supports(v1alpha1.InstallModeTypeAllNamespaces) {
		targets = []string{""}
	}
	if err := b.checkTargets(installNamespace, targets); err != nil {
		return nil, refusef("invalid option(s): invalid target namespaces %v: %v", targets, err)
	}
	return targets, nil
}

// checkTargets refuses target namespaces that the install modes do not allow. It takes them as a set.
func (b *Bundle) checkTargets(installNamespace string, targets []string) error {
	set := slices.Compact(slices.Sorted(slices.Values(targets)))
	own, all := slices.Contains(set, installNamespace), slices.Contains(set, "")
	modes := b.supportedModes()
	switch {
	case len(set) == 0 && b.supports(v1alpha1.InstallModeTypeMultiNamespace):
		return errors.New("at least one target namespace must be specified")
	case len(set) == 0:
		return errors.New("exactly one target namespace must be specified")
	case len(set) == 1 && all:
		if b.supports(v1alpha1.InstallModeTypeAllNamespaces) {
			return nil
		}
		return fmt.Errorf("supported install modes %v do not support targeting all namespaces", modes)
	case len(set) == 1 && own && b.supports(v1alpha1.InstallModeTypeOwnNamespace):
		return nil
	case own && !b.supports(v1alpha1.InstallModeTypeOwnNamespace):
		return fmt.Errorf("supported install modes %v do not support targeting own namespace", modes)
	case len(set) == 1 && b.supports(v1alpha1.InstallModeTypeSingleNamespace):
		return nil
	case len(set) > 1 && !all && b.supports(v1alpha1.InstallModeTypeMultiNamespace):
		return nil
	}
	return fmt.Errorf("supported install modes %v do not support target namespaces %v", modes, targets)
}
