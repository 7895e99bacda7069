package jobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/redact"
)

// deriveNames gives lines without an output a directory named after the source.
func deriveNames(lines []Line, o ListOptions) {
	if o.OutDir == "" {
		return
	}
	taken := map[string]int{}
	for _, l := range lines {
		if len(l.Outputs()) > 0 {
			taken[strings.ToLower(l.Directory)]++
		} else {
			taken[strings.ToLower(filepath.Join(o.OutDir, nameOf(l.Source, !o.Transports.Has(l.Source))))]++
		}
	}
	for i := range lines {
		l := &lines[i]
		if len(l.Outputs()) > 0 {
			continue
		}
		name := nameOf(l.Source, !o.Transports.Has(l.Source))
		if taken[strings.ToLower(filepath.Join(o.OutDir, name))] > 1 {
			name += "-" + sumOf(l.Source)
		}
		l.Directory = filepath.Join(o.OutDir, name)
	}
}

// maxName is the length of a derived name in bytes, without its checksum.
const maxName = 120

// nameOf derives an output name from a source and nothing else, so that a list may grow. Separators become "_"; if the
// result is ambiguous, a checksum is appended. Credentials in the source are no part of it. A path, or a name without a
// transport, is cleaned first.
func nameOf(source string, isPath bool) string {
	name := redact.Text(source)
	lossless := name == source
	source = name
	if isPath {
		name = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(name)), "/")
	}
	name = strings.TrimPrefix(name, "docker://")
	for _, end := range []string{".db", ".sqlite"} {
		if base, ok := strings.CutSuffix(name, end); ok && base != "" {
			name = base
			break
		}
	}
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '/' || r == ':' || r == '@':
			b.WriteByte('_')
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			b.WriteRune(r)
		case r >= 'A' && r <= 'Z':
			b.WriteRune(r)
		default:
			lossless = false
			b.WriteByte('_')
		}
	}
	name = b.String()
	clean := strings.TrimRight(strings.TrimLeft(name, ".-_"), ".")
	if clean != name || len(clean) > maxName || clean == "" || reserved(clean) {
		lossless = false
	}
	if len(clean) > maxName {
		clean = clean[:maxName]
	}
	if clean == "" || reserved(clean) {
		clean = "index"
	}
	if !lossless {
		clean += "-" + sumOf(source)
	}
	return clean
}

// reserved names are devices on some systems, with any extension.
func reserved(name string) bool {
	base, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) && base[3] >= '0' &&
		base[3] <= '9'
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// place is an input or output of a list.
type place struct {
	line int
	text string
	path string // absolute and without links; empty in a registry
	tag  string // in a layout, which can hold several
}

// checkOutputs finds outputs that are equal or nested, that are or contain a source, or that are outside OutDir.
func checkOutputs(lines []Line, o ListOptions, p *problems) {
	resolved := resolver{}
	root := ""
	if o.OutDir != "" {
		var err error
		if root, err = atomicfs.Resolve(o.OutDir); err != nil {
			p.add(0, "--to: %w", err)
			return
		}
	}
	known := map[string]place{}     // outputs by path, or by name in a registry
	layouts := map[string]place{}   // the first image of each layout
	sources := map[string][]place{} // by path
	for _, l := range lines {
		path := l.Source
		if o.Transports.Has(path) {
			d, err := o.Transports.Parse(path)
			if err != nil || !d.InFiles() || o.Transports.Row(d.Transport).Many { // a layout can be both source and output
				continue
			}
			path = d.Path
		}
		if _, err := os.Lstat(path); err != nil {
			continue // an image, or missing
		}
		if path, err := resolved.resolve(path); err == nil {
			sources[path] = append(sources[path], place{line: l.Number, text: l.Source})
		}
	}
	var all []place
	for _, l := range lines {
		for _, out := range places(&l, o.Transports, resolved, p) {
			if out.path != "" && root != "" && !inside(root, out.path) {
				p.add(out.line, "the output %q leads out of the output directory %q through a link", out.text, o.OutDir)
				continue
			}
			key := out.path
			key = cmp.Or(key, out.text)
			if first, ok := known[key+"\x00"+out.tag]; ok {
				p.add(out.line, "the output %q is also that of line %d", out.text, first.line)
				continue
			}
			known[key+"\x00"+out.tag] = out
			if out.tag != "" {
				if _, ok := layouts[key]; ok {
					continue // another image in the same layout
				}
				layouts[key] = out
			}
			all = append(all, out)
		}
	}
	checkNested(all, sources, p)
}

func places(l *Line, transports transport.Table, r resolver, p *problems) []place {
	var out []place
	local := func(text, path, tag string) {
		resolved, err := r.resolve(path)
		if err != nil {
			p.add(l.Number, "the output %q: %w", text, err)
			return
		}
		out = append(out, place{line: l.Number, text: text, path: resolved, tag: tag})
	}
	if l.Directory != "" {
		local(l.Directory, l.Directory, "")
	}
	for _, d := range l.Destinations {
		switch {
		case !d.InFiles():
			out = append(out, place{line: l.Number, text: d.String()})
		case transports.Row(d.Transport).Many:
			local(d.String(), d.Path, "tag "+d.Name)
		default:
			local(d.String(), d.Path, "")
		}
	}
	return out
}

// checkNested finds nested outputs, and outputs that contain or are in a source.
func checkNested(all []place, sources map[string][]place, p *problems) {
	byPath := map[string]place{}
	for _, out := range all {
		if out.path != "" {
			if first, ok := byPath[out.path]; ok {
				p.add(out.line, "the output %q is also that of line %d", out.text, first.line)
			}
			byPath[out.path] = out
		}
	}
	for _, out := range all {
		if out.path == "" {
			continue
		}
		for dir := out.path; ; dir = filepath.Dir(dir) {
			if above, ok := byPath[dir]; ok && dir != out.path {
				p.add(out.line, "the output %q is inside that of line %d, %q", out.text, above.line, above.text)
			}
			for _, s := range sources[dir] {
				p.add(out.line, "the output %q is or is inside the source of line %d, %q", out.text, s.line, s.text)
			}
			if filepath.Dir(dir) == dir {
				break
			}
		}
	}
	for path, of := range sources {
		for dir := filepath.Dir(path); filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
			if out, ok := byPath[dir]; ok {
				for _, s := range of {
					p.add(out.line, "the output %q contains the source of line %d, %q", out.text, s.line, s.text)
				}
			}
		}
	}
}

// inside reports whether a path is below a directory.
func inside(dir, path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// resolver caches the resolved paths of directories.
type resolver map[string]string

func (r resolver) resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(abs); err == nil && info.Mode()&os.ModeSymlink != 0 || filepath.Dir(abs) == abs {
		return atomicfs.Resolve(abs)
	}
	parent := filepath.Dir(abs)
	resolved, ok := r[parent]
	if !ok {
		if resolved, err = atomicfs.Resolve(parent); err != nil {
			return "", err
		}
		r[parent] = resolved
	}
	return filepath.Join(resolved, filepath.Base(abs)), nil
}
