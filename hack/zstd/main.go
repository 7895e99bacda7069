// Command zstd compresses a file for embedding: the same input gives the same output on every machine. With -d it
// decompresses, so that measuring on packed inputs needs no zstd program.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/internal/serverbin"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] != "-d":
		return compress(args[0], args[1])
	case len(args) == 3 && args[0] == "-d":
		return decompress(args[1], args[2])
	}
	return fmt.Errorf("usage: zstd [-d] IN OUT")
}

func compress(in, out string) error {
	data, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	// Who decompresses needs memory for the window: 1 MiB in place of 8 costs 1 % in length.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return err
	}
	// The digest of what is inside is known without decompressing it.
	packed := append(enc.EncodeAll(data, nil), serverbin.SumFrame(sha256.Sum256(data))...)
	temp := out + ".tmp"
	if err := os.WriteFile(temp, packed, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, out)
}

func decompress(in, out string) error {
	packed, err := os.Open(in)
	if err != nil {
		return err
	}
	defer packed.Close()
	dec, err := zstd.NewReader(packed)
	if err != nil {
		return err
	}
	defer dec.Close()
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, dec); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
