// Command programsbom writes the bills of materials of a Go program, SPDX and CycloneDX: its modules and its digest. The same
// program, version and time give the same files.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/supply/sbom"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("usage: programsbom PROGRAM VERSION SECONDS SPDX-FILE CYCLONEDX-FILE")
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	p, err := sbom.ReadProgram(filepath.Base(args[0]), bytes.NewReader(text), int64(len(text)), args[1])
	if err != nil {
		return err
	}
	if len(p.Modules) == 0 {
		return fmt.Errorf("%s: no modules are recorded in it", args[0])
	}
	p.Assumed = false // the version is that of the release
	for n, format := range []sbom.Format{sbom.SPDX, sbom.CycloneDX} {
		var out bytes.Buffer
		o := sbom.Options{Version: args[1], Created: time.Unix(seconds, 0).UTC()}
		if err := format.Write(&out, sbom.OfProgram(p), o); err != nil {
			return err
		}
		if err := atomicfs.WriteFile(args[3+n], out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
