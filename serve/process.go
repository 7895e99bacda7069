package serve

import (
	"context"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// defaultAnswerMemory is the default of [Limits.AnswerMemory] if memory is plentiful.
const defaultAnswerMemory = 16 << 20

// FitProcess adapts the process to the memory limit of its container, and l to that and to how many files the process may
// have open. Go's limit becomes 85 % of the memory, unless GOMEMLIMIT is set. The memory for answers becomes an eighth,
// unless l sets it. The number of connections becomes what fits into half of the memory with one call each and into three
// eighths of the files, but at most the default, unless l sets it. Without readable limits nothing changes.
func (l *Limits) FitProcess(log *slog.Logger) {
	most := DefaultConnections
	if files, ok := fileLimit(); ok {
		// An eighth each is for the services over HTTP. The rest is for catalogs, which have a file for each package.
		most = min(most, max(files*3/8, 1))
		if l.HTTP <= 0 {
			l.HTTP = min(DefaultHTTPConnections, max(files/8, 1))
		}
	}
	if limit, ok := memoryLimit(log); ok {
		most = min(most, connections(limit))
		if l.AnswerMemory <= 0 {
			l.AnswerMemory = answerMemory(limit)
		}
	}
	if l.Connections <= 0 {
		if l.Connections = most; most < DefaultConnections {
			log.Debug("memory or open files are for few connections", "connections", most)
		}
	}
}

// memoryLimit returns Go's memory limit, which it sets if the container has one.
func memoryLimit(log *slog.Logger) (int64, bool) {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		container, ok := containerMemory(os.DirFS("/"))
		if !ok {
			return 0, false
		}
		// The rest is for memory that Go does not count: the program itself, kernel buffers, file pages.
		limit = container / 100 * 85
		debug.SetMemoryLimit(limit)
		log.Debug("memory limit of the container", "bytes", container, "limit", limit)
	}
	return limit, true
}

const (
	// connectionMemory is the memory of a connection with a stalled call, in bytes: half of it are the stacks of four
	// goroutines.
	connectionMemory = 40 << 10
	// leastConnections is more than a catalog's clients in a cluster need: two controllers with some connections each.
	leastConnections = 100
)

func connections(limit int64) int {
	return int(min(max(limit/2/connectionMemory, leastConnections), DefaultConnections))
}

func answerMemory(limit int64) int { return int(min(max(limit/8, 1<<20), defaultAnswerMemory)) }

// containerMemory returns the smallest memory limit of the process's control groups, version 1 or 2. fsys is the root
// of the file system.
func containerMemory(fsys fs.FS) (int64, bool) {
	least := int64(math.MaxInt64)
	for _, dir := range memoryGroups(fsys) {
		for _, file := range [...]string{"memory.max", "memory.high", "memory.limit_in_bytes"} {
			text, err := fs.ReadFile(fsys, path.Join(dir, file))
			if err != nil {
				continue
			}
			// Without a limit the value is "max", or in version 1 the largest multiple of a page.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && n < 1<<60 {
				least = min(least, n)
			}
		}
	}
	return least, least < math.MaxInt64
}

// memoryGroups returns the directories of the process's control groups and their parents. In a container the process's
// own group is usually mounted as the root, whatever its name outside.
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

const (
	// giveBackEvery is the interval at which a server checks whether it holds unneeded memory.
	giveBackEvery = 10 * time.Second
	// spareMemory is how much more than before a process may hold, in bytes, before a garbage collection is worth its
	// cost.
	spareMemory = 4 << 20
)

// giveBack returns memory to the system after a burst of calls. Without it an idle process keeps the memory of 20,000
// calls: Go collects garbage when memory is allocated, or every two minutes, and returns pages slowly.
type giveBack struct {
	needed uint64 // the least that was held since the last return
}

// watch checks until ctx ends. Its baseline is the memory held when it is called, after loading the catalog.
func (g *giveBack) watch(ctx context.Context) {
	g.returnMemory()
	tick := time.NewTicker(giveBackEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.returnMemory()
		}
	}
}

// returnMemory returns memory if much more is held than was needed. It reports whether it did.
func (g *giveBack) returnMemory() bool {
	held := heldMemory()
	if g.needed == 0 || held <= g.needed+spareMemory {
		if g.needed == 0 || held < g.needed {
			g.needed = held
		}
		return false
	}
	debug.FreeOSMemory()
	g.needed = heldMemory()
	return true
}

// heldMemory is what the Go runtime has obtained from the system and not returned, in bytes.
func heldMemory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}
