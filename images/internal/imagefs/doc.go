// Package imagefs reads files out of the layers of an image without unpacking it: tar archives, plain or compressed
// with gzip or zstd, applied to each other as the OCI image specification says ("Applying changesets").
//
// Layers are hostile: names must not lead out of the image, nor be names that two readers understand differently, and
// sizes, counts and the ratio of compression have limits.
package imagefs
