package bundlecheck

import (
	"cmp"
	"context"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/olmv1/safety"
)

// Definitions returns the CustomResourceDefinitions that OLM v1 applies for a bundle and judges in an upgrade.
func Definitions(m *manifests.Bundle, s manifests.Settings) ([]safety.Definition, error) {
	s.InstallNamespace = cmp.Or(s.InstallNamespace, "install")
	objects, err := m.Definitions(s)
	if err != nil {
		return nil, err
	}
	return safety.Definitions(objects), nil
}

// Problems returns why a current cluster with the settings does not install a bundle, whatever its configuration is.
func Problems(ctx context.Context, m *manifests.Bundle, s manifests.Settings) []manifests.Problem {
	apis, _ := NewAPIs("") // the empty version is valid
	var out []manifests.Problem
	for _, p := range apis.problems(ctx, m, settingsFor(m, s)) {
		if p.severity != rules.Warning {
			out = append(out, p.Problem)
		}
	}
	return out
}

// Upgrade reports the definitions of a bundle for which OLM v1 refuses the upgrade from another one. failed, unless nil,
// says which could not be compared.
func Upgrade(ctx context.Context, r *rules.Run, s Subject, from string, refused []*safety.Refusal, failed error) error {
	find := func(_ context.Context, s *Subject, emit rules.Emit) {
		_, name := s.names()
		edge := from + " -> " + name + ": "
		for _, refusal := range refused {
			emit(s.finding(s.definition(refusal.Definition), "", "%s%v", edge, refusal))
		}
		if failed != nil {
			f := s.finding(place{}, "", "%s%v", edge, failed)
			f.Severity, f.Fix = rules.Warning, "compare them with \"bindery diff --manifests\""
			emit(f)
		}
	}
	return rules.Each(ctx, r, []rules.Check[*Subject]{{Rules: []rules.Rule{rules.RuleUpgrade}, Find: find}}, &s)
}

// definition returns the place of a CustomResourceDefinition.
func (s *Subject) definition(name string) place {
	for _, o := range s.Bundle.Objects {
		if o.Kind == kindCRD && o.Name == name {
			return placeIn(o, "spec", "versions")
		}
	}
	return place{}
}
