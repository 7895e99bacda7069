// Package archive reads what has the form of a layer: the names in tar archives, and their compression.
//
// Archives are hostile: names must not lead out of the image, and sizes and the ratio of compression have limits.
package archive
