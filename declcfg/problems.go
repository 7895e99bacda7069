package declcfg

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

// problemList collects the first [problem.Most] problems of each rule. The others are counted and passed to omitted unless that is
// nil.
type problemList struct {
	kept    []Problem
	counts  map[string]int // by rule
	omitted func(Problem)
	ignored func(*Problem) bool // unless nil, says which problems are not added
}

// bounded is text that must not be shortened again.
type bounded string

// report adds a problem with a message, in which quoted input is shortened.
func (l *problemList) report(p Problem, format string, args ...any) {
	if l.ignored != nil && l.ignored(&p) {
		return
	}
	if l.counts[p.Rule] >= problem.Most && l.omitted == nil {
		l.counts[p.Rule]++
		return
	}
	for i := range args {
		switch arg := args[i].(type) {
		case string:
			args[i] = fault.Short(arg)
		case error:
			args[i] = fault.Clip(arg.Error(), maxMessage)
		}
	}
	p.Message = fmt.Sprintf(format, args...)
	l.add(p)
}

func (l *problemList) add(p Problem) {
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[p.Rule]++
	switch {
	case l.counts[p.Rule] <= problem.Most:
		l.kept = append(l.kept, p)
	case l.omitted != nil:
		l.omitted(p)
	}
}

func (l *problemList) join(e *ValidationError) {
	for _, p := range e.Problems {
		l.add(p)
	}
	for rule, n := range e.More {
		l.counts[rule] += n
	}
}

// err returns the *[ValidationError] of the problems; nil if there are none.
func (l *problemList) err() error {
	if len(l.kept) == 0 {
		return nil
	}
	e := &ValidationError{Problems: l.kept}
	for rule, n := range l.counts {
		if n > problem.Most {
			if e.More == nil {
				e.More = map[string]int{}
			}
			e.More[rule] = n - problem.Most
		}
	}
	return e
}

// ProblemsOf returns one error with the problems of all errors that an error wraps, nil if there are none.
func ProblemsOf(err error) *ValidationError {
	var l problemList
	l.joinAll([]error{err})
	var all *ValidationError
	_ = errors.As(l.err(), &all)
	return all
}

func (l *problemList) joinAll(errs []error) {
	for _, err := range errs {
		switch e := err.(type) {
		case *ValidationError:
			l.join(e)
		case interface{ Unwrap() []error }:
			l.joinAll(e.Unwrap())
		case interface{ Unwrap() error }:
			l.joinAll([]error{e.Unwrap()})
		}
	}
}

// omittedLines describes how many problems an error does not contain.
func (e *ValidationError) omittedLines() (lines []string) {
	for _, rule := range slices.Sorted(maps.Keys(e.More)) {
		lines = append(lines, problem.Others(e.More[rule])+fmt.Sprintf(" of the kind %q", rule))
	}
	return lines
}
