// Package generate makes the metadata of a bundle from its manifests: annotations.yaml, and bundle.Dockerfile for builders
// that need one. [Generate] writes both; [OpenSource] finds the metadata that an image of the bundle needs.
//
//	manifests/ ────────────> media type ────────┐
//	package.yaml above it ─> package, channels ─┼─> Metadata ──Annotations──> metadata/annotations.yaml
//	given by the user ──────────────────────────┘        └─────Dockerfile───> bundle.Dockerfile
//
// The texts are byte for byte those of opm's "alpha bundle generate".
package generate
