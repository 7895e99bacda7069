//go:build !nobuildah

package evaluator

import (
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/openshift/imagebuilder/dockerfile/command"
	"github.com/openshift/imagebuilder/dockerfile/parser"
)

// record adds an instruction to the history, formatted as other builders do but without digests of copied files.
func (s *stage) record(n *parser.Node) {
	created := s.e.o.created()
	s.history = append(s.history, v1.History{Created: &created, CreatedBy: createdBy(n), EmptyLayer: true})
}

func createdBy(n *parser.Node) string {
	switch strings.ToLower(n.Value) {
	case command.Run:
		return "/bin/sh -c " + strings.TrimSpace(n.Original[min(4, len(n.Original)):])
	case command.Add, command.Copy:
		var words []string
		for w := n.Next; w != nil; w = w.Next {
			words = append(words, w.Value)
		}
		if last := len(words) - 1; last > 0 {
			return "/bin/sh -c #(nop) " + strings.ToUpper(n.Value) + " " + strings.Join(words[:last],
				" ") + " in " + words[last]
		}
	}
	return "/bin/sh -c #(nop) " + n.Original
}

// markLayer marks the last history entry as that of the layer: all instructions of a stage share one layer.
func (s *stage) markLayer() { s.history[len(s.history)-1].EmptyLayer = false }
