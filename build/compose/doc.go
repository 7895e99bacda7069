// Package compose reads the file that describes a composite catalog, and opens the images that it names: [Read], then
// [Open], then build.Compose. Layers of images that this module built are stacked; other images are read.
package compose
