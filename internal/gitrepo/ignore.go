package gitrepo

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/fault"
)

// maxPatterns is the size of a .gitignore in bytes.
const maxPatterns = 1 << 20

// pattern is a line of a .gitignore.
type pattern struct {
	dir   string   // where the file is; empty or with a slash at the end
	parts []string // of the path below it; "**" is any number of directories
	keep  bool     // with "!"
	dirs  bool     // for directories alone
}

// patterns reads a .gitignore of a directory.
func patterns(dir string, r io.Reader) (list []pattern, err error) {
	lines := bufio.NewScanner(io.LimitReader(r, maxPatterns+1))
	lines.Buffer(nil, maxPatterns)
	for lines.Scan() {
		line, p := strings.TrimSuffix(lines.Text(), "\r"), pattern{dir: dir}
		if strings.HasPrefix(line, "#") {
			continue
		}
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		line, p.keep = strings.CutPrefix(line, "!")
		line, p.dirs = strings.CutSuffix(line, "/")
		if line == "" {
			continue
		}
		p.parts = strings.Split(bytewise(strings.ReplaceAll(strings.TrimPrefix(line, "/"), "[!", "[^")), "/")
		if !strings.Contains(line, "/") {
			p.parts = []string{"**", p.parts[0]}
		}
		if p.parts[len(p.parts)-1] == "**" { // what is in the directory, and not the directory
			p.parts = append(p.parts, "*")
		}
		list = append(list, p)
	}
	if lines.Err() != nil {
		return nil, fmt.Errorf("%s.gitignore: %w: more than %d bytes", dir, fault.ErrLimit, maxPatterns)
	}
	return list, nil
}

// match reports whether the last pattern that matches a path ignores it. That a directory above it is ignored is for the
// caller to know.
func match(list []pattern, name string, dir bool) bool {
	for i := len(list) - 1; i >= 0; i-- {
		if p := list[i]; (dir || !p.dirs) && strings.HasPrefix(name, p.dir) && p.match(strings.Split(bytewise(name[len(p.dir):]), "/")) {
			return !p.keep
		}
	}
	return false
}

// bytewise returns a text with a character for each byte: to git "?" is one byte.
func bytewise(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return s
	}
	all := make([]rune, len(s))
	for i := range all {
		all[i] = rune(s[i])
	}
	return string(all)
}

func (p pattern) match(names []string) bool {
	i, star, from := 0, -1, 0
	for j := 0; j < len(names); {
		ok := false
		if i < len(p.parts) && p.parts[i] != "**" {
			ok, _ = path.Match(p.parts[i], names[j])
		}
		switch {
		case i < len(p.parts) && p.parts[i] == "**":
			star, from = i, j
			i++
		case ok:
			i, j = i+1, j+1
		case star >= 0: // the directories of "**" are one more
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return i == len(p.parts)
}
