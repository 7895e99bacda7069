package declcfg

import (
	"fmt"
	"slices"
)

// Reduce drops the values of the bundle's olm.bundle.object and olm.csv.metadata properties after checking them, as a
// skeleton load does: the bundle can still be validated, but not written. It no longer shares memory with its document.
func (b *Bundle) Reduce() {
	b.reduce()
	detach(b, true)
}

// DropObjects is like [Bundle.Reduce], for the olm.bundle.object properties only, unchecked. The bundle no longer
// shares memory with its document.
func (b *Bundle) DropObjects() {
	b.keepSubstitutesFor()
	for i := range b.Properties {
		if b.Properties[i].Type == PropertyBundleObject {
			b.Properties[i].Value = droppedValue
		}
	}
	b.loaded = skeleton
	detach(b, true)
}

// stubOf returns a bundle with only the names and the image. It counts as reduced.
func stubOf(d *IndexedDocument) Bundle {
	return Bundle{Name: d.Name, Package: d.Package, Image: d.Image, Pos: d.Position, loaded: stub}
}

// Reduced reports whether values of the bundle were dropped by [Bundle.Reduce] or a skeleton load. A bundle that had
// none is complete.
func (b *Bundle) Reduced() bool {
	return b.loaded == stub ||
		b.loaded == skeleton && slices.ContainsFunc(b.Properties, func(p Property) bool { return isHeavy(p.Type) })
}

// Restored returns the bundle with its dropped values taken from full. Other changes since then are kept. The result
// shares memory with full. A complete bundle is returned unchanged.
func (b *Bundle) Restored(full *Bundle) (*Bundle, error) {
	if !b.Reduced() {
		return b, nil
	}
	if b.loaded == stub {
		return full, nil
	}
	values := map[string][]Property{}
	for _, p := range full.Properties {
		if isHeavy(p.Type) {
			values[p.Type] = append(values[p.Type], p)
		}
	}
	out := *b
	out.loaded, out.substitutesFor, out.propertyErr = whole, "", nil
	out.Properties = make([]Property, len(b.Properties))
	for i, p := range b.Properties {
		if isHeavy(p.Type) {
			if len(values[p.Type]) == 0 {
				return nil, fmt.Errorf("package %q, bundle %q: property[%d] of type %q has no value any more",
					b.Package, b.Name, i, p.Type)
			}
			p.Value = values[p.Type][0].Value
			values[p.Type] = values[p.Type][1:]
		}
		out.Properties[i] = p
	}
	return &out, nil
}

// isHeavy reports whether properties of the type are dropped from skeletons.
func isHeavy(typ string) bool { return typ == PropertyBundleObject || typ == PropertyCSVMetadata }
