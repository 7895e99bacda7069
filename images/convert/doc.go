// Package convert gives images the types of another format: of the OCI image specification, or of Docker (image manifest
// version 2, schema 2, and its manifest list), for registries that take one of them only. Configurations and layers stay
// as they are, byte for byte; manifests, and so digests, are others. It reads manifests alone.
package convert
