// Package layouts reads and writes images in files: OCI image layouts, archives of them, archives of "docker save", and
// the containers tools' plain directories ("dir:").
//
// [OpenSource] reads an image in place, also inside an archive, and opens only regular files. An [Output] is written
// to a [Stage], a private directory in the file system of the output, and put in place by one rename or, in a layout
// that exists, by the rename of its index.json: readers see the old or the new image. Stages of runs that were killed
// are removed by the next run. Outputs that are symbolic links are refused.
package layouts
