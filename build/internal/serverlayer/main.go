// Command serverlayer writes the layer of a server program for embedding, with its description. The same program gives
// the same file on every machine.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/build/internal/serverbin"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/layers"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("usage: serverlayer PROGRAM OS/ARCH COMPRESSION OUT")
	}
	compression, err := layers.ParseCompression(args[2])
	if err != nil {
		return err
	}
	goos, arch, _ := strings.Cut(args[1], "/")
	program, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	platform := v1.Platform{OS: goos, Architecture: arch}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(program)), nil }
	server, err := cataloglayer.Program(open, int64(len(program)), platform)
	if err != nil {
		return err
	}
	layer := cataloglayer.Server(server, platform)
	var out bytes.Buffer
	blob, err := layer.Write(context.Background(), &out, layers.Options{Compression: compression})
	if err != nil {
		return err
	}
	trailer, err := serverbin.Layer{
		Digest: blob.Digest, DiffID: blob.DiffID, Size: blob.Size, Uncompressed: blob.Uncompressed,
		Program: digest.FromBytes(program), ProgramSize: int64(len(program)),
	}.Trailer()
	if err != nil {
		return err
	}
	out.Write(trailer)
	return atomicfs.WriteFile(args[3], out.Bytes(), 0o644)
}
