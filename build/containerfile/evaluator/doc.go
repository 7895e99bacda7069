// Package evaluator evaluates a Containerfile (Dockerfile) without running anything. For each platform the result
// is a base image, the entries of the layers above it, and a configuration; build.Assemble makes an image of them.
//
//	Containerfile ──Parse──> File ──Evaluator──> Stage: base, layers, configuration
//	context, images ─────────────────┘
//
// buildah's parser (github.com/openshift/imagebuilder) parses the text and expands words, so that arguments, heredocs,
// escapes and forms of commands have the same meaning as there. The effect of instructions on files is computed here,
// on a tree in memory that refers to the bytes of each file: nothing is unpacked, no privileges are needed, and the
// result does not depend on the machine.
//
// RUN needs a process in the image and is refused with [ErrRun], except for opm's command that fills a serve cache: the
// cache is built in this process. See [build.CatalogInput.ServeCache].
//
// All input is considered hostile: links are resolved inside their tree and never lead out of it, archives and
// downloads have limits, and a context file that changes while it is read is an error.
package evaluator
