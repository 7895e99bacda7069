package mirror

import (
	"log/slog"

	"github.com/operator-bindery/bindery/internal/printable"
)

// logger writes to the caller's log, if there is one.
type logger struct{ to *slog.Logger }

func (l logger) info(text string) {
	if l.to != nil {
		l.to.Info(printable.Text(text))
	}
}

func (l logger) debug(text string) {
	if l.to != nil {
		l.to.Debug(printable.Text(text))
	}
}

func (l logger) warn(text string) {
	if l.to != nil {
		l.to.Warn(printable.Text(text))
	}
}

func (l logger) problem(p Problem) { l.warn(p.String()) }
