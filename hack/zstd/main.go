// Command zstd compresses a file for embedding: the same input gives the same output on every machine.
package main

import (
	"fmt"
	"os"

	"github.com/klauspost/compress/zstd"
)

func main() {
	if err := compress(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func compress(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: zstd IN OUT")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	temp := args[1] + ".tmp"
	if err := os.WriteFile(temp, enc.EncodeAll(data, nil), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, args[1])
}
