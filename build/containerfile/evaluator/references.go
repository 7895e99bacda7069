//go:build !nobuildah

package evaluator

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/openshift/imagebuilder/dockerfile/command"

	"github.com/operator-bindery/bindery/internal/platform"
)

// reference is the name of an image in a file and the platform that is needed of it.
type reference struct {
	Name     string
	Platform v1.Platform
}

// References returns the names in FROM and --from in all stages for a platform, with arguments expanded, in the order
// of the file and without duplicates. Stage names are included.
func (f *File) References(args map[string]string, p v1.Platform) ([]reference, error) {
	stages, lines, err := f.stages(args, builtin(p))
	if err != nil {
		return nil, err
	}
	var all []reference
	add := func(r reference) {
		same := func(o reference) bool {
			return o.Name == r.Name && platform.Equal(o.Platform, r.Platform)
		}
		if !slices.ContainsFunc(all, same) {
			all = append(all, r)
		}
	}
	for _, s := range stages {
		name, err := s.Builder.From(s.Node)
		if err != nil {
			return nil, f.refuse(lines[s.Node], command.From, err)
		}
		r := reference{name, p}
		if text := s.Builder.Platform; text != "" {
			if r.Platform, err = parsePlatform(text); err != nil {
				return nil, f.refuse(lines[s.Node], command.From, fmt.Errorf("--platform: %w", err))
			}
		}
		add(r)
		for _, child := range s.Node.Children {
			for _, flag := range child.Flags {
				if from, ok := strings.CutPrefix(flag, "--from="); ok {
					add(reference{from, p})
				}
			}
		}
	}
	return all, nil
}
