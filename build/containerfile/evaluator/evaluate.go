//go:build !nobuildah

package evaluator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/openshift/imagebuilder"
	"github.com/openshift/imagebuilder/dockerfile/command"
	"github.com/openshift/imagebuilder/dockerfile/parser"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/layers"
)

// Evaluator evaluates one Containerfile for any number of platforms. It is not safe for concurrent use. Close it after
// the layers have been written.
type Evaluator struct {
	f        *File
	o        Options
	context  *disk
	patterns []string // exclusions from the context
	contexts map[string]*disk
	spool    *fileSpool
	images   map[string]*imageTree
	layers   map[string]*layers.Layer // by an id of their content
	caches   map[string][]layers.Entry
	warned   map[string]bool
}

// New opens the context directories.
func New(f *File, o Options) (_ *Evaluator, err error) {
	if runtime.GOOS == "windows" {
		return nil,
			errors.New(
				"building Containerfiles is not supported on Windows, whose paths and modes differ from those of " +
					"images: use Linux or macOS")
	}
	if o.fill == nil {
		o.fill = func(ctx context.Context, configs fs.FS, temp, dir string,
			kind build.ServeCache) ([]layers.Entry, error) {
			return build.CatalogInput{FS: configs}.ServeCache(ctx, kind, dir, temp)
		}
	}
	e := &Evaluator{
		f: f, o: o, spool: newSpool(o.Dir), contexts: map[string]*disk{}, images: map[string]*imageTree{},
		layers: map[string]*layers.Layer{}, caches: map[string][]layers.Entry{}, warned: map[string]bool{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if e.context, err = openDisk(o.Context); err != nil {
		return nil, err
	}
	if e.patterns, err = e.context.ignorePatterns(o.IgnoreBeside); err != nil {
		return nil, err
	}
	for name, dir := range o.Contexts {
		if e.contexts[name], err = openDisk(dir); err != nil {
			return nil, err
		}
	}
	for _, w := range f.Warnings {
		e.warn(w)
	}
	return e, nil
}

// Close closes images and contexts and removes temporary files.
func (e *Evaluator) Close() error {
	var errs []error
	for _, t := range e.images {
		errs = append(errs, t.image.Close())
	}
	for _, d := range e.contexts {
		errs = append(errs, d.close())
	}
	if e.context != nil {
		errs = append(errs, e.context.close())
	}
	return errors.Join(append(errs, e.spool.close())...)
}

// warn reports a warning; the same warning for several platforms is reported once.
func (e *Evaluator) warn(text string) {
	if e.o.Warn != nil && !e.warned[text] {
		e.warned[text] = true
		e.o.Warn(text)
	}
}

// evaluation is the evaluation for one platform.
type evaluation struct {
	*Evaluator
	platform v1.Platform
	stages   imagebuilder.Stages
	lines    map[*parser.Node]int
	done     []*stage
	problems Problems
	effort   effort
	nodes    int // number of nodes in all stages, including those loaded from base images
}

// grow adds n to the number of nodes and fails beyond [maxNodes]: a few COPY lines can double a tree many times.
func (v *evaluation) grow(n int) error {
	if v.nodes += n; v.nodes > maxNodes {
		return fmt.Errorf("%w: the stages have more than %d files and directories", errLimit, maxNodes)
	}
	return nil
}

// fail records a problem. It returns an error when there are too many.
func (e *evaluation) fail(line int, instruction string, err error) error {
	var reported *Problems
	if errors.As(err, &reported) {
		return reported // the stage's problems are recorded already
	}
	e.problems.Add(e.f.asProblem(line, instruction, err))
	if e.problems.Full() || errors.Is(err, errLimit) {
		return &e.problems
	}
	return nil
}

// builtin returns the predefined arguments for a platform.
func builtin(p v1.Platform) map[string]string {
	return map[string]string{
		"TARGETPLATFORM": platform.Name(p),
		"TARGETOS":       p.OS, "TARGETARCH": p.Architecture, "TARGETVARIANT": p.Variant,
		"BUILDPLATFORM": "linux/" + runtime.GOARCH, "BUILDOS": "linux", "BUILDARCH": runtime.GOARCH, "BUILDVARIANT": "",
	}
}

// splitStages splits the file into stages for a platform and returns the index of the target stage.
func (e *Evaluator) splitStages(p v1.Platform) (*evaluation, int, error) {
	v := &evaluation{Evaluator: e, platform: p}
	var err error
	if v.stages, v.lines, err = e.f.stages(e.o.Args, builtin(p)); err != nil {
		return nil, 0, err
	}
	v.done = make([]*stage, len(v.stages))
	target := len(v.stages) - 1
	if e.o.Target != "" {
		if target = v.stageNamed(e.o.Target, len(v.stages)); target < 0 {
			var names []string
			for _, s := range v.stages {
				names = append(names, s.Name)
			}
			return nil, 0, e.f.refuse(0, "",
				newMendError("there are "+strings.Join(names, ", "), "it has no stage %.100q", e.o.Target))
		}
	}
	return v, target, nil
}

// stageNamed returns the index of the last stage before a position with that name or number; -1 if there is none.
func (v *evaluation) stageNamed(name string, before int) int {
	for i := before - 1; i >= 0; i-- {
		if strings.EqualFold(v.stages[i].Name, name) {
			return i
		}
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < before {
		return n
	}
	return -1
}

// Evaluate computes the image of a platform. Only stages that it depends on are evaluated. All problems are returned
// together as [Problems]; any other error is about the machine, a registry or the context.
func (e *Evaluator) Evaluate(ctx context.Context, p v1.Platform) (*parsedStage, error) {
	v, target, err := e.splitStages(p)
	if err != nil {
		return nil, err
	}
	s, err := v.stage(ctx, target)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := v.problems.Err(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if err := s.seal(ctx); err != nil {
		return nil, err
	}
	v.warnUnused()
	return v.finish(ctx, s)
}

// warnUnused warns about --build-arg values that no ARG declares.
func (v *evaluation) warnUnused() {
	known := builtin(v.platform)
	declared := func(name string) bool {
		if _, ok := known[name]; ok || strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			return true
		}
		return slices.ContainsFunc(v.stages, func(s imagebuilder.Stage) bool {
			_, heading := s.Builder.HeadingArgs[name]
			return heading || s.Builder.AllowedArgs[name] || slices.ContainsFunc(s.Node.Children,
				func(n *parser.Node) bool {
					return strings.EqualFold(n.Value,
						command.Arg) && n.Next != nil && (n.Next.Value == name || strings.HasPrefix(n.Next.Value,
						name+"="))
				})
		})
	}
	for _, name := range slices.Sorted(maps.Keys(v.o.Args)) {
		if !declared(name) {
			v.warn(fmt.Sprintf("--build-arg %s: no ARG of the file has that name", printable.Text(name)))
		}
	}
}

// tree returns the file tree of an image that FROM or --from names.
func (v *evaluation) tree(ctx context.Context, name string, p v1.Platform) (*imageTree, error) {
	key := platform.Name(p) + " " + name
	if t := v.images[key]; t != nil {
		return t, nil
	}
	if v.o.Open == nil {
		return nil, fmt.Errorf("image %.300q cannot be read here", name)
	}
	img, err := v.o.Open(ctx, name, p)
	if err != nil {
		return nil, err
	}
	t := newImageTree(img, v.o.Limits, v.spool)
	v.images[key] = t
	return t, nil
}
