package declcfg

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The rules that problems are about.
const (
	RuleSyntax         = "syntax"          // a file that cannot be parsed
	RuleLimit          = "limit"           // a limit is exceeded
	RuleObjects        = "objects"         // olm.bundle.object values without a manifest
	RulePackageName    = "package-name"    // a package without a name, or with a name that is not a DNS label
	RuleChannelName    = "channel-name"    // a channel without a name
	RuleUnknownPackage = "unknown-package" // a blob of a package that is not in the catalog
	RuleDuplicate      = "duplicate"       // a repeated name
	RuleProperty       = "property"        // a property whose value does not match its type
	RuleVersion        = "version"         // olm.package properties, versions and releases
	RuleImage          = "image"           // image references
	RuleBundleChannel  = "bundle-channel"  // a bundle in no channel
	RuleEntryBundle    = "entry-bundle"    // a channel entry without a bundle
	RuleDefaultChannel = "default-channel" // a default channel that is unset or unknown
	RuleEmpty          = "empty"           // a package without channels, a channel without bundles
	RuleGraph          = "graph"           // heads, cycles, stranded bundles
	RuleNoImage        = "no-image"        // a bundle with its manifests and no image; a note, not an error
	RuleReplaces       = "replaces"        // a replaced bundle without an entry in the channel; a note, not an error
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
	stageBlobs              // one blob, or a name that connects two
	stageGraph              // the upgrade graph
)

// Problem is one broken rule. Its message contains opm's stable text for it, unless that names types of Go.
type Problem struct {
	Position Position
	Package  string
	Channel  string
	Bundle   string
	Rule     string // one of the Rule constants
	Message  string

	stage  stage
	detail string // additional information after the message
	opm    string // opm's message, if it is another one
	path   []any  // position in the blob: field names and indices
}

// Text returns the message with additional information.
func (p *Problem) Text() string {
	if p.detail == "" {
		return p.Message
	}
	return p.Message + " (" + p.detail + ")"
}

// OpmText returns opm's message. It is the same one, unless opm names types of Go.
func (p *Problem) OpmText() string { return cmp.Or(p.opm, p.Text()) }

// Path returns the names of fields and the indices of lists that lead to the value in its blob; nil if it is the blob.
func (p *Problem) Path() []any { return p.path }

// MarshalJSON formats the problem as an object with rule, message, package, channel, bundle, file and line, without
// empty ones.
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

// ValidationError has the problems of a catalog in the order in which they were found: files by path, then blobs in the
// order of the files, then the graph by package and channel. It contains the first hundred of each rule.
type ValidationError struct {
	Problems []Problem
	// More is the number of other problems by rule.
	More map[string]int
}

// Error returns the problems as a tree of packages, channels and bundles, one problem per line, with file and line.
func (e *ValidationError) Error() string { return e.tree(e.Problems, true) }

// Is reports whether target is [ErrLimit] and one of the problems is an exceeded limit.
func (e *ValidationError) Is(target error) bool {
	return target == ErrLimit && e.ErrorClass() == fault.Limit
}

// ErrorClass returns the class of limits if one is exceeded, else that of input.
func (e *ValidationError) ErrorClass() fault.Class {
	if slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Rule == RuleLimit }) {
		return fault.Limit
	}
	return fault.Input
}

// OpmMessage returns opm's message for the catalog: it has one problem only or, when the graph is checked, those of the
// graph.
func (e *ValidationError) OpmMessage() string {
	for i := range e.Problems {
		p := &e.Problems[i]
		if p.stage == stageGraph {
			continue
		}
		// opm checks the entries of the last channel of a package only.
		if p.Rule == RuleEntryBundle {
			for j := i + 1; j < len(e.Problems); j++ {
				if q := &e.Problems[j]; q.Rule == RuleEntryBundle && q.Package == p.Package {
					p = q
				}
			}
		}
		return cmp.Or(p.opm, p.Message)
	}
	return e.tree(e.Problems, false)
}

// AnswerMessage is like [ValidationError.OpmMessage] in words that name no types of Go.
func (e *ValidationError) AnswerMessage() string {
	own := &ValidationError{slices.Clone(e.Problems), e.More}
	for i := range own.Problems {
		own.Problems[i].opm = ""
	}
	return own.OpmMessage()
}

// node is a line of the tree with its children.
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
		// A text of several lines is indented below its branch.
		text := strings.ReplaceAll(c.text, "\n", "\n"+indent+below)
		b.WriteString("\n" + indent + branch + text)
		if len(c.children) > 0 {
			b.WriteString(":")
			c.write(b, indent+below)
		}
	}
}
