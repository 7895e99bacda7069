package helmtemplate

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// Options configure [Chart.Render].
type Options struct {
	// KubeVersion is the version of the cluster that templates see; [DefaultKubeVersion] if it is empty.
	KubeVersion string
	// APIVersions are APIs that the cluster has beside those of Kubernetes: GROUP/VERSION or GROUP/VERSION/KIND.
	APIVersions []string
	// Values go before those of the chart.
	Values map[string]any
	// Tests takes the hooks that run tests, too.
	Tests bool
	// Timeout bounds the time of rendering; [DefaultTimeout] if it is zero.
	Timeout time.Duration
}

// The defaults of [Options].
const (
	DefaultKubeVersion = "v1.20.0"
	DefaultTimeout     = 30 * time.Second
)

// ErrTime is the error of a chart that takes too long to render. It is of the class of limits.
var ErrTime = fmt.Errorf("%w: rendering takes too long", fault.ErrLimit)

// Render returns the manifests of a chart: CRDs, then what is installed in the order of Helm, then hooks.
//
// When time is up or ctx ends, it returns: templates stop at their next action. One call that takes longer, such as that of
// a regular expression on a large text, is left behind, and ends with itself or with the program.
func (c *Chart) Render(ctx context.Context, o Options) ([]Manifest, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	inside, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("%w (limit %s)", ErrTime, o.Timeout))
	defer cancel()
	type result struct {
		manifests []Manifest
		err       error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.err = guard.Call(func() (err error) {
			r.manifests, err = c.render(inside, o)
			return err
		})
		done <- r
	}()
	var r result
	select {
	case r = <-done:
	case <-inside.Done():
		r.err = context.Cause(inside)
	}
	if r.err != nil {
		if err := context.Cause(inside); err != nil {
			r.err = err
		}
		return nil, fmt.Errorf("chart %s: %w", c.Name(), r.err)
	}
	return r.manifests, nil
}

func (c *Chart) render(ctx context.Context, o Options) ([]Manifest, error) {
	caps, err := capabilities(o)
	if err != nil {
		return nil, err
	}
	root, values, err := c.prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	files, err := execute(ctx, root, values, caps)
	if err != nil {
		return nil, err
	}
	return manifests(ctx, root, files, o.Tests)
}

// prepare returns the chart with the subcharts that are on, and its values.
func (c *Chart) prepare(ctx context.Context, o Options) (*chart.Chart, Values, error) {
	root, err := assemble(c.tree)
	if err != nil {
		return nil, nil, err
	}
	t := &tally{ctx: ctx}
	if err := t.processDependencies(root, o.Values); err != nil {
		return nil, nil, err
	}
	if err := t.addFiles(root); err != nil {
		return nil, nil, err
	}
	values, err := t.coalesceValues(root, o.Values)
	return root, values, err
}

// renderable is a template file with what its templates see.
type renderable struct {
	text, basePath string
	scope          map[string]any
}

// execute renders all templates.
func execute(ctx context.Context, root *chart.Chart, values Values, caps *Capabilities) (map[string]string, error) {
	all := map[string]renderable{}
	release := map[string]any{"Name": "", "Namespace": "", "IsUpgrade": false, "IsInstall": false, "Revision": 0,
		"Service": "Helm"}
	collect(root, all, map[*chart.File]string{}, map[string]any{"Values": values, "Release": release, "Capabilities": caps})
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	// Those that are deepest come first: a definition that is nearer to the chart itself replaces them.
	slices.SortFunc(names, func(a, b string) int {
		if d := strings.Count(b, "/") - strings.Count(a, "/"); d != 0 {
			return d
		}
		return strings.Compare(b, a)
	})
	e := newEngine(ctx)
	t := template.New("gotpl").Option("missingkey=zero").Funcs(e.funcs)
	e.lateFuncs(t)
	for _, name := range names {
		if err := e.check(); err != nil {
			return nil, err
		}
		if err := e.parse(t.New(name), all[name].text); err != nil {
			return nil, fmt.Errorf("%w: %w", errInvalid, readable(name, err))
		}
	}
	rendered := make(map[string]string, len(names))
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		r := all[name]
		r.scope["Template"] = Values{"Name": name, "BasePath": r.basePath}
		e.depth = 0
		out := &bounded{e: e}
		if err := t.ExecuteTemplate(out, name, r.scope); err != nil {
			return nil, fmt.Errorf("%w: %w", errInvalid, readable(name, err))
		}
		text := out.String()
		if e.output += len(text); e.output > maxOutput {
			return nil, fmt.Errorf("%w: its manifests have more bytes (limit %d)", fault.ErrLimit, maxOutput)
		}
		rendered[name] = strings.ReplaceAll(text, "<no value>", "")
	}
	return rendered, nil
}

// collect adds the templates of a chart and of its subcharts, and returns what its templates see. Copies of a subchart share
// texts.
func collect(c *chart.Chart, all map[string]renderable, texts map[*chart.File]string, above Values) map[string]any {
	subs := map[string]any{}
	scope := map[string]any{
		"Chart": struct {
			chart.Metadata
			IsRoot bool
		}{*c.Metadata, c.IsRoot()},
		"Files":        filesOf(c.Files),
		"Release":      above["Release"],
		"Capabilities": above["Capabilities"],
		"Values":       Values{},
		"Subcharts":    subs,
	}
	if c.IsRoot() {
		scope["Values"] = above["Values"]
	} else if v, err := above.Table("Values." + c.Name()); err == nil {
		scope["Values"] = v
	}
	for _, sub := range c.Dependencies() {
		subs[sub.Name()] = collect(sub, all, texts, scope)
	}
	at := c.ChartFullPath()
	for _, t := range c.Templates {
		if strings.EqualFold(c.Metadata.Type, "library") && !strings.HasPrefix(path.Base(t.Name), "_") {
			continue
		}
		text, ok := texts[t]
		if !ok {
			text = string(t.Data)
			texts[t] = text
		}
		all[path.Join(at, t.Name)] = renderable{text, path.Join(at, "templates"), scope}
	}
	return scope
}

// maxIncludes is how often a template may be included in itself, as in Helm.
const maxIncludes = 1000

// lateFuncs adds the functions that depend on the templates of t.
func (e *engine) lateFuncs(t *template.Template) {
	t.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			if e.included[name] > maxIncludes {
				return "", fmt.Errorf("the template %q includes itself without end", name)
			}
			e.included[name]++
			out := &bounded{e: e}
			if err := t.ExecuteTemplate(out, name, data); err != nil {
				return "", e.innermost(err)
			}
			e.included[name]--
			return out.String(), nil
		},
		"tpl": func(text string, data any) (string, error) {
			inner, err := t.Clone()
			if err != nil {
				return "", err
			}
			inner.Option("missingkey=zero")
			e.lateFuncs(inner)
			inner = inner.New(t.Name())
			defer func(parsed load) { e.parsed = parsed }(e.parsed) // its trees end with it
			if err := e.parse(inner, text); err != nil {
				return "", fmt.Errorf("tpl cannot parse %s: %w", fault.Quote(text), err)
			}
			out := &bounded{e: e}
			if err := inner.Execute(out, data); err != nil {
				return "", e.innermost(fmt.Errorf("tpl with %s: %w", fault.Quote(text), err))
			}
			return strings.ReplaceAll(out.String(), "<no value>", ""), nil
		},
	})
}

// parse parses a template as t.Parse does, with what bounds its execution.
func (e *engine) parse(t *template.Template, text string) error {
	if err := checkNesting(text); err != nil {
		return err
	}
	if err := e.parsed.add(text); err != nil {
		return err
	}
	trees, err := parse.Parse(t.Name(), text, "", "", e.known)
	if err != nil {
		return err
	}
	for name, tree := range trees {
		instrument(tree)
		if _, err := t.AddParseTree(name, tree); err != nil {
			return err
		}
	}
	return nil
}

// own are errors of "required" and "fail": their text is for the user.
type own struct{ text string }

func (o *own) Error() string { return ownStart + o.text + ownEnd }

const ownStart, ownEnd = "\x02", "\x03"

// failure is the error of a template with a text that is fit to read.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }

var place = lazyregexp.New(`^template: ([^ ]*): `)

// readable returns the error of a template without what surrounds the text of "required" and "fail", and without the
// middle of the list of templates that led to it.
func readable(name string, err error) error {
	text := err.Error()
	start, end := strings.Index(text, ownStart), strings.LastIndex(text, ownEnd)
	if start >= 0 && end > start {
		at := name
		if m := place().FindStringSubmatch(text); m != nil {
			at = m[1]
		}
		text = at + ": " + text[start+1:end]
	} else {
		text = strings.TrimPrefix(text, "template: ")
	}
	if head := fault.Short(text); len(text) > 2*len(head) {
		text = head + " ... " + strings.ToValidUTF8(text[len(text)-fault.MaxShort:], "")
	}
	return &failure{"template " + text, err}
}
