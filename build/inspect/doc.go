// Package inspect describes an image and verifies it: from its manifests and configurations alone ([Inspect]), or from all
// of its layers ([Examine]), each of which is built again from what is in it and compared.
//
// Nothing of an image is believed: annotations and labels are shown as what the image says of itself, and compared with
// its content where that is read. Memory is that of the largest package and of the names of all files that matter; the
// content of a layer goes through a temporary file without a name.
package inspect
