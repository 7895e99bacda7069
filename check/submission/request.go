package submission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/check/rules"
	faults "github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/gitrepo"
)

// Request is a change of a repository, such as a pull request.
type Request struct {
	// Changes are the files that change, named from the root of the repository.
	Changes []gitrepo.Change
	// Base has the files before the change; nil: they are not known, and follow from Changes as far as possible.
	Base fs.FS
	// Unstaged, unless nil, returns the files below directories that are not as the change has them.
	Unstaged func(ctx context.Context, dirs []string) ([]string, error)

	closer io.Closer // of what Base reads; nil: nothing
}

// Close ends the use of the base.
func (q *Request) Close() error {
	if q == nil || q.closer == nil {
		return nil
	}
	return q.closer.Close()
}

// request is a request that is checked.
type request struct {
	*check
	Request
	// operators, bundles and packages are what the files belong to: paths of directories. extra are the other files.
	operators, bundles, packages map[string]bool
	extra                        []string
	added, modified, deleted     []string // bundles, sorted
	unstaged                     []string // files that are not as the request has them
	previous                     *previous
}

// newRequest finds what the changed files belong to.
func (c *check) newRequest(q Request) *request {
	r := &request{check: c, Request: q, operators: map[string]bool{}, bundles: map[string]bool{}, packages: map[string]bool{}}
	for _, f := range q.Changes {
		parts := strings.Split(f.Path, "/")
		dir := path.Join(parts[:min(3, len(parts))]...)
		switch {
		case len(parts) > 2 && parts[0] == operatorsDir && r.was(path.Join(parts[:2]...), isOperator):
			r.operators[path.Join(parts[:2]...)] = true
			if len(parts) > 3 && r.was(dir, isBundle) {
				r.bundles[dir] = true
			}
		case len(parts) > 3 && parts[0] == catalogsDir && r.was(dir, isPackage):
			r.packages[dir] = true
		default:
			r.extra = append(r.extra, f.Path)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(r.bundles)) {
		switch before, after := isBundle(r.before(), dir), isBundle(c.fsys, dir); {
		case !before:
			r.added = append(r.added, dir)
		case !after:
			r.deleted = append(r.deleted, dir)
		default:
			r.modified = append(r.modified, dir)
		}
	}
	return r
}

// isPackage reports whether a directory of a catalog has a package.
func isPackage(fsys fs.FS, dir string) bool {
	return slices.ContainsFunc(catalogFiles, func(name string) bool { return isIn(fsys, dir, name, false) })
}

// was reports whether a directory is something before or after the change.
func (r *request) was(dir string, is func(fs.FS, string) bool) bool {
	return is(r.fsys, dir) || is(r.before(), dir)
}

// before returns the files before the change, without their contents if there is no base.
func (r *request) before() fs.FS {
	if r.Base != nil {
		return r.Base
	}
	if r.previous == nil {
		r.previous = newPrevious(r.fsys, r.Changes)
	}
	return r.previous
}

// title returns the title of the request: the pipeline gives it this one. It is empty if the request has no bundle and no
// catalog.
func (r *request) title() string {
	names, catalogs := map[string]bool{}, map[string]bool{}
	for dir := range r.packages {
		parts := strings.Split(dir, "/")
		names[parts[2]], catalogs[parts[1]] = true, true
	}
	title, in := "", ""
	if len(catalogs) > 0 {
		in = "[" + strings.Join(slices.Sorted(maps.Keys(catalogs)), ",") + "]"
		title = fmt.Sprintf("Catalog update [%s] %s", strings.Join(slices.Sorted(maps.Keys(names)), ","), in)
	}
	if all := slices.Concat(r.added, r.modified); len(all) > 0 {
		parts := strings.Split(slices.Min(all), "/")
		if title = fmt.Sprintf("operator %s (%s)", parts[1], parts[2]); in != "" {
			title += " | " + in
		}
	}
	const most = 256
	return string([]rune(title)[:min(most, len([]rune(title)))])
}

// requestTarget is what findings about a request as a whole are about.
const requestTarget = "pull request"

// ErrNoChange is the error for a request that changes nothing.
var ErrNoChange = faults.New(faults.Input, "nothing has changed")

// requestTasks are those for what a request changes and does not delete.
func (c *check) requestTasks(ctx context.Context) (tasks []func(context.Context) error, err error) {
	if len(c.Request.Changes) == 0 {
		return nil, ErrNoChange
	}
	r := c.newRequest(*c.Request)
	c.run.SetTitle(r.title())
	if r.Unstaged != nil {
		if r.unstaged, err = r.Unstaged(ctx, r.parts()); err != nil {
			return nil, err
		}
	}
	if err := rules.Each(ctx, c.run.In(rules.Part{Target: requestTarget}), requestChecks, r); err != nil {
		return nil, err
	}
	for _, dir := range slices.Sorted(maps.Keys(r.operators)) {
		if !isOperator(c.fsys, dir) {
			continue
		}
		tasks = append(tasks, func(ctx context.Context) error {
			return c.operatorOf(ctx, path.Base(dir), func(o *operator) []*submitted {
				return slices.DeleteFunc(slices.Clone(o.bundles), func(b *submitted) bool { return !r.bundles[b.dir] })
			})
		})
	}
	formats := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(r.packages)) {
		catalog := path.Base(path.Dir(dir))
		if isPackage(c.fsys, dir) {
			tasks = append(tasks, c.packageTask(catalog, path.Base(dir)))
		}
		if names, err := c.operatorsOf(catalog); !formats[catalog] && (err != nil || len(names) > 0) {
			tasks = append(tasks, c.formatTask(catalog))
			formats[catalog] = true
		}
	}
	return tasks, nil
}

// parts returns the bundles and the packages, and the files of the operators beside their bundles.
func (r *request) parts() (out []string) {
	for dir := range r.bundles {
		out = append(out, dir)
	}
	for dir := range r.packages {
		out = append(out, dir)
	}
	for dir := range r.operators {
		out = append(out, path.Join(dir, ciFile), path.Join(dir, "catalog-templates"))
	}
	slices.Sort(out)
	return out
}

func findUnstaged(_ context.Context, r *request, emit rules.Emit) {
	for _, name := range r.unstaged {
		emit(rules.Finding{File: name, Message: "the file is not as it is staged or committed, and what is staged is what a request has"})
	}
}

func findAdded(_ context.Context, r *request, emit rules.Emit) {
	if len(r.added) > 1 {
		emit(rules.Finding{Message: "the request adds more than one bundle: " + few(r.added)})
	}
	if len(r.added) > 0 && len(r.deleted) > 0 {
		emit(rules.Finding{Message: fmt.Sprintf("the request adds and deletes bundles: it adds %s, and deletes %s", few(r.added),
			few(r.deleted))})
	}
}

func findBundleAndCatalog(_ context.Context, r *request, emit rules.Emit) {
	if changed := slices.Concat(r.added, r.modified); len(changed) > 0 && len(r.packages) > 0 {
		emit(rules.Finding{Message: fmt.Sprintf("the request changes bundles and catalogs at once: %s, and %s", few(changed),
			few(slices.Sorted(maps.Keys(r.packages))))})
	}
}

func findOperators(_ context.Context, r *request, emit rules.Emit) {
	if len(r.operators) > 1 && len(r.bundles) > 0 {
		emit(rules.Finding{Message: "the request changes more than one operator: " + few(slices.Sorted(maps.Keys(r.operators)))})
	}
}

func findExtra(_ context.Context, r *request, emit rules.Emit) {
	if len(r.extra) > 0 {
		f := rules.Finding{File: r.extra[0], Message: "the request changes files of no operator: " + few(r.extra)}
		if strings.HasPrefix(f.File, operatorsDir+"/") {
			f.Fix = "put a bundle into operators/NAME/VERSION, with the directories manifests and metadata"
		}
		emit(f)
	}
}

func findModified(_ context.Context, r *request, emit rules.Emit) {
	if len(r.modified) > 0 {
		emit(rules.Finding{File: r.modified[0], Message: "the request changes bundles that are there already: " + few(r.modified)})
	}
}

func findDeleted(ctx context.Context, r *request, emit rules.Emit) {
	refused := map[string]bool{}
	if len(r.deleted) > 0 && r.Base == nil {
		r.run.NotRun("the name of the bundle that is deleted is in its files, which --changed-since reads",
			rules.Rule{ID: "check_deleted_bundles", Profiles: common})
	}
	for _, dir := range r.deleted {
		base := &Repository{fsys: r.before()}
		operator, err := base.operator(path.Base(path.Dir(dir)))
		if err != nil {
			emit(rules.Finding{File: dir, Message: "the bundle that the request deletes cannot be read: " + err.Error()})
			continue
		}
		if r.Base == nil { // what ci.yaml says now
			if now, err := r.operator(operator.name); err == nil {
				operator.fbc = now.fbc
			}
		}
		if !operator.fbc && !refused[operator.name] {
			refused[operator.name] = true
			emit(rules.Finding{Package: operator.name, File: dir,
				Message: fmt.Sprintf("the request deletes a bundle of %s, which has no file-based catalogs", operator.name)})
		}
		for _, b := range operator.bundles {
			switch name := b.csvName; {
			case b.dir != dir || r.Base == nil:
			case name != "":
				r.usedBy(ctx, name, dir, emit)
			case b.csvFault != nil && b.csv != "":
				emit(rules.Finding{File: b.csv, Message: "the bundle that the request deletes cannot be read: " + b.csvFault.text})
			}
		}
	}
}

// usedBy reports the catalogs that have a bundle of a name.
func (r *request) usedBy(ctx context.Context, name, dir string, emit rules.Emit) {
	catalogs, err := r.Catalogs()
	for _, catalog := range catalogs {
		operators, opErr := r.operatorsOf(catalog)
		err = cmp.Or(err, opErr)
		used := false
		for _, operator := range operators {
			at := path.Join(catalogsDir, catalog, operator)
			c := &catalogCheck{check: r.check, files: r.catalogFilesOf(at)}
			used = used || c.has(ctx, name)
		}
		if used {
			emit(rules.Finding{Bundle: name, File: dir,
				Message: fmt.Sprintf("the request deletes the bundle %s, which the catalog %s has", name, catalog)})
		}
	}
	if err != nil {
		emit(rules.Finding{File: catalogsDir, Message: err.Error()})
	}
}

// has reports whether the package's catalog has a bundle.
func (c *catalogCheck) has(ctx context.Context, bundle string) bool {
	for b := range c.bundles(ctx, func(rules.Finding) {}) { // the check of catalogs reports what cannot be read
		if b.name == bundle {
			return true
		}
	}
	return false
}

// Since returns what changed in the repository that a directory is in since a revision of git, or since a directory with
// another state of the repository.
func Since(ctx context.Context, dir, base string) (*Request, error) {
	place, err := Find(dir)
	if err != nil || place.Kind == None {
		return nil, cmp.Or(err, fmt.Errorf("%s is no part of a repository of operators", dir))
	}
	q, err := sinceRevision(ctx, place.Root, base)
	info, statErr := os.Stat(base)
	if err == nil || statErr != nil || !info.IsDir() {
		return q, err
	}
	q = &Request{Base: os.DirFS(base)}
	q.Changes, err = gitrepo.Diff(ctx, q.Base, os.DirFS(place.Root))
	return q, err
}

// sinceRevision returns what changed since the merge base of a revision.
func sinceRevision(ctx context.Context, root, revision string) (_ *Request, err error) {
	r, err := gitrepo.Open(root)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	base, err := r.Base(ctx, revision)
	if err != nil {
		return nil, err
	}
	changes, err := base.Changes(ctx)
	if err != nil {
		return nil, err
	}
	below, err := filepath.Rel(r.Root(), root)
	if err != nil {
		return nil, err
	}
	q := &Request{Base: base.FS(), closer: r}
	q.Unstaged = base.Unstaged
	if below = filepath.ToSlash(below); below != "." {
		if q.Base, err = fs.Sub(q.Base, below); err != nil {
			return nil, err
		}
		q.Unstaged = func(ctx context.Context, dirs []string) (names []string, err error) {
			in := make([]string, len(dirs))
			for i, dir := range dirs {
				in[i] = path.Join(below, dir)
			}
			names, err = base.Unstaged(ctx, in)
			for i, name := range names {
				names[i] = strings.TrimPrefix(name, below+"/")
			}
			return names, err
		}
	}
	for _, c := range changes {
		if below == "." {
			q.Changes = append(q.Changes, c)
		} else if name, ok := strings.CutPrefix(c.Path, below+"/"); ok {
			q.Changes = append(q.Changes, gitrepo.Change{Path: name, Kind: c.Kind})
		}
	}
	return q, nil
}
