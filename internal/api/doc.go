// Package api is the gRPC interface of a catalog: the service api.Registry, which the Operator Lifecycle Manager uses,
// and api.ExperimentalRegistry. All Go code except this file is generated from registry.proto.
//
// Package serve does not use the generated server: its answers are stored in wire form. It uses the generated messages
// to decode requests; the generated client is for programs that query a catalog.
package api

// The generators are pinned: go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11 and
// google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2; protoc is Debian's protobuf-compiler.
//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative registry.proto
