// Package registriesd reads the files of registries.d (containers-registries.d(5)): where the signatures of images in
// registries are, and whether those that are attached to images are looked for.
package registriesd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.podman.io/image/v5/docker/policyconfiguration"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/storage/pkg/configfile"
	"go.yaml.in/yaml/v3"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/userns"
)

// Config is what the files of registries.d say together. It is not changed after [Load], and safe for concurrent use.
type Config struct {
	byDefault *namespace
	scopes    map[string]namespace
}

// Error is the error of files that cannot be read or understood.
type Error struct{ Err error }

func (e *Error) Error() string { return "registries.d: " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// namespace is the configuration of one scope. Fields for writing signatures are not read, and others are ignored as
// the containers library ignores them.
type namespace struct {
	Lookaside   string `yaml:"lookaside"`
	SigStore    string `yaml:"sigstore"` // the old name of lookaside
	Attachments *bool  `yaml:"use-sigstore-attachments"`

	file string
}

// maxFiles bounds the number of files, and maxFile the size of each in bytes.
const (
	maxFiles = 1000
	maxFile  = 4 << 20
)

// Load reads the *.yaml files of a directory, or with an empty name those of the containers tools:
// $XDG_CONFIG_HOME/containers/registries.d, /etc/containers/registries.d and /usr/share/containers/registries.d with
// their variants for users, where a file hides files of the same name in later places. A directory that is named must
// exist. Errors are an [*Error] and name the file.
func Load(dir string) (*Config, error) {
	var files []string
	var err error
	if dir != "" {
		files, err = list([]string{dir}, false)
	} else {
		var found configfile.SearchPaths
		found, err = configfile.GetSearchPaths(&configfile.File{
			Name: "registries", Extension: "yaml", DoNotLoadMainFiles: true, DoNotUseExtensionForConfigName: true,
			UserId: userns.UID(),
		})
		if err != nil {
			// Without a home directory there are no places: signatures are not looked for then, and images that need
			// some are refused.
			return &Config{}, nil
		}
		files, err = list(found.DropInDirectories, true)
	}
	if err != nil {
		return nil, &Error{err}
	}
	c := &Config{scopes: map[string]namespace{}}
	for _, name := range files {
		if err := c.add(name); err != nil {
			return nil, &Error{err}
		}
	}
	return c, nil
}

// list returns the files of directories, sorted by their base names. Of files with one name, that in the first
// directory counts.
func list(dirs []string, optional bool) ([]string, error) {
	byName := map[string]string{}
	for _, dir := range slices.Backward(dirs) {
		entries, err := os.ReadDir(dir)
		if optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.IsDir() && strings.HasSuffix(e.Name(), ".yaml") {
				byName[e.Name()] = filepath.Join(dir, e.Name())
			}
		}
		if len(byName) > maxFiles {
			return nil, fmt.Errorf("%s: %w: more than %d files", dir, fault.ErrLimit, maxFiles)
		}
	}
	var files []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		files = append(files, byName[name])
	}
	return files, nil
}

// add reads a file. A scope that another file has is an error.
func (c *Config) add(name string) error {
	path, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	text, err := regularfile.Read(path, maxFile)
	if err != nil {
		return err
	}
	var file struct {
		Default *namespace           `yaml:"default-docker"`
		Docker  map[string]namespace `yaml:"docker"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("%w: %s: %w", fault.ErrInvalid, name, err)
	}
	if file.Default != nil {
		if c.byDefault != nil {
			return fmt.Errorf("%w: default-docker is both in %s and in %s", fault.ErrInvalid, c.byDefault.file, name)
		}
		file.Default.file = name
		c.byDefault = file.Default
	}
	for _, scope := range slices.Sorted(maps.Keys(file.Docker)) {
		if other, ok := c.scopes[scope]; ok {
			return fmt.Errorf("%w: the scope %.200q of docker is both in %s and in %s", fault.ErrInvalid, scope,
				other.file, name)
		}
		n := file.Docker[scope]
		n.file = name
		c.scopes[scope] = n
	}
	return nil
}

// namespacesOf returns the namespaces of an image, the most specific one first. The name has a tag or a digest.
func (c *Config) namespacesOf(image reference.Named) []namespace {
	var names []string
	if identity, err := policyconfiguration.DockerReferenceIdentity(image); err == nil {
		names = append(names, identity)
	}
	var found []namespace
	for _, name := range append(names, policyconfiguration.DockerReferenceNamespaces(image)...) {
		if n, ok := c.scopes[name]; ok {
			found = append(found, n)
		}
	}
	if c.byDefault != nil {
		found = append(found, *c.byDefault)
	}
	return found
}

// Attachments tells whether signatures that are attached to an image, under the tag sha256-HEX.sig, are looked for. By
// default they are not. file is the file that says so; it is empty if none does.
func (c *Config) Attachments(image reference.Named) (use bool, file string) {
	for _, n := range c.namespacesOf(image) {
		if n.Attachments != nil {
			return *n.Attachments, n.file
		}
	}
	return false, ""
}

// Lookaside returns the URL below which the signatures of an image are, without the path of the repository; empty if no
// file names one.
func (c *Config) Lookaside(image reference.Named) (*url.URL, error) {
	for _, n := range c.namespacesOf(image) {
		text := cmp.Or(n.Lookaside, n.SigStore)
		if text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil {
			// The error of url has the text, which may have a password.
			return nil, &Error{fmt.Errorf("%w: %s: the lookaside of %s is no URL", fault.ErrInvalid, n.file,
				image.Name())}
		}
		if u.Scheme != "file" && u.Scheme != "http" && u.Scheme != "https" {
			return nil, &Error{fmt.Errorf("%w: %s: the lookaside of %s is a URL of %.20q: want file, http or https",
				fault.ErrInvalid, n.file, image.Name(), u.Scheme)}
		}
		return u, nil
	}
	return nil, nil
}
