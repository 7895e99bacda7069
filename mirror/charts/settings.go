package charts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The places of what charts were rendered with, below a working directory.
const (
	settingsFile = "helm/settings.json"
	valuesDir    = "helm/values"
)

// maxValues is the limit of values in bytes.
const maxValues = 1 << 20

// Settings are what decides, beside a chart, which images it names.
type Settings struct {
	// KubeVersion is the version of Kubernetes, APIVersions are further APIs of the cluster.
	KubeVersion string   `json:"kubeVersion"`
	APIVersions []string `json:"apiVersions,omitempty"`
	// Tests counts the images of tests, too.
	Tests bool `json:"tests,omitempty"`
	// Compat keeps to what oc-mirror does.
	Compat bool `json:"compat,omitempty"`
	// Values are a text in YAML, in File.
	Values []byte `json:"-"`
	File   string `json:"values,omitempty"`
}

// KeptSettings returns what the run that wrote the archive has rendered a chart with, by the digest of the chart; nil if that is
// not known, or if repositories are asked.
func (g *Getter) KeptSettings(chart digest.Digest) (*Settings, error) {
	if g.Client != nil {
		return nil, nil
	}
	g.readSettings.Do(func() { g.kept, g.keptError = storedSettings(g.Stored) })
	s, ok := g.kept[chart]
	if !ok || g.keptError != nil {
		return nil, g.keptError
	}
	if s.File == "" {
		return &s, nil
	}
	if !fs.ValidPath(s.File) || path.Dir(s.File) != valuesDir {
		return nil, fmt.Errorf("%w: %s names the file %s", fault.ErrInvalid, settingsFile, fault.Quote(s.File))
	}
	text, err := readStored(g.Stored, s.File, maxValues)
	if err == nil && valuesFile(text) != s.File {
		err = fmt.Errorf("%w: %s was changed: its digest is another", fault.ErrIntegrity, s.File)
	}
	if err != nil {
		return nil, fmt.Errorf("values of a chart: %w", err)
	}
	s.Values = text
	return &s, nil
}

// KeepSettings keeps for the other side what a chart was rendered with.
func (g *Getter) KeepSettings(chart digest.Digest, s Settings) error {
	if g.Save == nil || g.Client != nil && !g.SaveLocal {
		return nil
	}
	if s.File = ""; len(s.Values) > 0 {
		s.File = valuesFile(s.Values)
		if err := g.Save(s.File, s.Values); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.settings == nil {
		g.settings = map[digest.Digest]Settings{}
	}
	g.settings[chart] = s
	return nil
}

// finishSettings writes what charts were rendered with.
func (g *Getter) finishSettings(own fs.FS) error {
	if len(g.settings) == 0 {
		return nil
	}
	all, err := storedSettings(own)
	if err != nil {
		all = map[digest.Digest]Settings{} // a file that cannot be read is replaced
	}
	for chart, s := range g.settings {
		all[chart] = s
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return g.Save(settingsFile, append(text, '\n'))
}

// storedSettings reads what charts were rendered with. Without it other images than those of the archive could be asked for: a
// file that cannot be read is an error.
func storedSettings(files fs.FS) (map[digest.Digest]Settings, error) {
	out := map[digest.Digest]Settings{}
	text, err := readStored(files, settingsFile, MaxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", fault.ErrInvalid, settingsFile, err)
	}
	if out == nil {
		out = map[digest.Digest]Settings{}
	}
	return out, nil
}

// valuesFile returns where values are kept.
func valuesFile(text []byte) string {
	return path.Join(valuesDir, digest.FromBytes(text).Encoded()+".yaml")
}
