// Package serve serves catalogs over gRPC, as the catalog pods of the Operator Lifecycle Manager do, with health,
// server reflection, metrics and pages over HTTP. [Run] serves a [Source] until its context ends:
//
//	source, err := serve.Directory("catalog")
//	err = serve.Run(ctx, source, serve.Options{Port: serve.DefaultPort})
//
// [Load] reads a source into a [Store], and newServer makes a server that answers from one, for programs with a
// listener or gRPC services of their own.
//
//	directory, database ──Load──> cache file for each package ──> Store ──> Server ──> gRPC
//	                                                                 └────> web.Site ──> HTTP
//
// A package is served from its cache file: an answer is a range of its bytes, which are copied to the connection, so
// that memory does not grow with the catalog. Cache files are deterministic ([EncodePackage]); images have them
// already, and Load writes those that are missing.
//
// Clients are not trusted: connections, requests and the memory of answers have [Limits].
package serve
