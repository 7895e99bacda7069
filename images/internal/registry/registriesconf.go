package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/BurntSushi/toml"
	"go.podman.io/storage/pkg/configfile"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/userns"
)

// oldConf is a registries.conf in version 1 of its format, which older distributions have and the library refuses.
type oldConf struct {
	path string
	text []byte // its content in version 2
}

// oldConf reads the registries.conf in use, and returns nil if it is not in version 1.
func (r Config) oldConf(ctx context.Context) (*oldConf, error) {
	path, content, err := r.mainConf(ctx)
	if err != nil || content == nil {
		return nil, err
	}
	type list struct{ Registries []string }
	var v1 struct {
		Registries struct{ Search, Insecure, Block list }
	}
	meta, err := toml.Decode(string(content), &v1)
	if err != nil {
		return nil, nil // the library reports what is wrong
	}
	old := false
	for _, table := range []string{"search", "insecure", "block"} {
		old = old || meta.IsDefined("registries", table)
	}
	if !old {
		return nil, nil
	}
	var all map[string]any
	if _, err := toml.Decode(string(content), &all); err != nil {
		return nil, fmt.Errorf("registries.conf: %w: %s: %w", fault.ErrInvalid, path, err)
	}
	// Fields of version 2 beside it stay, such as mirrors.
	delete(all, "registries")
	if search := v1.Registries.Search.Registries; len(search) > 0 && all["unqualified-search-registries"] == nil {
		all["unqualified-search-registries"] = search
	}
	tables, _ := all["registry"].([]map[string]any)
	for field, l := range map[string]list{"blocked": v1.Registries.Block, "insecure": v1.Registries.Insecure} {
		for _, location := range l.Registries {
			if strings.Contains(location, "://") || location == "" {
				return nil, fmt.Errorf("registries.conf: %w: %s: %.200q is no registry, as in registry.example.com",
					fault.ErrInvalid, path, location)
			}
			tables = mergeRegistry(tables, strings.TrimRight(location, "/"), field)
		}
	}
	all["registry"] = tables
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(all); err != nil {
		return nil, fmt.Errorf("registries.conf: %s: %w", path, err)
	}
	return &oldConf{path, text.Bytes()}, nil
}

// mergeRegistry sets a field of a registry in the tables of version 2, and adds the registry if it is missing.
func mergeRegistry(tables []map[string]any, location, field string) []map[string]any {
	for _, t := range tables {
		prefix, ok := t["prefix"]
		if !ok {
			prefix = t["location"]
		}
		if prefix == location {
			t[field] = true
			return tables
		}
	}
	return append(tables, map[string]any{"location": location, field: true})
}

// mainConf reads the registries.conf that the library reads. The content is nil if there is none.
func (r Config) mainConf(ctx context.Context) (path string, content []byte, err error) {
	paths := []string{r.RegistriesConf}
	if r.RegistriesConf == "" {
		found, err := configfile.GetSearchPaths(&configfile.File{
			Name: "registries", Extension: "conf", EnvironmentName: "CONTAINERS_REGISTRIES_CONF", UserId: userns.UID(),
		})
		if err != nil {
			return "", nil, nil // such as a missing home directory: the library reports it
		}
		paths = found.MainFiles
	}
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// The library does not limit what it reads: a device has no end.
		content, err := regularfile.ReadNamed(ctx, path, maxConf)
		if err == nil {
			err = checkConf(path, content)
		}
		if err != nil && (r.RegistriesConf != "" || errors.Is(err, fault.ErrLimit)) {
			return "", nil, fmt.Errorf("registries.conf: %w", err)
		}
		return path, content, nil // an unreadable file of the system is reported with the first request
	}
	return "", nil, nil
}

// A registries.conf has a table for each repository that is mirrored, of a few short lines. The parser takes hundreds of bytes
// for a line or an item, before it finds out what is wrong with them.
const (
	maxConf       = 16 << 20
	maxConfLine   = 64 << 10
	maxConfValues = 200_000 // lines with something else than a comment, and items of lists
)

// checkConf refuses what the parser cannot read in little memory.
func checkConf(path string, content []byte) error {
	number, values := 0, 0
	for line := range bytes.Lines(content) {
		if number++; len(line) > maxConfLine {
			return fmt.Errorf("%s:%d: %w: a line of %d bytes, more than %d", path, number, fault.ErrLimit, len(line), maxConfLine)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			values += 1 + bytes.Count(line, []byte(","))
		}
		if values > maxConfValues {
			return fmt.Errorf("%s:%d: %w: more than %d lines and items", path, number, fault.ErrLimit, maxConfValues)
		}
	}
	return nil
}
