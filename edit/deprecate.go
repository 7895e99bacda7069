package edit

import (
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
)

// Mark is a deprecation to set: of a bundle or a channel, or of the package if both are empty.
type Mark struct {
	Package string
	Channel string
	Bundle  string
	// Message explains the deprecation and what users should do. If it is empty, the deprecation is removed.
	Message string
}

// reference returns the item in the form of olm.deprecations.
func (m Mark) reference() (declcfg.Reference, bool) {
	switch {
	case m.Channel != "" && m.Bundle != "":
		return declcfg.Reference{}, false
	case m.Channel != "":
		return declcfg.Reference{Schema: declcfg.SchemaChannel, Name: m.Channel}, true
	case m.Bundle != "":
		return declcfg.Reference{Schema: declcfg.SchemaBundle, Name: m.Bundle}, true
	}
	return declcfg.Reference{Schema: declcfg.SchemaPackage}, true
}

// MarkDeprecated sets and removes deprecations in the olm.deprecations blobs of a catalog. The upgrade graph does not
// change.
func MarkDeprecated(c *declcfg.Catalog, marks []Mark) (*declcfg.Catalog, *Account, error) {
	names := map[string]bool{}
	for _, m := range marks {
		names[m.Package] = true
	}
	before, problems := split(c, names)
	after := map[string]*part{}
	for name, p := range before {
		after[name] = p.clone()
	}
	for _, m := range marks {
		if p := m.apply(after[m.Package]); p != nil {
			p.Package, p.Channel, p.Bundle = m.Package, m.Channel, m.Bundle
			problems = append(problems, *p)
		}
	}
	if len(problems) > 0 {
		return nil, nil, ErrorOf(problems)
	}
	account := &Account{Origins: Origins{}}
	for name, p := range before {
		account.compare(p, after[name], nil)
	}
	account.finish()
	return join(c, after), account, nil
}

func (m Mark) apply(p *part) *Problem {
	ref, ok := m.reference()
	switch {
	case !ok:
		return &Problem{Kind: ErrInvalid, Message: "a deprecation is of a channel or of a bundle, not of both"}
	case p == nil:
		return &Problem{Kind: ErrNotFound, Message: fmt.Sprintf("package %q is not in the catalog", m.Package)}
	case m.Channel != "" && p.channels[m.Channel] == nil:
		return &Problem{Kind: ErrNotFound, Message: fmt.Sprintf("package %q has no channel %q", m.Package, m.Channel)}
	case m.Bundle != "" && p.bundles[m.Bundle] == nil:
		return &Problem{Kind: ErrNotFound, Message: fmt.Sprintf("package %q has no bundle %q", m.Package, m.Bundle)}
	case m.Message != "":
		p.deprecate(declcfg.DeprecationEntry{Reference: ref, Message: m.Message})
		return nil
	}
	had := false
	p.undeprecate(func(r declcfg.Reference) bool {
		had = had || r == ref
		return r == ref
	})
	if !had {
		return &Problem{Kind: ErrNotFound,
			Message: fmt.Sprintf("package %q has no such deprecation to take back", m.Package)}
	}
	return nil
}
