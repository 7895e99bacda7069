// Package generate makes the metadata of a bundle from its manifests: annotations.yaml, and the bundle.Dockerfile for
// those who build with one.
//
//	manifests/ ──DetectMediaType──┐
//	package.yaml above ──Infer────┼─> Metadata ──Annotations──> metadata/annotations.yaml
//	the user's own words ─────────┘        └─────Dockerfile───> bundle.Dockerfile
//
// The texts are byte for byte those of opm's "alpha bundle generate".
package generate
