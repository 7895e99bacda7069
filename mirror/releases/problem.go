package releases

import (
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Problem is why something of a channel could not be chosen for an architecture. Fields that do not apply are empty.
type Problem struct {
	// Channel is where a path starts if To, where it ends, is not empty.
	Channel, To, Architecture string
	// Err is the reason, with what to do in parentheses.
	Err error
}

// Error returns the reason with what it is about.
func (p *Problem) Error() string {
	var about []string
	if p.Channel != "" {
		text := "channel " + fault.Quote(p.Channel)
		if p.To != "" && p.To != p.Channel {
			text += " to channel " + fault.Quote(p.To)
		}
		about = append(about, text)
	}
	if p.Architecture != "" {
		about = append(about, p.Architecture)
	}
	if len(about) == 0 {
		return p.Err.Error()
	}
	return strings.Join(about, ", ") + ": " + p.Err.Error()
}

// Unwrap returns the reason, which has the class of the error.
func (p *Problem) Unwrap() error { return p.Err }

// Error has the problems of a choice: at least one for each channel and architecture of which something is missing. Its
// class is that of the problems.
type Error struct{ Problems []*Problem }

// Error returns one problem per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems.
func (e *Error) Unwrap() []error {
	all := make([]error, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = p
	}
	return all
}

// refusal is an error of the class of input that breaks a rule, without that word in front of its text.
type refusal string

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

func (r refusal) Error() string { return string(r) }

// Unwrap returns [fault.ErrInvalid].
func (r refusal) Unwrap() error { return fault.ErrInvalid }
