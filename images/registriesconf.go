package images

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/BurntSushi/toml"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/storage/pkg/configfile"

	"github.com/operator-bindery/bindery/internal/userns"
)

// oldConf is a registries.conf in version 1 of its format, which the library refuses. Distributions of some years ago have it.
type oldConf struct {
	path string
	text []byte // in version 2
}

// oldConf reads the registries.conf that counts, and is nil if that is not in version 1.
func (r Registry) oldConf() (*oldConf, error) {
	path, content, err := r.mainConf()
	if err != nil || content == nil {
		return nil, err
	}
	var v1 sysregistriesv2.V1RegistriesConf
	meta, err := toml.Decode(string(content), &v1)
	if err != nil {
		return nil, nil // the library says what is wrong with it
	}
	if !meta.IsDefined("registries", "search") && !meta.IsDefined("registries", "insecure") && !meta.IsDefined("registries", "block") {
		return nil, nil
	}
	converted, err := v1.ConvertToV2()
	if err != nil {
		return nil, fmt.Errorf("registries.conf: %w: %s: %w", ErrInvalid, path, err)
	}
	var all map[string]any
	if _, err := toml.Decode(string(content), &all); err != nil {
		return nil, fmt.Errorf("registries.conf: %w: %s: %w", ErrInvalid, path, err)
	}
	// Whatever is in version 2 beside it stays: mirrors, for one.
	delete(all, "registries")
	if len(converted.UnqualifiedSearchRegistries) > 0 && all["unqualified-search-registries"] == nil {
		all["unqualified-search-registries"] = converted.UnqualifiedSearchRegistries
	}
	tables, _ := all["registry"].([]map[string]any)
	for _, c := range converted.Registries {
		tables = mergeRegistry(tables, c)
	}
	all["registry"] = tables
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(all); err != nil {
		return nil, fmt.Errorf("registries.conf: %s: %w", path, err)
	}
	return &oldConf{path, text.Bytes()}, nil
}

// mergeRegistry adds what version 1 says of a registry to the tables of version 2.
func mergeRegistry(tables []map[string]any, c sysregistriesv2.Registry) []map[string]any {
	var table map[string]any
	for _, t := range tables {
		if prefix, ok := t["prefix"]; ok && prefix == c.Prefix || !ok && t["location"] == c.Prefix {
			table = t
		}
	}
	if table == nil {
		table = map[string]any{"location": c.Location}
		tables = append(tables, table)
	}
	if c.Blocked {
		table["blocked"] = true
	}
	if c.Insecure {
		table["insecure"] = true
	}
	return tables
}

// mainConf reads the registries.conf that the library would read; its content is nil if there is none.
func (r Registry) mainConf() (path string, content []byte, err error) {
	paths := []string{r.RegistriesConf}
	if r.RegistriesConf == "" {
		found, err := configfile.GetSearchPaths(&configfile.File{
			Name: "registries", Extension: "conf", EnvironmentName: "CONTAINERS_REGISTRIES_CONF", UserId: userns.UID(),
		})
		if err != nil {
			return "", nil, nil // as where there is no home directory: the library decides on that
		}
		paths = found.MainFiles
	}
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		// The library reads it whatever it is and however long: a device has no end.
		content, err := readMounted(path)
		if err != nil && r.RegistriesConf != "" {
			return "", nil, fmt.Errorf("registries.conf: %w", err)
		}
		return path, content, nil // one of the system that cannot be read matters when a registry is asked
	}
	return "", nil, nil
}

// writeConf writes the registries.conf that stands in for an old one to the directory, and returns its name.
func (o *oldConf) writeConf(dir string) (string, error) {
	path := filepath.Join(dir, "registries.conf")
	return path, os.WriteFile(path, o.text, 0o600)
}
