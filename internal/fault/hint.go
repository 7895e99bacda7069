package fault

// Advisor is an error that says what to do about it, without flags of a command; empty if there is nothing to say.
type Advisor interface {
	error
	Hint() string
}

// advised is an error with a hint.
type advised struct {
	error
	hint string
}

func (e *advised) Unwrap() error { return e.error }
func (e *advised) Hint() string  { return e.hint }

// Advise returns an error with the text and the class of another one, that has a hint. Each call returns a distinct error.
func Advise(err error, hint string) error { return &advised{err, hint} }

// AdvisorOf returns the first error in the tree of an error that has a hint: the outermost one, of several that are joined
// the first. It is nil if none has one.
func AdvisorOf(err error) Advisor {
	if a, ok := err.(Advisor); ok && a.Hint() != "" {
		return a
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return AdvisorOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if a := AdvisorOf(err); a != nil {
				return a
			}
		}
	}
	return nil
}
