package submission

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// config is what counts of a repository's config.yaml.
type config struct {
	organization string
	registries   []string // that bundle images may be in; none: all
	waivers      []waiver
}

// waiver says for which operators a rule does not run.
type waiver struct {
	rule      string
	operators *regexp.Regexp
}

// readConfig reads the config.yaml of a repository. That it is missing is no fault.
func readConfig(fsys fs.FS) (c config, bad *fault) {
	if !isIn(fsys, ".", configFile, false) {
		return c, nil
	}
	d, bad := readDocument(fsys, configFile)
	if bad != nil || d.json == nil {
		return c, bad
	}
	if !d.isObject() {
		return c, faultOf(configFile, 1, "the file is %s and no mapping", kindOf(d.json))
	}
	for _, field := range []struct{ name, kind string }{{"organization", "text"}, {"allowed_bundle_registries", "a list"}, {"tests", "a list"}} {
		if value := jsonscan.Member(d.json, field.name); len(value) > 0 && string(value) != "null" && kindOf(value) != field.kind {
			return c, faultOf(configFile, 1, "%s is %s, and it is to be %s", field.name, kindOf(value), field.kind)
		}
	}
	c.organization = jsonscan.TextAt(d.json, "organization")
	jsonscan.Elements(jsonscan.Member(d.json, "allowed_bundle_registries"), func(v []byte) bool {
		if text, ok := jsonscan.Text(v); ok {
			c.registries = append(c.registries, text)
		} else {
			bad = faultOf(configFile, 1, "allowed_bundle_registries has %s, and registries are texts", kindOf(v))
		}
		return bad == nil
	})
	jsonscan.Elements(jsonscan.Member(d.json, "tests"), func(test []byte) bool {
		name := jsonscan.TextAt(test, "name")
		jsonscan.Elements(jsonscan.Member(test, "ignore_operators"), func(v []byte) bool {
			text, ok := jsonscan.Text(v)
			pattern, err := regexp.Compile("^(?:" + text + ")")
			if !ok {
				bad = faultOf(configFile, 1, "ignore_operators of the test %q has %s, and patterns are texts", name, kindOf(v))
			} else if err != nil {
				bad = faultOf(configFile, 1, "ignore_operators of the test %q has an invalid pattern: %v", name, err)
			} else {
				c.waivers = append(c.waivers, waiver{name, pattern})
			}
			return bad == nil
		})
		return bad == nil
	})
	return c, bad
}

// waived reports whether the rule does not run for an operator.
func (c *config) waived(rule, operator string) bool {
	return slices.ContainsFunc(c.waivers, func(w waiver) bool { return w.rule == rule && w.operators.MatchString(operator) })
}

// Repository is a repository of operators, or a bundle alone. It reads files when they are asked for.
type Repository struct {
	fsys   fs.FS
	config config
	bad    *fault // of config.yaml
	lone   bool   // a bundle alone
}

// Open opens the repository in fsys.
func Open(fsys fs.FS) *Repository {
	r := &Repository{fsys: fsys}
	r.config, r.bad = readConfig(fsys)
	return r
}

// Operators returns the names of the operators, sorted.
func (r *Repository) Operators() (names []string, err error) {
	all, err := directories(r.fsys, operatorsDir)
	return slices.DeleteFunc(all, func(name string) bool {
		dir := path.Join(operatorsDir, name)
		return !isOperator(r.fsys, dir) && !hasHalf(r.fsys, dir)
	}), err
}

// Catalogs returns the names of the catalogs, sorted.
func (r *Repository) Catalogs() ([]string, error) { return directories(r.fsys, catalogsDir) }

// catalogFiles are the names that the catalog of a package may have.
var catalogFiles = []string{"catalog.yaml", "catalog.yml", "catalog.json"}

// catalogFilesOf returns those that a directory has.
func (r *Repository) catalogFilesOf(dir string) (files []string) {
	for _, name := range catalogFiles {
		if isIn(r.fsys, dir, name, false) {
			files = append(files, path.Join(dir, name))
		}
	}
	return files
}

// operatorsOf returns the operators of a catalog, sorted.
func (r *Repository) operatorsOf(catalog string) ([]string, error) {
	all, err := directories(r.fsys, path.Join(catalogsDir, catalog))
	return slices.DeleteFunc(all, func(name string) bool {
		return len(r.catalogFilesOf(path.Join(catalogsDir, catalog, name))) == 0
	}), err
}

// catalogsOf returns the catalogs that have an operator.
func (r *Repository) catalogsOf(operator string) ([]string, error) {
	all, err := r.Catalogs()
	return slices.DeleteFunc(all, func(name string) bool {
		return len(r.catalogFilesOf(path.Join(catalogsDir, name, operator))) == 0
	}), err
}

// named returns the path of the first of the files in a directory that exists; empty if none does.
func (r *Repository) named(dir string, names ...string) string {
	for _, name := range names {
		if isIn(r.fsys, dir, name, false) {
			return path.Join(dir, name)
		}
	}
	return ""
}

// csvFiles returns the files of ClusterServiceVersions in a directory of manifests, those of the ending .yaml first.
func (r *Repository) csvFiles(dir string) (files []string, err error) {
	entries, err := fs.ReadDir(r.fsys, dir)
	for _, ending := range []string{".clusterserviceversion.yaml", ".clusterserviceversion.yml"} {
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ending) {
				files = append(files, path.Join(dir, e.Name()))
			}
		}
	}
	return files, err
}
