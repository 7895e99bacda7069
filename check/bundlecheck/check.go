package bundlecheck

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"sync"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/guard"
)

// Run checks a bundle. fsys is the bundle's root, from which it was read. The bundle's problems are in the report; the
// error is about unknown names of validators, or the cause of the context's end. Run is safe for concurrent use, also
// with the same bundle.
func Run(ctx context.Context, fsys fs.FS, b *bundle.Bundle, o Options) (*Report, error) {
	if err := o.checkNames(); err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(max(o.Timeout, 0), defaultTimeout)
	own, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	r := &run{ctx: own, fsys: fsys, b: b, o: o, lines: bundlefs.NewLocator(fsys)}
	r.detected = r.detect()
	r.runAll()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if own.Err() != nil {
		r.fail("timeout", place{}, "the bundle was not checked to the end: that takes longer than %v", o.Timeout)
	}
	return r.report(), nil
}

// run is the state of one check.
type run struct {
	ctx   context.Context
	fsys  fs.FS
	b     *bundle.Bundle
	o     Options
	lines *bundlefs.Locator
	size  Size
	// detected is the media type derived from the manifests.
	detected bundle.MediaType

	mu    sync.Mutex
	found []finding
}

// runAll runs every check that applies to the media type.
func (r *run) runAll() {
	r.readProblems()
	if r.o.Plain {
		r.annotations(bundle.PlainV0)
		if !r.partial() {
			r.plain()
		}
		return
	}
	r.annotations(r.detected)
	r.dependencies()
	r.properties()
	if r.partial() {
		return // unread files would be reported as missing
	}
	switch r.detected {
	case bundle.Helm:
		r.helm()
	case bundle.RegistryV1:
		r.registry()
	default:
		r.plain()
	}
}

// registry checks the manifests of a registry+v1 bundle.
func (r *run) registry() {
	if n := r.definitionNodes(); n > maxDefinitionNodes {
		r.fail(bundle.RuleLimit, inFile(r.b.ManifestsDir),
			"the custom resource definitions have %d JSON objects, more than %d: the contents are not checked", n,
			maxDefinitionNodes)
		r.files()
		r.sizes()
		r.olmv1()
		return
	}
	objects := r.typed()
	r.files()
	r.content(objects)
	r.sizes()
	r.relatedImages(objects)
	r.validators(objects)
	r.olmv1()
}

// parallel runs tasks, a limited number concurrently, until the time limit.
func (r *run) parallel(tasks []func()) {
	// After the time limit no more are begun, and its error is not one of the bundle.
	_ = guard.Each(r.ctx, r.o.Jobs, tasks, func(_ context.Context, _ int, task func()) error {
		r.guard(task)
		return nil
	})
}

// guard runs a task of a library that takes no context and does not expect hostile input: after the time limit it is
// abandoned, and a panic becomes a finding. Findings of an abandoned task are dropped.
func (r *run) guard(task func()) {
	if r.ctx.Err() != nil {
		return
	}
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		task()
	}()
	select {
	case p := <-done:
		if p != nil {
			r.fail("validator-failed", place{}, "a validator could not cope with the bundle: %v", p)
		}
	case <-r.ctx.Done():
	}
}

// list returns the entries of a directory of the bundle, sorted.
func (r *run) list(dir string) []fs.DirEntry {
	entries, err := bundlefs.Entries(r.fsys, path.Clean("./"+dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.fail(bundle.RuleFile, inFile(dir), "%v", err)
	}
	return entries
}
