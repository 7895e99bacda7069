package declcfg

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The rules that a problem can be about.
const (
	RuleSyntax         = "syntax"          // a file that cannot be read as blobs
	RuleLimit          = "limit"           // more than a limit of this package allows
	RuleObjects        = "objects"         // olm.bundle.object values that hold no manifest
	RulePackageName    = "package-name"    // a package without a name, or one that is no DNS label
	RuleChannelName    = "channel-name"    // a channel without a name
	RuleUnknownPackage = "unknown-package" // a blob of a package that is not in the catalog
	RuleDuplicate      = "duplicate"       // a name that is there twice
	RuleProperty       = "property"        // a property whose value does not fit its type
	RuleVersion        = "version"         // olm.package properties, versions and releases
	RuleImage          = "image"           // image references
	RuleBundleChannel  = "bundle-channel"  // a bundle in no channel
	RuleEntryBundle    = "entry-bundle"    // a channel entry without a bundle
	RuleDefaultChannel = "default-channel" // a default channel that is unset or unknown
	RuleEmpty          = "empty"           // a package without channels, a channel without bundles
	RuleGraph          = "graph"           // heads, cycles, stranded bundles
	RuleReplaces       = "replaces"        // a replaced bundle that the channel has no entry for; a note, not an error
	RuleSkipRange      = "skip-range"      // a skipRange that cannot be parsed
	RuleDeprecation    = "deprecation"     // olm.deprecations entries
)

// The classes of errors of this package, by errors.Is.
var (
	// ErrLimit is a [ValidationError] with a problem about something that is larger, deeper or longer than a limit
	// allows.
	ErrLimit = fault.ErrLimit
	// ErrIrregular is returned by [NewIndex] if a document cannot be read without what stands before it in its file.
	// [Load] reads such catalogs.
	ErrIrregular = errors.New("a document begins with a separator")
)

type stage int

const (
	stageLoad  stage = iota // reading a file
	stageBlobs              // one blob, or a name that joins two
	stageGraph              // the upgrade graph
)

// Problem is one broken rule. Its message holds the stable text that opm gives for it.
type Problem struct {
	Position Position
	Package  string
	Channel  string
	Bundle   string
	Rule     string // one of the Rule constants
	Message  string

	stage  stage
	detail string // what more there is to say, after the message
	path   []any  // where in the blob: field names and indices
}

// Text is the message with what more there is to say.
func (p *Problem) Text() string {
	if p.detail == "" {
		return p.Message
	}
	return p.Message + " (" + p.detail + ")"
}

// MarshalJSON writes the problem as an object of rule, message, package, channel, bundle, file and line; what does not
// apply is left out.
func (p Problem) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Rule    string `json:"rule"`
		Message string `json:"message"`
		Package string `json:"package,omitempty"`
		Channel string `json:"channel,omitempty"`
		Bundle  string `json:"bundle,omitempty"`
		Position
	}{p.Rule, p.Text(), fault.Short(p.Package), fault.Short(p.Channel), fault.Short(p.Bundle), p.Position})
}

// ValidationError is the problems of a catalog, in the order in which they were found: files by path, then blobs in
// the order of the files, then the graph by package and channel. Of each rule it holds the first [MaxProblems].
type ValidationError struct {
	Problems []Problem
	// More is how many other problems there are, by rule.
	More map[string]int
}

// Error returns the problems as a tree of packages, channels and bundles, one problem a line, with file and line.
func (e *ValidationError) Error() string { return e.tree(e.Problems, true) }

// Is reports whether target is [ErrLimit] and a limit is among the problems.
func (e *ValidationError) Is(target error) bool {
	return target == ErrLimit && e.ErrorClass() == fault.Limit
}

// ErrorClass is that of a limit if one is among the problems, else of input.
func (e *ValidationError) ErrorClass() fault.Class {
	if slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Rule == RuleLimit }) {
		return fault.Limit
	}
	return fault.Input
}

// OpmMessage returns the message that opm gives for the catalog: it knows one problem only, until the graph is
// checked, and then those of the graph.
func (e *ValidationError) OpmMessage() string {
	for i := range e.Problems {
		p := &e.Problems[i]
		if p.stage == stageGraph {
			continue
		}
		// opm compares the entries of the channel that it saw last in a package, and no others.
		if p.Rule == RuleEntryBundle {
			for j := i + 1; j < len(e.Problems); j++ {
				if q := &e.Problems[j]; q.Rule == RuleEntryBundle && q.Package == p.Package {
					p = q
				}
			}
		}
		return p.Message
	}
	return e.tree(e.Problems, false)
}

// node is a line of the tree with what stands below it.
type node struct {
	text     string
	children []*node
	byText   map[string]*node
}

func (n *node) child(text string) *node {
	if c := n.byText[text]; c != nil {
		return c
	}
	c := &node{text: text}
	if n.byText == nil {
		n.byText = map[string]*node{}
	}
	n.byText[text] = c
	n.children = append(n.children, c)
	return c
}

func (e *ValidationError) tree(problems []Problem, positions bool) string {
	root := &node{text: "invalid index"}
	for i := range problems {
		p := &problems[i]
		at := root
		if p.stage == stageGraph {
			at = at.child("invalid package " + fault.Quote(p.Package))
			if p.Channel != "" {
				at = at.child("invalid channel " + fault.Quote(p.Channel))
			}
			if p.Bundle != "" {
				at = at.child("invalid bundle " + fault.Quote(p.Bundle))
			}
		}
		text := p.Message
		if positions {
			text = p.Text()
			if pos := p.Position.String(); pos != "" {
				text += " [" + pos + "]"
			}
		}
		at.children = append(at.children, &node{text: text})
	}
	for _, line := range e.omittedLines() {
		root.children = append(root.children, &node{text: line})
	}
	if positions && len(problems) == 1 && len(e.More) == 0 && problems[0].stage != stageGraph {
		return root.children[0].text
	}
	var b strings.Builder
	b.WriteString(root.text + ":")
	root.write(&b, "")
	return b.String()
}

func (n *node) write(b *strings.Builder, indent string) {
	for i, c := range n.children {
		branch, below := "├── ", "│   "
		if i == len(n.children)-1 {
			branch, below = "└── ", "    "
		}
		// A text of several lines stays under its branch.
		text := strings.ReplaceAll(c.text, "\n", "\n"+indent+below)
		b.WriteString("\n" + indent + branch + text)
		if len(c.children) > 0 {
			b.WriteString(":")
			c.write(b, indent+below)
		}
	}
}
