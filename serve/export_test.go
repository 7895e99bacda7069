package serve

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Exports for tests that use package opmcache, which imports this package.
var (
	StartServer  = startServer
	Replay       = replay
	ReadCalls    = readCalls
	UnpackedFS   = unpackedFS
	TarFS        = tarFS
	OracleDir    = oracleDir
	ReadTestFile = readFile
	New          = newServer
)

// Server is the server itself, without what [Run] has around it.
type Server = server

// SampleFiles returns a catalog with everything that a cache can contain.
func SampleFiles() map[string]string {
	return map[string]string{"a/catalog.yaml": sampleA, "b/catalog.yaml": sampleB, "none.yaml": sampleNone}
}

// WriteTree writes files below a directory.
func WriteTree(t testing.TB, dir string, files map[string]string) { writeTree(t, dir, files) }

// Dump formats everything that the packages of a store answer: two stores with the same text give the same answers.
// With anyOrder the order of custom blobs is ignored.
func Dump(t testing.TB, s Store, anyOrder bool) string {
	t.Helper()
	var out strings.Builder
	packages := slices.Clone(s.Packages())
	sortPackages(packages)
	for _, p := range packages {
		read := func(r record) string {
			buf := make([]byte, r.length)
			if err := p.read(buf, r); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%q", buf)
		}
		fmt.Fprintf(&out, "package %q %v default %q\n%s\n", p.name, p.hasPackage, p.defaultChannel, read(p.pkg))
		for _, b := range p.bundles {
			fmt.Fprintf(&out, "bundle %q image %v\n%s\n%s\n", b.name, b.hasImage, read(b.light), read(b.heavy))
		}
		for _, c := range p.channels {
			fmt.Fprintf(&out, "channel %q head %d\n", c.name, c.head)
			for _, e := range c.entries {
				fmt.Fprintf(&out, "entry %d %q %q %q\n", e.bundle, e.skipRange, e.replaces, e.skips)
			}
		}
		fmt.Fprintf(&out, "%v\n", p.gvks)
		var customs []string
		for _, c := range p.customs {
			customs = append(customs, fmt.Sprintf("custom %q %s\n", c.schema, read(c.record)))
		}
		if anyOrder {
			slices.Sort(customs)
			customs = slices.Compact(customs)
		} else {
			// Blobs of different schemas are never in one answer.
			slices.SortStableFunc(customs, func(a, b string) int {
				return strings.Compare(a[:strings.Index(a, `" "`)], b[:strings.Index(b, `" "`)])
			})
		}
		out.WriteString(strings.Join(customs, ""))
	}
	return out.String()
}
