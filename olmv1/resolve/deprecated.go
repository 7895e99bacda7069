package resolve

import (
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// Deprecations are the messages of a catalog that the conditions of a ClusterExtension repeat. They never keep a bundle
// from being installed.
type Deprecations struct {
	Package string `json:"package,omitempty"`
	// Channels are the deprecated ones of the channels that were asked for.
	Channels []Deprecation `json:"channels,omitempty"`
	// Bundles are the chosen bundle and the installed one, if they are deprecated.
	Bundles []Deprecation `json:"bundles,omitempty"`
}

// Has reports whether a bundle is deprecated.
func (d *Deprecations) Has(bundle string) bool {
	return slices.ContainsFunc(d.Bundles, func(at Deprecation) bool { return at.Name == bundle })
}

// Deprecation is the message for a channel or a bundle.
type Deprecation struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// deprecationsOf returns what is deprecated of what a request names and of the chosen bundle; nil if nothing is.
func (f *filed) deprecationsOf(q *Request, chosen string) *Deprecations {
	if f.deprecations == nil {
		return nil
	}
	d := &Deprecations{}
	for _, e := range f.deprecations.Entries {
		at := Deprecation{e.Reference.Name, e.Message}
		switch e.Reference.Schema {
		case declcfg.SchemaPackage:
			d.Package = e.Message
		case declcfg.SchemaChannel:
			if slices.Contains(q.Channels, at.Name) {
				d.Channels = append(d.Channels, at)
			}
		case declcfg.SchemaBundle:
			if at.Name == chosen || q.Installed != nil && at.Name == q.Installed.Name {
				d.Bundles = append(d.Bundles, at)
			}
		}
	}
	if d.Package == "" && len(d.Channels)+len(d.Bundles) == 0 {
		return nil
	}
	return d
}
