package sqlite

import (
	"context"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// deprecations writes the rows of table deprecated. For opm a deprecated bundle ends its chain, so only bundles with
// opm's deprecation property, or with the message that reading such a row generates, get a row.
func (p *packageWriter) deprecations(ctx context.Context) error {
	messages := map[string]string{}
	for _, d := range p.part.Deprecations {
		for _, e := range d.Entries {
			switch e.Reference.Schema {
			case declcfg.SchemaBundle:
				messages[e.Reference.Name] = e.Message
			case declcfg.SchemaChannel:
				p.lost(Finding{Channel: e.Reference.Name, Field: declcfg.SchemaDeprecations,
					Reason: "channels cannot be deprecated in a database"})
			default:
				p.lost(Finding{Field: declcfg.SchemaDeprecations,
					Reason: "packages cannot be deprecated in a database"})
			}
		}
	}
	for i := range p.part.Bundles {
		b := &p.part.Bundles[i]
		message, has := messages[b.Name]
		tombstone := slices.ContainsFunc(b.Properties,
			func(p declcfg.Property) bool { return p.Type == declcfg.PropertyDeprecated })
		at := Finding{Bundle: b.Name, Field: declcfg.SchemaDeprecations}
		switch {
		case tombstone && !has:
			at.Reason = "the bundle has the property " + declcfg.PropertyDeprecated +
				", so that it is deprecated in the database"
			p.changed(at)
		case tombstone && message != deprecationMessage(b.Name):
			at.Reason = "deprecations have no message in a database"
			p.lost(at)
		case !tombstone && has && message != deprecationMessage(b.Name):
			at.Reason = "the bundle is not deprecated in the database: that would end its channels there"
			p.lost(at)
			continue
		case !tombstone && !has:
			continue
		}
		if err := p.run(ctx, insertDeprecated, b.Name); err != nil {
			return err
		}
	}
	return nil
}
