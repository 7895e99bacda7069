package serve

import (
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// defaultAnswerMemory is [Limits.AnswerMemory] where memory is plenty.
const defaultAnswerMemory = 16 << 20

// FitMemory adapts the process to the memory limit of its container. Go's limit becomes 85 % of it, unless GOMEMLIMIT
// sets one, and the memory for answers an eighth, unless l sets it. The limit of connections becomes the number of
// connections with one call each that fit into half of it, at most the default and at least what a cluster needs,
// unless l sets it. Without a readable limit nothing is changed.
func FitMemory(l *Limits, log *slog.Logger) {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		container, ok := containerMemory(os.DirFS("/"))
		if !ok {
			return
		}
		// The rest is for what Go does not count: the program itself, the kernel's buffers, pages of files.
		limit = container / 100 * 85
		debug.SetMemoryLimit(limit)
		log.Debug("memory limit of the container", "bytes", container, "limit", limit)
	}
	if l.AnswerMemory <= 0 {
		l.AnswerMemory = answerMemory(limit)
	}
	if l.Connections <= 0 {
		if l.Connections = connections(limit); l.Connections < DefaultConnections {
			log.Debug("memory is for few connections", "connections", l.Connections)
		}
	}
}

const (
	// connectionMemory is what a connection with a stalled call takes, in bytes: half of it the stacks of four goroutines.
	connectionMemory = 40 << 10
	// leastConnections are more than the clients of a catalog in a cluster: two controllers with some connections each.
	leastConnections = 100
)

func connections(limit int64) int {
	return int(min(max(limit/2/connectionMemory, leastConnections), DefaultConnections))
}

func answerMemory(limit int64) int { return int(min(max(limit/8, 1<<20), defaultAnswerMemory)) }

// containerMemory is the smallest memory limit of the control groups that the process is in, of version 1 or 2. fsys is the
// root of the file system.
func containerMemory(fsys fs.FS) (int64, bool) {
	least := int64(math.MaxInt64)
	for _, dir := range memoryGroups(fsys) {
		for _, file := range [...]string{"memory.max", "memory.high", "memory.limit_in_bytes"} {
			text, err := fs.ReadFile(fsys, path.Join(dir, file))
			if err != nil {
				continue
			}
			// No limit is written "max", and in version 1 as the largest multiple of a page.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && n < 1<<60 {
				least = min(least, n)
			}
		}
	}
	return least, least < math.MaxInt64
}

// memoryGroups are the directories of the process's groups and of those around them. In a container the own group is
// mostly mounted as the root, whatever its name outside is.
func memoryGroups(fsys fs.FS) []string {
	const v2, v1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"
	dirs := []string{v2, v1}
	text, err := fs.ReadFile(fsys, "proc/self/cgroup")
	if err != nil {
		return dirs
	}
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || !fs.ValidPath(strings.TrimPrefix(fields[2], "/")) {
			continue
		}
		root := ""
		switch {
		case fields[0] == "0" && fields[1] == "":
			root = v2
		case strings.Contains(","+fields[1]+",", ",memory,"):
			root = v1
		default:
			continue
		}
		for dir := path.Join(root, fields[2]); len(dir) > len(root); dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
