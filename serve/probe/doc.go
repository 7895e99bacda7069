// Package probe asks a gRPC server for its health and reports it as an exit code. Flags, output and exit codes of [Run] are
// those of the command grpc_health_probe, with which pods of catalogs are probed.
package probe
