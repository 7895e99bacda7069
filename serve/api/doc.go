// Package api is the gRPC interface of a catalog: the service api.Registry that the Operator Lifecycle Manager asks, and
// api.ExperimentalRegistry. All Go code in it but this file is generated from registry.proto.
//
// Package serve does not go through the generated server: its answers are stored in wire form. The generated messages
// decode requests, and they and the generated client serve programs that ask a catalog.
package api

// The generators are pinned: go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11 and
// google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2; protoc is Debian's protobuf-compiler.
//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative registry.proto
