//go:build !nobuildah

package evaluator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/openshift/imagebuilder"

	"github.com/operator-bindery/bindery/layers"
)

// copying is the state of one COPY or ADD.
type copying struct {
	ctx   context.Context
	x     *stage
	root  *node    // the source tree
	out   *ignored // exclusions from the source
	chown *[2]int  // nil keeps the owners
	chmod *fs.FileMode
	strip bool // remove the setuid and setgid bits
	count int  // number of copied files and directories
	fetch []*node
}

// changed returns the copy of a node with owner and mode as the flags want them.
func (c *copying) changed(n *node) *node {
	m := *n
	m.children, m.load, m.inLayer, m.replacesDir, m.opaque = nil, nil, true, false, false
	if n.isDir() {
		m.children = map[string]*node{}
	}
	if c.strip {
		m.mode &^= fs.ModeSetuid | fs.ModeSetgid
	}
	if c.chown != nil {
		m.uid, m.gid = c.chown[0], c.chown[1]
	}
	if c.chmod != nil && n.kind != layers.KindSymlink {
		m.mode = *c.chmod
	}
	if n.data != nil {
		c.fetch = append(c.fetch, n)
	}
	return &m
}

// newDir creates a missing parent directory of a destination.
func (c *copying) newDir() *node {
	d := newDir()
	c.x.e.nodes++ // the caller counts only the nodes that it copies into the directory
	d.inLayer = true
	if c.chown != nil {
		d.uid, d.gid = c.chown[0], c.chown[1]
	}
	return d
}

// copy evaluates one COPY or ADD. Heredocs are treated as files.
func (x *stage) copy(ctx context.Context, cp imagebuilder.Copy) error {
	c := &copying{ctx: ctx, x: x, strip: cp.From == ""}
	if cp.From == "" {
		c.chown = &[2]int{}
	}
	if cp.Chown != "" {
		uid, gid, err := owner(ctx, x.root, cp.Chown)
		if err != nil {
			return fmt.Errorf("--chown=%s: %w", cp.Chown, err)
		}
		c.chown = &[2]int{uid, gid}
	}
	if cp.Chmod != "" {
		mode, err := chmodOf(cp.Chmod)
		if err != nil {
			return err
		}
		c.chmod = &mode
	}
	root, patterns, err := x.sourceOf(ctx, cp.From)
	if err != nil {
		return err
	}
	c.root = root
	if len(cp.Excludes) > 0 && len(cp.Src)+1 > maxPatterns/len(cp.Excludes) {
		return fmt.Errorf("%w: %d patterns for %d sources", errLimit, len(cp.Excludes), len(cp.Src))
	}
	for _, e := range cp.Excludes {
		patterns = append(patterns[:len(patterns):len(patterns)], e)
		for _, src := range cp.Src {
			patterns = append(patterns, joinPattern(path.Clean(src), e))
		}
	}
	if c.out, err = newIgnored(patterns); err != nil {
		return fmt.Errorf("exclude patterns: %w", err)
	}
	if err := c.sources(cp); err != nil {
		return err
	}
	return fetchAll(ctx, c.fetch)
}

// joinPattern makes a pattern of --exclude, which is relative to the source, relative to the context.
func joinPattern(source, pattern string) string {
	source = strings.TrimPrefix(source, "/")
	if rest, ok := strings.CutPrefix(pattern, "!"); ok {
		return "!" + path.Join(source, rest)
	}
	return path.Join(source, pattern)
}

func chmodOf(text string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o7777 {
		return 0, newMendError("give up to four octal digits, such as 0755", "--chmod=%.40s is no mode", text)
	}
	return modeOf(int64(n)), nil
}

// modeOf converts a mode with Unix's special bits.
func modeOf(n int64) fs.FileMode {
	mode := fs.FileMode(n) & fs.ModePerm
	for bit, as := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if n&as != 0 {
			mode |= bit
		}
	}
	return mode
}

// sources copies all sources of the instruction.
func (c *copying) sources(cp imagebuilder.Copy) error {
	dest := cp.Dest
	asDir := strings.HasSuffix(dest, "/") || strings.HasSuffix(dest, "/.") || dest == "" || len(cp.Src) > 1 ||
		path.Clean(dest) == path.Clean("/"+c.x.ib.RunConfig.WorkingDir)
	texts := cp.Files
	for _, src := range cp.Src {
		switch {
		case strings.HasPrefix(src, "<<") && len(texts) > 0:
			data := inline(strings.TrimPrefix(texts[0].Data, "\n") + "\n")
			n := &node{kind: layers.KindFile, mode: 0o644, size: int64(len(data)), data: data}
			if err := c.file(path.Base(texts[0].Name), n, dest, asDir); err != nil {
				return err
			}
			texts = texts[1:]
		case isURL(src):
			if !cp.Download {
				return newMendError("use ADD with --checksum", "%.200q: COPY takes no URL", src)
			}
			n, name, err := c.x.e.download(c.ctx, src, cp.Checksum)
			if err != nil {
				return err
			}
			if err := c.file(name, n, dest, asDir); err != nil {
				return err
			}
		case isGit(src):
			return repositoryError(src, cp.Checksum)
		case cp.Checksum != "":
			return errors.New("--checksum is for URLs")
		default:
			if err := c.local(src, cp, dest, asDir); err != nil {
				return err
			}
		}
	}
	return nil
}

// local copies the files and directories that match one source.
func (c *copying) local(src string, cp imagebuilder.Copy, dest string, asDir bool) error {
	pivot := "."
	if before, _, ok := strings.Cut(src, "/./"); ok && cp.Parents {
		pivot = path.Clean(strings.TrimLeft(before, "/"))
	}
	all, err := glob(c.ctx, c.root, src)
	if err != nil {
		return err
	}
	asDir = asDir || len(all) > 1
	before := c.count
	for _, f := range all {
		left, info, err := c.out.matchAt(f.path, f.real)
		if err != nil {
			return err
		}
		if left && !(f.n.isDir() && c.out.mayIncludeWithin()) {
			continue
		}
		to, must := dest, asDir
		if cp.Parents {
			dir := path.Dir(f.path)
			if f.n.isDir() {
				dir = f.path
			}
			if pivot != "." {
				dir = strings.TrimPrefix(strings.TrimPrefix(dir, pivot), "/")
			}
			if err := c.parents(dest, pivot, dir); err != nil {
				return err
			}
			to, must = path.Join(dest, dir), true
		}
		switch {
		case f.n.isDir():
			c.count++
			err = c.dir(f, to, info)
		case f.n.kind == special:
			err = fmt.Errorf("%.200q is neither a file nor a directory", f.path)
		case cp.Download:
			var unpacked bool
			if unpacked, err = c.archive(f, to); !unpacked && err == nil {
				err = c.file(path.Base(f.path), f.n, to, must)
			}
		default:
			err = c.file(path.Base(f.path), f.n, to, must)
		}
		if err != nil {
			return err
		}
	}
	if c.count == before {
		return newMendError("look at the ignore file and at --exclude", "%.200q exists, but all of it is excluded", src)
	}
	return nil
}

// parents creates the directories for --parents, with their attributes in the source.
func (c *copying) parents(dest, pivot, dir string) error {
	if dir == "." || dir == "" {
		return nil
	}
	if err := c.parents(dest, pivot, path.Dir(dir)); err != nil {
		return err
	}
	from, err := walk(c.ctx, c.root, path.Join(pivot, dir), true, nil)
	if err != nil {
		return err
	}
	to, err := walk(c.ctx, c.x.root, path.Join(dest, path.Dir(dir)), true, c.newDir)
	if err != nil {
		return err
	}
	return setEntry(c.ctx, to.node(), path.Base(dir), c.changed(from.node()))
}

// file copies one file to dest, or into dest if that is a directory.
func (c *copying) file(name string, n *node, dest string, asDir bool) error {
	at, err := walk(c.ctx, c.x.root, dest, true, nil)
	switch {
	case err == nil && at.node().isDir():
	case err == nil && asDir:
		return fmt.Errorf("destination %.200q exists and is not a directory", dest)
	case err == nil || errors.Is(err, fs.ErrNotExist):
		if asDir {
			break
		}
		clean := path.Clean("/" + dest)
		dest, name = path.Dir(clean), path.Base(clean)
	default:
		return err
	}
	at, err = walk(c.ctx, c.x.root, dest, true, c.newDir)
	if err != nil {
		return err
	}
	if name == "/" || name == "." || name == ".." || name == "" {
		return fmt.Errorf("%.200q is not a file name", name)
	}
	if err := c.x.e.grow(1); err != nil {
		return err
	}
	c.count++
	return setEntry(c.ctx, at.node(), name, c.changed(n))
}

// dir copies the entries of a directory.
func (c *copying) dir(f found, dest string, info matched) error {
	at, err := walk(c.ctx, c.x.root, dest, true, c.newDir)
	if err != nil {
		return err
	}
	if !at.node().isDir() {
		return fmt.Errorf("destination %.200q exists and is not a directory", dest)
	}
	return c.children(f.n, f.path, f.real, info, func() (*node, error) { return at.node(), nil }, 0)
}

// children copies the entries of a directory. into returns the destination directory and is called only when there is
// an entry to copy. at is the path of the source as written, resolved the path with links resolved; both are matched
// against the exclusions.
func (c *copying) children(from *node, at, resolved string, above matched, into func() (*node, error),
	depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%.200q is more than %d directories deep", at, maxDepth)
	}
	children, err := from.entries(c.ctx)
	if err != nil {
		return err
	}
	for _, name := range sorted(children) {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		n, full, fullReal := children[name], path.Join(at, name), path.Join(resolved, name)
		left, info, err := c.out.match(full, fullReal, above)
		if err != nil {
			return err
		}
		if left && !(n.isDir() && c.out.mayIncludeWithin()) {
			continue
		}
		if n.kind == special {
			return newMendError("remove it, or name it in .containerignore", "%.200q is neither a file nor a directory",
				full)
		}
		// An excluded directory can contain files that "!" patterns include: it is created when the first of them is
		// copied.
		var made *node
		put := func() (*node, error) {
			if made != nil {
				return made, nil
			}
			dir, err := into()
			if err != nil {
				return nil, err
			}
			if n.isDir() {
				c.warnReplaced(dir, name)
			}
			if err := c.x.e.grow(1); err != nil {
				return nil, err
			}
			made = c.changed(n)
			c.count++
			return made, setEntry(c.ctx, dir, name, made)
		}
		if !left {
			if _, err := put(); err != nil {
				return err
			}
		}
		if n.isDir() {
			if err := c.children(n, full, fullReal, info, put, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// warnReplaced warns when a directory replaces a symbolic link: the files behind the link stay where they are.
func (c *copying) warnReplaced(dir *node, name string) {
	if was := dir.children[name]; was != nil && was.kind == layers.KindSymlink {
		c.x.e.warn(fmt.Sprintf("the link %q (to %.200q) is replaced by a directory, as in other builders", name,
			was.link))
	}
}
