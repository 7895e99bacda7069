package rules

import (
	"context"
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/lifecycle"
)

// ruleLifecycle is a warning: no pipeline and no cluster refuses a catalog for it, but OpenShift's console shows nothing.
var ruleLifecycle = Rule{ID: "fbc:lifecycle", Severity: Warning, Profiles: []Profile{OPM, Konflux}, Scopes: onCatalogs,
	Title: "A package has at most one blob with its lifecycle, whose versions and dates are valid and whose phases follow each other.",
	Fix:   "correct it as the message says: OpenShift's console shows no data for the package"}

// findLifecycles reports lifecycles of no package; those of packages are checked as they are read.
func findLifecycles(_ context.Context, c *catalogCheck, emit Emit) {
	for _, d := range c.all {
		if d.Schema == lifecycle.Schema && d.Package == "" {
			emit(Finding{File: d.File, Line: d.Line, Message: "the blob names no package"})
		}
	}
}

// lifecycle checks a blob of the package, which the stream has after the package itself.
func (p *packageCheck) lifecycle(m *declcfg.Meta) {
	if !p.run.Wants(ruleLifecycle) {
		return
	}
	emit := p.run.emitOf([]Rule{ruleLifecycle})
	at := m.Position()
	f := Finding{Package: p.name, File: at.File, Line: at.Line}
	if p.pkg == nil {
		f.Message = fmt.Sprintf("there is no package %q in the catalog", p.name)
		emit(f)
	}
	if p.lifecycles++; p.lifecycles == 2 {
		f.Message = fmt.Sprintf("the package %q has more than one lifecycle", p.name)
		emit(f)
	}
	_, problems := lifecycle.Read(m.Blob)
	for _, problem := range problems {
		f.path, f.Message = problem.Path, problem.Message
		emit(f)
	}
}
