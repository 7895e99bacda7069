package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/shape"
	"github.com/operator-bindery/bindery/internal/versions"
)

// maxSelection is the maximum size in bytes of a selection file.
const maxSelection = 4 << 20

// SelectionFile is the format of --selection: the part of each package to keep. A version selects everything from it up
// to the other one; versions is a range that replaces the two.
type SelectionFile struct {
	// Schema is ignored: editors read it.
	Schema   string `json:"$schema,omitempty"`
	Packages []struct {
		Name string `json:"name"`
		versionSelection
		// Channels to keep; all of them by default.
		Channels []struct {
			Name string `json:"name"`
			versionSelection
		} `json:"channels,omitempty"`
		// Default channel of what is kept.
		DefaultChannel string `json:"defaultChannel,omitempty"`
		// Keep only the heads of channels.
		HeadsOnly bool `json:"headsOnly,omitempty"`
	} `json:"packages"`
}

var selectionShape = shape.Strict[SelectionFile]()

type versionSelection struct {
	// Range of versions, such as >=1.0.0 <2.0.0, in place of minVersion and maxVersion.
	Versions string `json:"versions,omitempty"`
	// Lowest version.
	MinVersion string `json:"minVersion,omitempty"`
	// Highest version.
	MaxVersion string `json:"maxVersion,omitempty"`
}

// text returns the selection as a version range.
func (v versionSelection) text() (string, error) {
	var bounds []string
	for _, bound := range []struct{ field, operator, version string }{{"minVersion", ">=", v.MinVersion},
		{"maxVersion", "<=", v.MaxVersion}} {
		if bound.version == "" {
			continue
		}
		// A range is not allowed as a bound: it would select something else.
		if _, err := versions.Parse(bound.version); err != nil {
			return "", fmt.Errorf("%s %q is no version such as 1.2.0: %w", bound.field, bound.version, err)
		}
		bounds = append(bounds, bound.operator+bound.version)
	}
	if v.Versions == "" {
		return strings.Join(bounds, " "), nil
	}
	if len(bounds) > 0 {
		return "", errors.New("versions cannot be combined with minVersion or maxVersion")
	}
	return v.Versions, nil
}

// ReadSelections reads a selection file. All its problems are reported together.
func ReadSelections(p *option.Session, ctx context.Context, file string) (_ []edit.Selection, err error) {
	in, _, err := p.OpenInput(ctx, file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	wrong := func(format string, args ...any) error {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: file,
			Err: fmt.Errorf("--selection %s: "+format, append([]any{file}, args...)...)}
	}
	doc, err := shape.Read(ctxio.Reader{Ctx: ctx, R: in}, selectionShape, shape.Options{File: file,
		Limits: canon.Limits{MaxDocument: maxSelection}, Warn: func(line int, text string) {
			p.WarnAt(declcfg.Position{File: file, Line: line}, text)
		}})
	var parsed SelectionFile
	if err == nil {
		err = doc.Decode(&parsed)
	}
	if err != nil {
		return nil, &cmdline.Error{Class: cmdline.Classify(err), Object: file, Err: fmt.Errorf("--selection: %w", err)}
	}
	if len(parsed.Packages) == 0 {
		return nil, wrong("no packages: expected a list \"packages\" of objects with a \"name\"")
	}
	var out []edit.Selection
	var errs []error
	for i, pkg := range parsed.Packages {
		s := edit.Selection{Package: pkg.Name, DefaultChannel: pkg.DefaultChannel, HeadsOnly: pkg.HeadsOnly}
		if pkg.Name == "" {
			errs = append(errs, wrong("packages[%d] has no name", i))
		}
		if s.Versions, err = pkg.text(); err != nil {
			errs = append(errs, wrong("packages[%d] (%s): %w", i, pkg.Name, err))
		}
		for j, channel := range pkg.Channels {
			versions, err := channel.text()
			if err != nil {
				errs = append(errs, wrong("packages[%d].channels[%d] (%s): %w", i, j, channel.Name, err))
			}
			if channel.Name == "" {
				errs = append(errs, wrong("packages[%d].channels[%d] has no name", i, j))
			}
			s.Channels = append(s.Channels, edit.ChannelSelection{Name: channel.Name, Versions: versions})
		}
		out = append(out, s)
	}
	return out, errors.Join(errs...)
}
