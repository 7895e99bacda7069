// Package template reads catalog templates and makes catalogs of them. A template is one YAML or JSON document from
// which most of a catalog is derived:
//
//   - basic (olm.template.basic) is a catalog in which bundles are given by their images;
//   - semver (olm.semver) is lists of images, of whose versions the channels and their edges are made;
//   - substitutes (olm.template.substitutes) is a catalog with bundles that take the place of others.
//
// A template passes through two steps, each of which reports every problem at once, with its line:
//
//	file ── Parse ──> Template ── Render ──> declcfg.Catalog
//	                                │
//	                                └─ RenderFunc, for each image once, several at a time
//
// [Convert] goes the other way. The package reads no images itself and touches neither files nor the network.
package template
