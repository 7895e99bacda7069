package cmdline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/shape"
)

// NewLogger returns a logger that writes to w. The formats are "text" ("warning: message key=value", for people),
// "json" (one object per line) and "opm" (time="..." level=... msg="...", which scripts for opm parse). Credentials are
// removed from all.
func NewLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	if format == "json" {
		return slog.New(slog.NewJSONHandler(redactedLines{w}, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(&lineHandler{w: w, mu: &sync.Mutex{}, opm: format == "opm", level: level})
}

// redactedLines writes lines of JSON without credentials.
type redactedLines struct{ w io.Writer }

func (r redactedLines) Write(line []byte) (int, error) {
	if _, err := r.w.Write(redact.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// ParseLevel parses debug, info, warn or error.
func ParseLevel(s string) (slog.Level, error) {
	switch s {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn", "warning":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, Usagef("invalid --log-level value %q, expected (debug|info|warn|error)", s)
}

// lineHandler writes a record as one line.
type lineHandler struct {
	w     io.Writer
	mu    *sync.Mutex
	opm   bool
	level slog.Level
	attrs []slog.Attr
	group string
}

func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	out.attrs = append([]slog.Attr(nil), h.attrs...)
	for _, a := range attrs {
		out.attrs = append(out.attrs, slog.Attr{Key: h.group + a.Key, Value: a.Value})
	}
	return &out
}

func (h *lineHandler) WithGroup(name string) slog.Handler {
	out := *h
	out.group += name + "."
	return &out
}

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	if h.opm {
		fmt.Fprintf(&b, "time=%q level=%s msg=%s", r.Time.UTC().Format(time.RFC3339), levelName(r.Level),
			strconv.Quote(redact.Text(r.Message)))
	} else {
		if r.Level != slog.LevelInfo {
			fmt.Fprintf(&b, "%s: ", levelName(r.Level))
		}
		b.WriteString(printable.Indent(printable.Text(shape.Plain(r.Message, nil))))
	}
	add := func(key string, v slog.Value) {
		text := redact.Text(v.String())
		if text == "" || strings.ContainsFunc(text,
			func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || !printable.Rune(r) }) {
			text = strconv.Quote(text)
		}
		fmt.Fprintf(&b, " %s=%s", key, text)
	}
	for _, a := range h.attrs {
		add(a.Key, a.Value)
	}
	r.Attrs(func(a slog.Attr) bool {
		add(h.group+a.Key, a.Value)
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(b.Bytes())
	return err
}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warning"
	}
	return "error"
}
