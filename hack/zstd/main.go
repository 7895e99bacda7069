// Command zstd decompresses a file (zstd -d IN OUT), so that the benchmarks need no zstd program.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 || args[0] != "-d" {
		return fmt.Errorf("usage: zstd -d IN OUT")
	}
	return decompress(args[1], args[2])
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
