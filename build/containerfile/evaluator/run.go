//go:build !nobuildah

package evaluator

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/openshift/imagebuilder"
	"github.com/openshift/imagebuilder/dockerfile/command"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/internal/problem"
	"github.com/operator-bindery/bindery/layers"
)

// serverPackages are the programs that write native caches: the small server, and the command itself, which goes into
// images if the small server was not embedded.
var serverPackages = []string{"github.com/operator-bindery/bindery/cmd/opm-server",
	"github.com/operator-bindery/bindery/cmd/bindery"}

// filling is a command that fills a serve cache: opm serve CONFIGS --cache-dir=DIR --cache-only.
type filling struct {
	program, configs, dir string
}

// parseFilling recognises the command with any path of opm and with flags in any order and form. It accepts flags that
// do not affect the cache; with any other flag the command is not recognised.
func parseFilling(args []string) (filling, bool) {
	var f filling
	if len(args) == 0 || path.Base(args[0]) != "opm" {
		return f, false
	}
	f.program = args[0]
	var names []string
	only := false
	for i := 1; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		switch name {
		case "--cache-only", "--debug", "--cache-enforce-integrity", "--skip-tls", "--skip-tls-verify", "--use-http",
			"--pprof-capture-profiles":
			if has && value != "true" && value != "false" {
				return f, false
			}
			if name == "--cache-only" {
				only = !has || value == "true"
			}
			if name == "--cache-enforce-integrity" && (!has || value == "true") {
				return f, false // these flags prevent writing the cache
			}
		case "--cache-dir", "--pprof-addr", "-a", "--port", "-p", "--termination-log", "-t":
			if !has {
				if i++; i == len(args) {
					return f, false
				}
				value = args[i]
			}
			if name == "--cache-dir" {
				f.dir = value
			}
		default:
			if strings.HasPrefix(args[i], "-") {
				return f, false
			}
			names = append(names, args[i])
		}
	}
	if !only || f.dir == "" || len(names) != 2 || names[0] != "serve" {
		return f, false
	}
	f.configs = names[1]
	return f, true
}

// fillingOf recognises the command of a RUN in exec form, or in shell form if the shell would not change the words.
func fillingOf(words []string, shell bool) (filling, bool) {
	if !shell {
		return parseFilling(words)
	}
	text := strings.Join(words, " ")
	if strings.ContainsAny(text, "$`\"'\\;&|<>(){}*?[]#~!\n") {
		return filling{}, false
	}
	return parseFilling(strings.Fields(text))
}

// run evaluates a RUN without running it, or fails with [ErrRun].
func (s *stage) run(ctx context.Context, r imagebuilder.Run) error {
	f, ok := fillingOf(r.Args, r.Shell)
	if !ok || len(r.Mounts) > 0 || len(r.Files) > 0 || len(s.ib.RunConfig.Shell) > 0 && r.Shell {
		return ErrRun
	}
	native, err := s.isNative(ctx, f.program)
	if err != nil {
		return err
	}
	for _, name := range []*string{&f.configs, &f.dir} {
		if *name = path.Clean(*name); !path.IsAbs(*name) {
			*name = path.Join("/"+s.ib.RunConfig.WorkingDir, *name)
		}
	}
	p, err := walk(ctx, s.root, f.configs, true, nil)
	if err != nil || !p.node().isDir() {
		return newMendError("COPY or ADD the catalog there first", "%.200q is no directory in the image", f.configs)
	}
	to, err := walk(ctx, s.root, f.dir, true, func() *node { d := newDir(); d.inLayer = true; return d })
	if err != nil {
		return err
	}
	if f.dir = to.path(); f.dir == "." || !to.node().isDir() {
		return fmt.Errorf("--cache-dir: %.200q is no directory for a cache", "/"+f.dir)
	}
	entries, err := s.cache(ctx, p, f.dir, native)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.putEntry(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// isNative reports whether the program in the image is bindery's server.
func (s *stage) isNative(ctx context.Context, program string) (bool, error) {
	places := []string{program}
	if !strings.Contains(program, "/") {
		places = nil
		for _, set := range append(s.env, s.ib.RunConfig.Env...) {
			if value, ok := strings.CutPrefix(set, "PATH="); ok {
				places = nil
				for dir := range strings.SplitSeq(value, ":") {
					places = append(places, path.Join("/", dir, program))
				}
			}
		}
	}
	for _, name := range places {
		p, err := walk(ctx, s.root, path.Join("/"+s.ib.RunConfig.WorkingDir, name), true, nil)
		if path.IsAbs(name) {
			p, err = walk(ctx, s.root, name, true, nil)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if p.node().data == nil {
			return false, fmt.Errorf("%.200q is not a program", program)
		}
		return s.e.isServer(ctx, p.node())
	}
	return false, newMendError("begin the stage with an image that has opm", "the image has no program %.200q", program)
}

// isServer reports whether a file is a program that serves catalogs, according to its Go build information.
func (e *Evaluator) isServer(ctx context.Context, n *node) (_ bool, err error) {
	if err := fetchAll(ctx, []*node{n}); err != nil {
		return false, err
	}
	r, err := n.data.open()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f, err := os.CreateTemp(e.o.Dir, "program-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := io.Copy(f, r); err != nil {
		return false, err
	}
	info, err := buildinfo.Read(f)
	return err == nil && slices.Contains(serverPackages, info.Path), nil
}

// cache builds the cache of a catalog in the stage, once per catalog.
func (s *stage) cache(ctx context.Context, configs place, dir string, native bool) ([]layers.Entry, error) {
	kind := build.ServeCachePogreb
	if native {
		kind = build.ServeCacheNative
	}
	// The key of the catalog is the id of a layer with all of its files.
	var files []*node
	all, err := asChanged(ctx, configs.node(), &files)
	if err != nil {
		return nil, err
	}
	top := newDir()
	top.children["configs"] = all
	_, id, err := entriesOf(ctx, top)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%s %q %s", kind, dir, id)
	if entries, ok := s.e.caches[key]; ok {
		return entries, nil
	}
	// All files are fetched in one pass: fetching them one by one would read a layer for each.
	if err := fetchAll(ctx, files); err != nil {
		return nil, err
	}
	made, err := s.e.o.fill(ctx, view{ctx, fetchAll, s.root, configs.path()}, s.e.o.Dir, dir, kind)
	if err != nil {
		return nil, fmt.Errorf("the serve cache: %w", err)
	}
	for i, e := range made {
		if e.Kind != layers.KindFile {
			continue
		}
		if made[i], err = s.e.spoolEntry(ctx, e); err != nil {
			return nil, fmt.Errorf("the serve cache: %s: %w", e.Name, err)
		}
	}
	s.e.caches[key] = made
	return made, nil
}

// asChanged copies a tree with all nodes marked as changed and appends its files to files.
func asChanged(ctx context.Context, n *node, files *[]*node) (*node, error) {
	if n.data != nil {
		*files = append(*files, n)
	}
	m := *n
	m.inLayer = true
	if n.isDir() {
		children, err := n.entries(ctx)
		if err != nil {
			return nil, err
		}
		m.children, m.load = make(map[string]*node, len(children)), nil
		for name, c := range children {
			if m.children[name], err = asChanged(ctx, c, files); err != nil {
				return nil, err
			}
		}
	}
	return &m, nil
}

// spooledFile is an open file with its content in the spool.
type spooledFile struct {
	io.ReadCloser
	c content
}

func (e *Evaluator) spoolEntry(ctx context.Context, entry layers.Entry) (_ layers.Entry, err error) {
	r, err := entry.Open()
	if err != nil {
		return entry, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	c, err := e.spool.add(ctx, r, entry.Size)
	if err != nil {
		return entry, err
	}
	entry.Open = func() (io.ReadCloser, error) {
		r, err := c.open()
		return spooledFile{r, c}, err
	}
	return entry, nil
}

// putEntry puts an entry of a cache into the stage. Directories of the base keep their attributes.
func (s *stage) putEntry(ctx context.Context, e layers.Entry) error {
	dir, err := walk(ctx, s.root, path.Dir(e.Name), true,
		func() *node { d := newDir(); d.inLayer = true; return d })
	if err != nil {
		return err
	}
	n := &node{kind: e.Kind, mode: e.Mode, uid: e.UID, gid: e.GID, size: e.Size}
	switch e.Kind {
	case layers.KindDir:
		if was := dir.node().children[path.Base(e.Name)]; was != nil && was.isDir() && !was.inLayer {
			return nil
		}
		n.children = map[string]*node{}
	case layers.KindFile:
		r, err := e.Open()
		if err != nil {
			return err
		}
		f, ok := r.(spooledFile)
		if err := r.Close(); err != nil || !ok {
			return errors.Join(err, errNotReady)
		}
		n.data = f.c
	default:
		return fmt.Errorf("%s: neither a file nor a directory", e.Name)
	}
	return setEntry(ctx, dir.node(), path.Base(e.Name), n)
}

// Runs returns the RUN instructions that cannot be evaluated, in the stages that the image of a platform needs, as far
// as they can be recognised without opening images. They are [Problems] of the class [ErrRun]; nil means that there are
// none.
func (e *Evaluator) Runs(p v1.Platform) (*Problems, error) {
	v, target, err := e.splitStages(p)
	if err != nil {
		return nil, err
	}
	var ps []problem.Problem
	for _, i := range v.needed(target) {
		shell := false
		for _, n := range v.stages[i].Node.Children {
			switch strings.ToLower(n.Value) {
			case command.Shell:
				shell = true
			case command.Run:
				var words []string
				for w := n.Next; w != nil; w = w.Next {
					words = append(words, w.Value)
				}
				_, ok := fillingOf(words, !n.Attributes["json"])
				if ok = ok && len(n.Flags) == 0 && len(n.Heredocs) == 0 && !(shell && !n.Attributes["json"]); !ok {
					ps = append(ps, e.f.asProblem(n.StartLine, n.Value, ErrRun))
				}
			}
		}
	}
	if len(ps) == 0 {
		return nil, nil
	}
	slices.SortFunc(ps, func(a, b problem.Problem) int { return a.Compare(b.Place) })
	return &Problems{Problems: ps}, nil
}

// needed returns the stages that a stage depends on, including itself.
func (v *evaluation) needed(target int) []int {
	seen := map[int]bool{}
	var all []int
	var visit func(int)
	visit = func(i int) {
		if i < 0 || seen[i] {
			return
		}
		seen[i] = true
		all = append(all, i)
		st := v.stages[i]
		words := append(st.Builder.Arguments(), headingArgs(st.Builder)...)
		for _, n := range st.Node.Children {
			var name string
			switch strings.ToLower(n.Value) {
			case command.From:
				if n.Next != nil {
					name = n.Next.Value
				}
			case command.Copy:
				for _, f := range n.Flags {
					if from, ok := strings.CutPrefix(f, "--from="); ok {
						name = from
					}
				}
			}
			if name == "" {
				continue
			}
			if word, err := imagebuilder.ProcessWord(name, words); err == nil {
				name = word
			}
			visit(v.stageNamed(name, i))
		}
	}
	visit(target)
	return all
}

// headingArgs returns the arguments that are declared before the first FROM.
func headingArgs(b *imagebuilder.Builder) []string {
	var out []string
	for k, value := range b.HeadingArgs {
		out = append(out, k+"="+value)
	}
	return out
}
