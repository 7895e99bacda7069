// Package deps keeps the module's direct requirements in go.mod until the packages that use them have landed.
package deps

import (
	_ "github.com/blang/semver/v4"
	_ "github.com/go-json-experiment/json/jsontext"
	_ "github.com/klauspost/compress/gzip"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/opencontainers/go-digest"
	_ "github.com/opencontainers/image-spec/specs-go/v1"
	_ "github.com/urfave/cli/v2"
	_ "github.com/vbauerster/mpb/v8"
	_ "go.podman.io/image/v5/copy"
	_ "go.podman.io/image/v5/directory"
	_ "go.podman.io/image/v5/docker"
	_ "go.podman.io/image/v5/docker/archive"
	_ "go.podman.io/image/v5/oci/archive"
	_ "go.podman.io/image/v5/oci/layout"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
	_ "google.golang.org/grpc"
	_ "google.golang.org/grpc/health/grpc_health_v1"
	_ "google.golang.org/grpc/reflection"
	_ "google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite"
	_ "sigs.k8s.io/yaml"
)
