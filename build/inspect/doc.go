// Package inspect describes an image and verifies it. [Inspect] reads manifests and configurations only. [Examine]
// reads every layer, rebuilds each one from its content and compares. The argument of both is a result of
// images.Client.Survey.
//
// Nothing in an image is trusted: annotations and labels are reported as claims of the image and compared with its
// content where that is read. The memory needed is that of the largest package plus the names of the catalog's, caches'
// and server's files; the content of a layer goes through an unnamed temporary file.
package inspect
