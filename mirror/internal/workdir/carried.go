package workdir

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

// CarriedFile has a line for each image that was copied whole, with its attachments: DIGEST DESTINATION KINDS. It saves
// the next run from asking for attachments again. Without it nothing is lost but time.
const CarriedFile = ".carried"

// Carried are the images that earlier runs have copied whole. It is safe for concurrent use.
type Carried struct {
	mu        sync.Mutex
	workspace Dir
	lines     map[string]bool
	places    map[string]bool // of the lines that were read
	changed   bool
	saved     time.Time
}

// saveEvery is after which time lines are saved while images are copied, for the run after one that is killed.
const saveEvery = 2 * time.Second

// ReadCarried reads the list of a workspace; without a workspace it is empty, and is not saved.
func ReadCarried(w Dir) (*Carried, error) {
	c := &Carried{workspace: w, lines: map[string]bool{}, places: map[string]bool{}, saved: time.Now()}
	if w == "" {
		return c, nil
	}
	text, err := w.Read(CarriedFile)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if d, _, _ := strings.Cut(line, " "); verify.Digest(digest.Digest(d)) != nil {
			continue // it is no file of a run
		}
		c.lines[line], c.places[placeOf(line)] = true, true
	}
	return c, nil
}

// Has tells whether a line is in the list.
func (c *Carried) Has(line string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[line]
}

// HasPlace tells whether the list has a line that differs from this one at most in its digest, from before this run.
func (c *Carried) HasPlace(line string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places[placeOf(line)]
}

// placeOf is a line without the digest.
func placeOf(line string) string {
	_, place, _ := strings.Cut(line, " ")
	return place
}

// Add adds a line.
func (c *Carried) Add(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lines[line] {
		c.lines[line], c.changed = true, true
	}
	if time.Since(c.saved) > saveEvery {
		_ = c.write() // the last save returns the error
	}
}

// Save writes the file if something was added.
func (c *Carried) Save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.write()
}

// write is like Save, with the lock held.
func (c *Carried) write() error {
	c.saved = time.Now()
	if !c.changed || c.workspace == "" {
		return nil
	}
	var b bytes.Buffer
	for _, line := range slices.Sorted(maps.Keys(c.lines)) {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	_, err := c.workspace.Write(b.Bytes(), CarriedFile)
	c.changed = err != nil
	return err
}
