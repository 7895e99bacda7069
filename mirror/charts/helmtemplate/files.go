package helmtemplate

import (
	"encoding/base64"
	"path"
	"strings"

	"github.com/gobwas/glob"
	"helm.sh/helm/v3/pkg/chart"
)

// files are the files of a chart beside its templates. Templates call its methods: they are those of the library.
type files map[string][]byte

func filesOf(list []*chart.File) files {
	f := files{}
	for _, file := range list {
		f[file.Name] = file.Data
	}
	return f
}

// GetBytes returns a file.
func (f files) GetBytes(name string) []byte {
	if data, ok := f[name]; ok {
		return data
	}
	return []byte{}
}

// Get returns a file as text.
func (f files) Get(name string) string { return string(f.GetBytes(name)) }

// Glob returns the files whose names match a pattern.
func (f files) Glob(pattern string) files {
	g, err := glob.Compile(pattern, '/')
	if err != nil {
		g, _ = glob.Compile("**")
	}
	found := files{}
	for name, data := range f {
		if g.Match(name) {
			found[name] = data
		}
	}
	return found
}

// AsConfig returns the files as the data of a ConfigMap.
func (f files) AsConfig() string {
	return f.data(func(data []byte) string { return string(data) })
}

// AsSecrets returns the files as the data of a Secret.
func (f files) AsSecrets() string { return f.data(base64.StdEncoding.EncodeToString) }

func (f files) data(text func([]byte) string) string {
	if f == nil {
		return ""
	}
	m := map[string]string{}
	for name, data := range f {
		m[path.Base(name)] = text(data)
	}
	return toYAML(m)
}

// Lines returns the lines of a file.
func (f files) Lines(name string) []string {
	text := f.Get(name)
	if text == "" {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
