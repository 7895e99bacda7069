package releases

import (
	"fmt"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
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
	channel := ""
	if p.Channel != "" {
		channel = "channel " + fault.Quote(p.Channel)
		if p.To != "" && p.To != p.Channel {
			channel += " to channel " + fault.Quote(p.To)
		}
		if p.Architecture != "" {
			channel += ", "
		}
	}
	return problem.Join(channel+p.Architecture, p.Err.Error())
}

// Unwrap returns the reason, which has the class of the error.
func (p *Problem) Unwrap() error { return p.Err }

// Error has the problems of a choice: at least one for each channel and architecture of which something is missing. Its
// class is that of the problems.
type Error = problem.List[*Problem]

// refusal is an error of the class of input that breaks a rule, without that word in front of its text.
type refusal string

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

func (r refusal) Error() string { return string(r) }

// Unwrap returns [fault.ErrInvalid].
func (r refusal) Unwrap() error { return fault.ErrInvalid }
