// Package template parses catalog templates and renders them to catalogs. A template is one YAML or JSON document from
// which most of a catalog is derived:
//
//   - basic (olm.template.basic) is a catalog in which bundles are given by their images;
//   - semver (olm.semver) has lists of images; channels and edges are derived from their versions;
//   - substitutes (olm.template.substitutes) is a catalog with bundles that replace others.
//
// A template is processed in two steps, each of which reports all problems together with their lines:
//
//	file ── Parse ──> Template ── Render ──> declcfg.Catalog
//	                                │
//	                                └─ RenderOptions.Render, for each image once, several concurrently
//
// [ConvertOptions.Convert] does the opposite. The package reads no images itself and accesses neither files nor the
// network.
package template
