package check

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

// Resolved is the answer of "resolve" in JSON.
type Resolved struct {
	Package   string `json:"package"`
	Installed string `json:"installed,omitempty"`
	*resolve.Answer
	// UpgradeSafety says whether the upgrade from what is installed was judged by the definitions of both bundles.
	UpgradeSafety *upgradeSafety `json:"upgradeSafety,omitempty"`
	// Next are the upgrades that follow once the bundle is installed: the first, or with --path all.
	Next []nextResolved `json:"next,omitempty"`
	// NextError says why the upgrades end, if that is an error.
	NextError string `json:"nextError,omitempty"`
	// Warnings are what "check --profile olmv1" finds in the package and in the bundles of the answer.
	Warnings []resolveWarning `json:"warnings,omitempty"`

	path bool
}

// nextResolved is an upgrade that follows.
type nextResolved struct {
	resolve.Answer
	// UpgradeSafety says whether the upgrade from the bundle before it was judged.
	UpgradeSafety *upgradeSafety `json:"upgradeSafety,omitempty"`
}

// newResolved asks for the upgrades that follow an answer, under the request's conditions.
func newResolved(path bool, r *resolve.Resolver, q *resolve.Request, a *resolve.Answer) *Resolved {
	out := &Resolved{Package: q.Package, Answer: a, path: path}
	if q.Installed != nil {
		out.Installed = q.Installed.Name
	}
	next := *q
	next.Installed = a.Installed(q.Gates)
	var err error
	var following []resolve.Answer
	if out.path {
		following, err = r.Path(next)
	} else if one, failed := r.Resolve(next); failed != nil {
		err = failed
	} else if !one.Unchanged {
		following = []resolve.Answer{*one}
	}
	for _, f := range following {
		out.Next = append(out.Next, nextResolved{Answer: f})
	}
	if err != nil {
		out.NextError = err.Error()
	}
	return out
}

// bundles returns the names of the bundles that are to be installed.
func (r *Resolved) bundles() []string {
	names := []string{r.Bundle}
	for i := range r.Next {
		names = append(names, r.Next[i].Bundle)
	}
	return names
}

func printResolved(ctx context.Context, p *option.Session, format program.Format, r *Resolved) error {
	if format.IsDocument() {
		return p.PrintValue(format, r)
	}
	rows := [][]string{{"package", r.Package}, {"bundle", r.Bundle}, {"version", r.Version}, {"release", r.Release},
		{"image", r.Image}, {"catalog", r.Catalog}, {"channels", strings.Join(r.Channels, ", ")},
		{"why", r.why()}}
	if d := r.Deprecations; d != nil {
		rows = append(rows, []string{"deprecated", d.Package})
		for _, at := range append(d.Channels, d.Bundles...) {
			rows = append(rows, []string{"deprecated", at.Name + ": " + at.Message})
		}
	}
	for _, next := range r.Next {
		rows = append(rows, []string{"then", named(next.Bundle, next.Version, next.Release)})
		if s := next.UpgradeSafety; s != nil {
			for line := range strings.Lines(s.Refused) {
				rows = append(rows, []string{"refused", strings.TrimSuffix(line, "\n")})
			}
		}
	}
	switch {
	case r.NextError != "":
		rows = append(rows, []string{"then", r.NextError})
	case len(r.Next) == 0:
		rows = append(rows, []string{"then", "no upgrade"})
	}
	return printFields(ctx, p, rows)
}

// why says how the bundle was chosen.
func (r *Resolved) why() string {
	why := "the only candidate"
	if r.Candidates > 1 {
		why = fmt.Sprintf("the highest version of %d candidates", r.Candidates)
		if r.Deprecations != nil && r.Deprecations.Has(r.Bundle) {
			why += ", which are all deprecated"
		}
	}
	switch {
	case r.Unchanged:
		return why + "; it is installed"
	case r.Installed != "":
		return why + "; it follows " + r.Installed
	}
	return why
}

// named is a bundle with its version.
func named(bundle, version, release string) string {
	if release != "" {
		version += " release " + release
	}
	if version == "" {
		return bundle
	}
	return bundle + " (" + version + ")"
}

// printFields prints names and values, without the fields that have no value.
func printFields(ctx context.Context, p *option.Session, rows [][]string) error {
	width := 0
	for _, row := range rows {
		if row[1] != "" {
			width = max(width, len(row[0])+1)
		}
	}
	return p.Spooled(ctx, func(w io.Writer) error {
		for _, row := range rows {
			if row[1] == "" {
				continue
			}
			if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, row[0]+":", printable.Cell(row[1])); err != nil {
				return err
			}
		}
		return nil
	})
}
