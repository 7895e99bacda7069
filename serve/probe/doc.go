// Package probe asks a gRPC server for its health and reports it as an exit code. Flags, output and exit codes are
// those of the program grpc_health_probe, with which catalog pods are probed.
package probe
