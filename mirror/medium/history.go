package medium

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Names of the files in which oc-mirror notes the digests of all blobs that it has archived: .history/.history-TIME in
// the working directory, with the time in RFC 3339.
const (
	historyDir    = ".history"
	historyPrefix = ".history-"
	whereDir      = "bindery"
	wherePrefix   = "where-"
	// maxHistory is the limit of such a file in bytes, maxHistories how many are looked at.
	maxHistory   = 128 << 20
	maxHistories = 10_000
	// keyLine is the length of a digest, and of what ends it and the line.
	keyLine = 73
)

// History is what the archives had up to a time: the digests of their blobs and manifests.
type History struct {
	// Time is that of the file; zero for an empty history.
	Time  time.Time
	keys  []key // sorted
	paths []string
	at    map[key]uint32 // number in paths
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

// Where returns the repository that an archive had a blob or manifest for; nothing if that is not known, as in a
// history that oc-mirror wrote.
func (h *History) Where(d digest.Digest) []string {
	k, err := keyOf(d)
	if err != nil {
		return nil
	}
	if path := h.path(k); path != "" {
		return []string{path}
	}
	return nil
}

func (h *History) path(k key) string {
	if n, known := h.at[k]; known {
		return h.paths[n]
	}
	return ""
}

// Len returns how many digests there are.
func (h *History) Len() int { return len(h.keys) }

// historyFile is a file of a history with its time.
type historyFile struct {
	name string
	time time.Time
}

// historyFiles returns the files of the histories in a working directory by their time, the oldest first. Other files
// in the directory are ignored.
func historyFiles(workingDir fs.FS) ([]historyFile, error) {
	entries, err := fs.ReadDir(workingDir, historyDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(entries) > maxHistories {
		return nil, fmt.Errorf("%s: %w: more than %d files: remove the oldest", historyDir, fault.ErrLimit, maxHistories)
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
	newest := files[len(files)-1]
	h, err := readHistory(workingDir, newest)
	if err != nil {
		return nil, err
	}
	return h, h.readWhere(workingDir, newest)
}

func readHistory(workingDir fs.FS, file historyFile) (*History, error) {
	h := &History{Time: file.time}
	err := readLines(workingDir, file.name, func(line string) error {
		k, err := keyOf(digest.Digest(line))
		h.keys = append(h.keys, k)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(h.keys, compareKeys)
	h.keys = slices.Compact(h.keys)
	return h, nil
}

// readWhere reads where the blobs of a history are, if there is such a file.
func (h *History) readWhere(workingDir fs.FS, file historyFile) error {
	numbers := map[string]uint32{}
	h.at = map[key]uint32{}
	name := whereDir + "/" + wherePrefix + strings.TrimPrefix(path.Base(file.name), historyPrefix)
	err := readLines(workingDir, name, func(line string) error {
		text, at, _ := strings.Cut(line, " ")
		k, err := keyOf(digest.Digest(text))
		if err == nil {
			err = checkPath(at)
		}
		if err != nil {
			return err
		}
		n, known := numbers[at]
		if !known {
			n = uint32(len(h.paths))
			numbers[at] = n
			h.paths = append(h.paths, at)
		}
		h.at[k] = n
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readLines reads the lines of a file that are not empty.
func readLines(in fs.FS, name string, line func(string) error) error {
	f, err := in.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	limited := &io.LimitedReader{R: f, N: maxHistory + 1}
	lines := bufio.NewScanner(limited)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" {
			continue
		}
		if err := line(text); err != nil {
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if limited.N == 0 {
		return fmt.Errorf("%s: %w: more than %d bytes", name, fault.ErrLimit, maxHistory)
	}
	return nil
}

// WriteNext writes the history after an archive into a working directory: what this history has, which may be nil, and
// what the archive has with the repositories ([Writer.Had]). It returns the name of the file, .history/.history-TIME,
// whose lines are sorted. Where blobs are is in a file of its own, bindery/where-TIME, since oc-mirror reads the other
// one. The caller writes the history when the archive is whole, so that an archive holds that of the runs before it.
func (h *History) WriteNext(workingDir string, at time.Time, added map[digest.Digest]string) (string, error) {
	all := map[key]string{}
	if h != nil {
		for _, k := range h.keys {
			all[k] = h.path(k)
		}
	}
	for d, path := range added {
		k, err := keyOf(d)
		if err != nil {
			return "", err
		}
		if all[k] == "" { // a digest keeps the repository that it was first written to
			all[k] = path
		}
	}
	var digests, where bytes.Buffer
	for _, k := range slices.SortedFunc(maps.Keys(all), compareKeys) {
		digests.WriteString(k.digest().String() + "\n")
		if all[k] != "" && where.Len() < maxHistory-len(all[k])-keyLine { // a blob without a place is only searched for longer
			where.WriteString(k.digest().String() + " " + all[k] + "\n")
		}
	}
	if digests.Len() > maxHistory {
		return "", fmt.Errorf("%w: a history of %d blobs has %d bytes (limit %d): carry archives with --against an "+
			"inventory, or remove %s and begin with --all", fault.ErrLimit, len(all), digests.Len(), maxHistory,
			filepath.Join(workingDir, historyDir))
	}
	stamp := at.UTC().Format(timeFormat)
	if runtime.GOOS == "windows" {
		stamp = strings.ReplaceAll(stamp, ":", "-")
	}
	if _, err := writeStamped(workingDir, whereDir, wherePrefix, stamp, where.Bytes()); err != nil {
		return "", err
	}
	return writeStamped(workingDir, historyDir, historyPrefix, stamp, digests.Bytes())
}
