// Package probe asks a gRPC server for its health and says so with an exit code. Flags, output and exit codes are those
// of the command grpc_health_probe, which pods of catalogs have always been probed with.
package probe
