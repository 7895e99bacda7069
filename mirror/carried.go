package mirror

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/verify"
)

// carriedFile has a line for each image that was carried whole, with its attachments: DIGEST DESTINATION KINDS. It
// saves the next run from asking for attachments again. Without it nothing is lost but time.
const carriedFile = ".carried"

// carried is what earlier runs have carried. It is safe for concurrent use.
type carried struct {
	mu        sync.Mutex
	workspace *Workspace
	lines     map[string]bool
	places    map[string]bool // of the lines that were read
	changed   bool
	saved     time.Time
}

// saveEvery is after which time lines are saved while images are copied, for the run after one that is killed.
const saveEvery = 2 * time.Second

func readCarried(w *Workspace) (*carried, error) {
	c := &carried{workspace: w, lines: map[string]bool{}, places: map[string]bool{}, saved: time.Now()}
	if w == nil {
		return c, nil
	}
	text, err := w.read(carriedFile)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if d, _, _ := strings.Cut(line, " "); verify.Digest(digest.Digest(d)) != nil {
			continue // no run has written it
		}
		c.lines[line], c.places[placeOf(line)] = true, true
	}
	return c, nil
}

func (c *carried) has(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[key]
}

// hasPlace tells whether an image with any digest was carried to the place of a key.
func (c *carried) hasPlace(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places[placeOf(key)]
}

// placeOf is a key without the digest.
func placeOf(key string) string {
	_, place, _ := strings.Cut(key, " ")
	return place
}

func (c *carried) add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lines[key] {
		c.lines[key], c.changed = true, true
	}
	if time.Since(c.saved) > saveEvery {
		_ = c.write() // the last save returns the error
	}
}

// save writes the file if something was added.
func (c *carried) save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write()
}

// write is save with the lock held.
func (c *carried) write() error {
	c.saved = time.Now()
	if !c.changed || c.workspace == nil {
		return nil
	}
	var b bytes.Buffer
	for _, line := range slices.Sorted(maps.Keys(c.lines)) {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	_, err := c.workspace.Write(b.Bytes(), carriedFile)
	c.changed = err != nil
	return err
}
