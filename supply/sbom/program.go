package sbom

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// maxModules bounds the modules of a program; the largest known programs have about a thousand.
const maxModules = 10_000

// own is the path of this program's module.
const own = "github.com/operator-bindery/bindery"

// ReadProgram reads the Go modules that an executable file was built from, and computes its digest. release is the
// version of this module's programs, which record none: it is assumed for them. Of a file that is no Go program, or
// whose record is damaged, only the digest is known.
func ReadProgram(path string, r io.ReaderAt, size int64, release string) (*Program, error) {
	d, err := digest.FromReader(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	info, err := readBuildInfo(io.NewSectionReader(r, 0, size))
	if err != nil {
		return &Program{Path: path, Digest: d}, nil
	}
	if len(info.Deps) > maxModules {
		return nil, fmt.Errorf("%s: %w: %d modules (limit %d)", path, fault.ErrLimit, len(info.Deps), maxModules)
	}
	p := programOf(info, release)
	p.Path, p.Digest = path, d
	return p, nil
}

// programOf returns what the record of a program says.
func programOf(info *debug.BuildInfo, release string) *Program {
	version, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	p := &Program{Main: cmp.Or(info.Main.Path, info.Path), Version: info.Main.Version, Go: version}
	if p.Version == "(devel)" || p.Version == "" {
		p.Version = ""
		if info.Main.Path == own {
			p.Version, p.Assumed = release, true
		}
	}
	for _, m := range info.Deps {
		p.Modules = append(p.Modules, linked(m))
	}
	slices.SortFunc(p.Modules, func(x, y Module) int {
		return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Version, y.Version),
			cmp.Compare(x.Replaces, y.Replaces))
	})
	return p
}

// readBuildInfo reads the record. The packages of the standard library for executable files are not made for hostile
// ones: a panic is an error here.
func readBuildInfo(r io.ReaderAt) (info *debug.BuildInfo, err error) {
	defer func() {
		if recover() != nil {
			info, err = nil, errors.New("the file is damaged")
		}
	}()
	return buildinfo.Read(smallReads{r})
}

// maxRecord bounds the record of a program in bytes. With ten thousand modules it has about a million.
const maxRecord = 4 << 20

// smallReads refuses to read more than a record can have at once. The record is read as a whole, and its lines take
// many times as much memory.
type smallReads struct{ r io.ReaderAt }

func (s smallReads) ReadAt(p []byte, off int64) (int, error) {
	if len(p) > maxRecord {
		return 0, fmt.Errorf("%w: a record of more than %d bytes", fault.ErrLimit, maxRecord)
	}
	return s.r.ReadAt(p, off)
}

// linked returns the module that was linked.
func linked(m *debug.Module) Module {
	switch r := m.Replace; {
	case r == nil:
		return Module{Path: m.Path, Version: m.Version, Sum: m.Sum}
	case r.Version == "":
		return Module{Path: m.Path, Local: true} // the path of the directory is of the machine that built it
	default:
		return Module{Path: r.Path, Version: r.Version, Sum: r.Sum, Replaces: m.Path}
	}
}

// programs adds the programs of images and the modules that they are made of. contents are those of the owners.
func (g *graph) programs(owners []*component, contents []Contents) {
	programs := map[digest.Digest]*component{}
	for _, c := range contents {
		if c.Program != nil {
			programs[c.Program.Digest] = nil
		}
	}
	type made struct {
		of   *component
		from *Program
	}
	var order []made
	for n, c := range contents {
		p := c.Program
		if p == nil {
			continue
		}
		if programs[p.Digest] == nil {
			programs[p.Digest] = g.program(p, len(programs) == 1)
			order = append(order, made{programs[p.Digest], p})
		}
		owners[n].contains = append(owners[n].contains, programs[p.Digest])
	}
	var modules []Module
	for _, m := range order {
		modules = append(modules, m.from.all()...)
	}
	slices.SortFunc(modules, func(x, y Module) int {
		return cmp.Or(cmp.Compare(x.key(), y.key()), cmp.Compare(x.Sum, y.Sum), cmp.Compare(x.Replaces, y.Replaces))
	})
	for _, m := range modules {
		if g.modules[m.key()] == nil {
			g.modules[m.key()] = g.module(m)
		}
	}
	for _, m := range order {
		for _, of := range m.from.all() {
			m.of.needs = append(m.of.needs, g.modules[of.key()])
		}
	}
}

// program adds a program. The only one of a document has the plain identifier.
func (g *graph) program(p *Program, only bool) *component {
	c := &component{kind: kindProgram, id: "server", name: cmp.Or(p.Main, p.Path), version: p.Version, digest: p.Digest,
		comment: "file /" + p.Path, properties: []property{{"kind", string(kindProgram)}, {"path", "/" + p.Path}}}
	if !only {
		c.id += "-" + short(p.Digest)
	}
	version := p.Version
	switch {
	case p.Main == "":
		c.comment += "; no Go modules are recorded in it: its contents are not known"
	case p.Assumed:
		// The release is not a version that the Go module mirror knows the program by.
		version = ""
		c.comment += "; it does not record its version, which is that of the release that described it"
	}
	c.purl = golangPURL(p.Main, version)
	c.ref = "program:" + p.Digest.String()
	return g.add(c, p.Digest.String())
}

// all returns the standard library and the modules.
func (p *Program) all() []Module {
	if p.Go == "" {
		return p.Modules
	}
	return append([]Module{{Path: "std", Version: p.Go}}, p.Modules...)
}

// key identifies a module in a document.
func (m Module) key() string {
	if m.Local {
		return m.Path + " in a directory"
	}
	return golangPURL(m.Path, m.Version)
}

func (g *graph) module(m Module) *component {
	c := &component{kind: kindModule, name: m.Path, version: m.Version, purl: golangPURL(m.Path, m.Version)}
	c.id, c.ref = "go-"+hash(m.key()), cmp.Or(c.purl, "go:"+m.Path)
	switch {
	case m.Local:
		c.comment = "replaced by a directory whose content is not known"
	case m.Sum != "":
		c.remark = "go.sum " + m.Sum
	}
	if m.Replaces != "" && m.Replaces != m.Path {
		c.comment = "replaces " + m.Replaces
	}
	return g.add(c, m.key())
}
