package mirror

import (
	"bufio"
	"bytes"
	"maps"
	"slices"
	"sync"
)

// carriedFile has a line for each image that was carried whole, with its attachments: DIGEST DESTINATION KINDS. It
// saves the next run from asking for attachments again. Without it nothing is lost but time.
const carriedFile = ".carried"

// carried is what earlier runs have carried. It is safe for concurrent use.
type carried struct {
	mu        sync.Mutex
	workspace *Workspace
	lines     map[string]bool
	changed   bool
}

func readCarried(w *Workspace) (*carried, error) {
	c := &carried{workspace: w, lines: map[string]bool{}}
	if w == nil {
		return c, nil
	}
	text, err := w.read(carriedFile)
	if err != nil {
		return nil, err
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		c.lines[s.Text()] = true
	}
	return c, nil
}

func (c *carried) has(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[key]
}

func (c *carried) add(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.lines[key] {
		c.lines[key], c.changed = true, true
	}
}

// save writes the file if something was added.
func (c *carried) save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
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
