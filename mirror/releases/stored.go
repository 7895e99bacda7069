package releases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ErrNotStored is wrapped by errors about a graph that is not among those that were stored.
var ErrNotStored = fault.New(fault.Input, "not in")

// Stored reads the graphs that a run has stored as ARCH-CHANNEL.json, whatever the type of their channels. Place is what
// messages call Files, "this archive" if it is empty.
type Stored struct {
	Files fs.FS
	Place string
	// Save, unless nil, gets the text of each graph as it is stored; its error is that of the graph.
	Save func(architecture, channel string, text []byte) error
}

// Graph implements [Graphs]. A graph that is not there is an error that wraps [ErrNotStored] and names what is.
func (s Stored) Graph(_ context.Context, of Query) (*Graph, error) {
	g, text, err := readGraph(s.Files, of, cmp.Or(s.Place, "this archive"))
	if err == nil && s.Save != nil {
		err = s.Save(of.Architecture, of.Channel, text)
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// readGraph reads a graph and returns its text too. place is what the files are in.
func readGraph(files fs.FS, of Query, place string) (*Graph, []byte, error) {
	name := FileName(of.Architecture, of.Channel)
	info, err := fs.Stat(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w %s (%s)", ErrNotStored, place, describeStored(files, of))
	}
	if err == nil && !info.Mode().IsRegular() {
		err = refuse("%s is not a regular file", name)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxGraph+1))
	if err != nil {
		return nil, nil, err
	}
	g, err := ParseGraph(text)
	if err != nil {
		err = fmt.Errorf("%s in %s: %w", name, place, err)
	}
	return g, text, err
}

// describeStored names the channels of which there are graphs for the architecture of a query, or what else there is.
func describeStored(files fs.FS, of Query) string {
	found, _ := fs.Glob(files, "*.json") // the pattern is valid
	var channels []string
	for _, name := range found {
		if channel, ok := strings.CutPrefix(name, of.Architecture+"-"); ok {
			channels = append(channels, strings.TrimSuffix(channel, ".json"))
		}
	}
	switch {
	case len(channels) > 0:
		return "which has " + list(channels) + " for " + of.Architecture
	case len(found) > 0:
		return "which has nothing for " + of.Architecture + ", but " + list(found)
	}
	return "which has no graphs of releases"
}

// maxListed is how many names a message has.
const maxListed = 10

// list joins names for a message.
func list(names []string) string {
	quoted := make([]string, min(len(names), maxListed))
	for i := range quoted {
		quoted[i] = fault.Quote(names[i])
	}
	text := strings.Join(quoted, ", ")
	if more := len(names) - len(quoted); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
