package program

import (
	"errors"
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
)

// WarnEvent logs each failed attempt, and a warning once, as several steps of a command can cause the same one.
func (p *Program) WarnEvent(e store.Event) {
	switch e.Kind {
	case store.EventWarning:
		text := e.Err.Error()
		if e.Destination != "" {
			text = e.Destination + ": " + text
		}
		p.WarnOnce(text)
	case store.EventRetry:
		p.Log.Warn(fmt.Sprintf("%s: attempt %d failed, retrying: %v", e.Destination, e.Attempt, e.Err))
	}
}

// LogEvent logs what was done with a blob, and what [WarnEvent] does.
func (p *Program) LogEvent(e store.Event) {
	switch e.Kind {
	case store.EventBlobDone:
		p.Log.Debug("wrote blob", "digest", e.Blob, "bytes", e.Size, "to", e.Destination)
	case store.EventBlobReused:
		p.Log.Debug("blob exists already", "digest", e.Blob, "bytes", e.Size, "in", e.Destination)
	case store.EventBlobMounted:
		p.Log.Debug("blob is mounted from another repository", "digest", e.Blob, "bytes", e.Size, "in", e.Destination)
	default:
		p.WarnEvent(e)
	}
}

// WarnOnce logs a warning unless it was logged before.
func (p *Program) WarnOnce(text string) {
	if _, before := p.warnedOnce.LoadOrStore(text, true); !before {
		p.Log.Warn(text)
	}
}

// MaxWarnings limits the warnings about the input: each line of a file could cause one.
const MaxWarnings = 1000

// WarnAt logs a loader's warning about accepted input.
func (p *Program) WarnAt(pos declcfg.Position, text string) {
	if p.Warned.Add(1) > MaxWarnings {
		return
	}
	if where := pos.String(); where != "" {
		text = where + ": " + text
	}
	p.Log.Warn(text)
}

// OpmMessage replaces the tree of all problems by opm's message if the program was started as opm.
func (p *Program) OpmMessage(err error) error {
	if !p.Opm {
		return err
	}
	var name *render.NameError
	var reference *render.ReferenceError
	problems := declcfg.ProblemsOf(err)
	switch {
	case problems != nil && errors.As(err, &reference):
		return &render.ReferenceError{Reference: reference.Reference, Err: errors.New(problems.OpmMessage())}
	case problems != nil:
		return errors.New(problems.OpmMessage())
	case errors.As(err, &name):
		return fmt.Errorf("render reference %.300q: %s", redact.Text(name.Reference), name.OpmMessage())
	}
	return err
}
