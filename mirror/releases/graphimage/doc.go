// Package graphimage builds the image with the data of the update graph, from which the update service of a cluster
// without internet access takes it. No container is run for it.
//
//	base image ───────────────> its layers ─┐
//	graph data (tar, gzip) ───> one layer ──┴─> [build.Image] ──> anywhere
//
// The service starts the image with a command that copies the data to a volume: this is the command of the image, and
// needs the shell and the tools of the base.
//
// The same base and the same data give the same image. The formats are those of the OCI image specification, and
// docker's for a base in that format.
package graphimage
