// Package template reads catalog templates and renders them to catalogs. A template is one YAML or JSON document from which
// most of a catalog is derived:
//
//   - basic (olm.template.basic) is a catalog whose bundles are given by their images;
//   - semver (olm.semver) is lists of images, whose versions determine the channels and their edges;
//   - substitutes (olm.template.substitutes) is a catalog with bundles that replace others.
//
// [Parse] and [Template.Render] each report every problem at once, with its line:
//
//	file ── Parse ──> Template ── Render ──> declcfg.Catalog
//	                                │
//	                                └─ RenderFunc, for each image once, several concurrently
//
// [Convert] makes a basic template of a catalog. The package reads no images itself and uses neither files nor the network.
package template
