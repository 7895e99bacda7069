// Package containerfile evaluates a Containerfile (Dockerfile) without running anything: what it finds out is for each platform
// a base image, the entries of the layers above it, and a configuration, which package build makes an image of.
//
//	Containerfile ──Parse──> File ──Evaluator──> Stage: base, layers, configuration
//	context, images ─────────────────┘
//
// The text is parsed, and words are expanded, by the parser that buildah has (github.com/openshift/imagebuilder), so that
// arguments, heredocs, escapes and forms of commands mean what they mean there. What instructions do to files is done here, to a
// tree in memory that knows where the bytes of each file are: nothing is unpacked, nothing needs rights, and the result does not
// depend on the machine.
//
// RUN needs a process in the image and is refused with [ErrRun], but for opm's command that fills a serve cache: what that makes is
// made by the caller. See [Options.Cache].
//
// Everything that comes in is taken for hostile: links are followed inside of the tree that they are in and never out of it,
// archives and downloads have limits, and a file of the context that changes while it is read is an error.
package containerfile
