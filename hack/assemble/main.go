// Command assemble measures building a catalog image into an OCI layout, without validation and cache. It prints wall
// time, CPU, peak memory, bytes written to disk and the size of the result in one line.
//
//	go run ./hack/assemble -compression zstd DIR oci:OUT:TAG
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/layers"
)

func main() {
	compression := flag.String("compression", "gzip", "gzip or zstd")
	server := flag.String("server", "", "server program for linux/amd64")
	load := flag.Bool("load", false,
		"load the catalog to find out what is in its files, instead of going by their directories")
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*compression, *server, *load, flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(compression, server string, load bool, dir, to string) (err error) {
	start := time.Now()
	ctx := context.Background()
	out := images.CopyOptions{Transports: library.Transports(images.BuiltIn())}
	dest, err := out.Transports.Parse(to)
	if err != nil {
		return err
	}
	work, err := out.Workspace(ctx, []transport.Destination{dest})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	o := build.Options{Dir: work.Dir(), Compression: layers.Compression(compression), Jobs: 2}
	if server != "" {
		s, err := build.ServerFile(server, v1.Platform{OS: "linux", Architecture: "amd64"})
		if err != nil {
			return err
		}
		o.Servers = []build.Server{s}
	}
	in := build.CatalogInput{FS: os.DirFS(dir)}
	if !load {
		if in.Files, err = byDirectory(in.FS); err != nil {
			return err
		}
	}
	img, err := build.Catalog(ctx, in, o)
	if err != nil {
		return err
	}
	built := time.Since(start)
	if _, err := images.Copy(ctx, img.Store(), img.Top(), []transport.Destination{dest}, out); err != nil {
		return err
	}
	wall := time.Since(start)
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	written := counter("write_bytes")
	fmt.Printf("%s: wall %v (layers %v), cpu %v, rss %.1f MB, written %.2f bytes per byte of %d, layers %d\n",
		compression, wall.Round(time.Millisecond), built.Round(time.Millisecond), cpu.Round(time.Millisecond),
		float64(usage.Maxrss)/1024, float64(written)/float64(img.Totals.Size), img.Totals.Size, img.Totals.Layers)
	return nil
}

// byDirectory assigns every file to the package that its directory is named after.
func byDirectory(fsys fs.FS) ([]build.File, error) {
	var files []build.File
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(path) == ".indexignore" {
			return err
		}
		pkg, _, _ := strings.Cut(path, "/")
		files = append(files, build.File{Path: path, Packages: []string{pkg}})
		return nil
	})
	return files, err
}

// counter returns the value of a line in /proc/self/io.
func counter(name string) (n int64) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name+": "); ok {
			fmt.Sscan(v, &n)
		}
	}
	return n
}
