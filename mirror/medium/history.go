package medium

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Names of the files of a history (MIRROR 10.3): .history/.history-TIME in the working directory.
const (
	historyDir    = ".history"
	historyPrefix = ".history-"
	// maxHistory is the limit of such a file in bytes, maxHistories how many are looked at.
	maxHistory   = 128 << 20
	maxHistories = 10_000
)

// History is what the archives had up to a time: the digests of their blobs and manifests.
type History struct {
	// Time is that of the file; zero for an empty history.
	Time time.Time
	keys []key // sorted
}

// Has tells whether an archive had a blob or manifest.
func (h *History) Has(d digest.Digest) bool {
	k, err := keyOf(d)
	if err != nil {
		return false
	}
	_, has := slices.BinarySearchFunc(h.keys, k, compareKeys)
	return has
}

func compareKeys(a, b key) int { return bytes.Compare(a[:], b[:]) }

// Len returns how many digests there are.
func (h *History) Len() int { return len(h.keys) }

// historyFile is a file of a history with its time.
type historyFile struct {
	name string
	time time.Time
}

// historyFiles returns the files of the histories in a working directory by their time, the oldest first. Names that
// are none are passed over.
func historyFiles(workingDir fs.FS) ([]historyFile, error) {
	entries, err := fs.ReadDir(workingDir, historyDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(entries) > maxHistories {
		return nil, fmt.Errorf("%s: %w: more than %d files", historyDir, fault.ErrLimit, maxHistories)
	}
	var files []historyFile
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), historyPrefix)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		if t, err := parseTime(text); err == nil {
			files = append(files, historyFile{path.Join(historyDir, e.Name()), t})
		}
	}
	slices.SortStableFunc(files, func(a, b historyFile) int { return a.time.Compare(b.time) })
	return files, nil
}

// parseTime reads a time in a name: RFC 3339, with dashes for colons where file systems have no colons.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(timeFormat, text)
	if err != nil {
		if date, clock, ok := strings.Cut(text, "T"); ok {
			// Of the two dashes in the time of day and the one in the zone, all are colons but the sign of the zone.
			clock = strings.Replace(clock, "-", ":", 2)
			if len(clock) > 9 {
				clock = clock[:9] + strings.Replace(clock[9:], "-", ":", 1)
			}
			t, err = time.Parse(timeFormat, date+"T"+clock)
		}
	}
	return t, err
}

// ReadHistory reads the newest history in a working directory, or the newest from before a time unless that is zero
// (--since). There may be none: then the history is empty.
func ReadHistory(workingDir fs.FS, before time.Time) (*History, error) {
	files, err := historyFiles(workingDir)
	if err != nil {
		return nil, err
	}
	if !before.IsZero() {
		files = slices.DeleteFunc(files, func(f historyFile) bool { return !f.time.Before(before) })
	}
	if len(files) == 0 {
		return &History{}, nil
	}
	return readHistory(workingDir, files[len(files)-1])
}

func readHistory(workingDir fs.FS, file historyFile) (*History, error) {
	f, err := workingDir.Open(file.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := &History{Time: file.time}
	limited := &io.LimitedReader{R: f, N: maxHistory + 1}
	lines := bufio.NewScanner(limited)
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		k, err := keyOf(digest.Digest(text))
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file.name, n, err)
		}
		h.keys = append(h.keys, k)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file.name, err)
	}
	if limited.N == 0 {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", file.name, fault.ErrLimit, maxHistory)
	}
	slices.SortFunc(h.keys, compareKeys)
	h.keys = slices.Compact(h.keys)
	return h, nil
}

// WriteHistory writes the history after an archive into a working directory: what the earlier history has, which may be
// nil, and what the archive has, sorted. It returns the name of the file, .history/.history-TIME. The caller writes it
// when the archive is whole, so that an archive holds the history of the runs before it.
func WriteHistory(workingDir string, at time.Time, earlier *History, added []digest.Digest) (string, error) {
	var keys []key
	if earlier != nil {
		keys = slices.Clone(earlier.keys)
	}
	for _, d := range added {
		k, err := keyOf(d)
		if err != nil {
			return "", err
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	var text bytes.Buffer
	for _, k := range slices.Compact(keys) {
		text.WriteString(k.digest().String() + "\n")
	}
	stamp := at.UTC().Format(timeFormat)
	if runtime.GOOS == "windows" {
		stamp = strings.ReplaceAll(stamp, ":", "-")
	}
	return writeHistory(workingDir, stamp, text.Bytes())
}
