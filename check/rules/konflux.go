package rules

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

var (
	konfluxOnly = []Profile{Konflux}
	onCatalogs  = []Scope{OnCatalog}
)

// The rules of the task validate-fbc of https://github.com/konflux-ci/build-definitions, which has no identifiers for
// them.
var (
	fbcBase = Rule{ID: "fbc:base-image", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "The base image is one that Konflux permits, and there is an image for amd64.",
		Fix:   "build the catalog with --base registry.redhat.io/openshift4/ose-operator-registry-rhel9:vX.Y"}
	fbcVersion = Rule{ID: "fbc:ocp-version", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "The tag of the base image is an OpenShift version.",
		Fix:   "name the base image by a tag such as v4.17, or say --ocp-version"}
	fbcLabel = Rule{ID: "fbc:configs-label", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "The image names the directory of its catalog by a label, and the directory is not empty.",
		Fix:   "build the image with bindery build catalog"}
	fbcProbe = Rule{ID: "fbc:health-probe", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "The image has a file grpc_health_probe, and the base image exactly one file opm.",
		Fix:   "build on an image of opm"}
	fbcDirs = Rule{ID: "fbc:package-dirs", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "The catalog has a directory for each package, and none of them is empty.",
		Fix:   "write the catalog as PACKAGE/catalog.yaml, as bindery does by default"}
	fbcValidate = Rule{ID: "fbc:opm-validate", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "opm validate accepts the catalog.", Fix: "see bindery check --profile opm for all problems"}
	fbcRender = Rule{ID: "fbc:render", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "The catalog can be rendered.", Fix: "correct the YAML or JSON there"}
	fbcNoPackage = Rule{ID: "fbc:no-package", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "The catalog has an olm.package.", Fix: "add a package"}
	fbcMetadata = Rule{ID: "fbc:bundle-metadata-format", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "Bundles have olm.csv.metadata from OpenShift 4.17 on, and olm.bundle.object before.",
		Fix:   "render the catalog with --migrate-level bundle-object-to-csv-metadata, or without it for 4.16 and older"}
	fbcPinned = Rule{ID: "fbc:bundle-pinned", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "The image of a bundle ends in @sha256: and its digest.", Fix: "render with --resolve-digests"}
	fbcRegistry = Rule{ID: "fbc:bundle-registry", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
		Title: "The image of a bundle is in a registry that the rule data permits.",
		Fix:   "name the image as it will be released", Data: "fbc_bundle_registry_prefixes"}
)

var konfluxChecks = []Check[*catalogCheck]{
	{[]Rule{fbcBase}, findBase},
	{[]Rule{fbcVersion}, findVersionOfBase},
	{[]Rule{fbcLabel}, findConfigs},
	{[]Rule{fbcProbe}, findProbe},
	{[]Rule{fbcDirs}, findPackageDirs},
	{[]Rule{fbcValidate}, func(context.Context, *catalogCheck, Emit) {}}, // see catalogCheck.opm
	{[]Rule{fbcRender, fbcNoPackage}, findPackages},
}

// konflux runs the rules on the image and the files, and says which cannot run.
func (c *catalogCheck) konflux(ctx context.Context) error {
	for _, k := range konfluxChecks {
		rule := k.Rules[0]
		switch {
		case c.Image == nil && slices.Contains([]string{fbcBase.ID, fbcLabel.ID, fbcProbe.ID}, rule.ID),
			c.Image == nil && c.OCP == "" && rule.ID == fbcVersion.ID:
			c.run.NotRun("needs an image, not a directory", rule)
			continue
		case rule.ID == fbcProbe.ID && c.Image.Programs == nil:
			c.run.NotRun("needs the layers of the image and of its base: --pull reads them", rule)
			continue
		case c.Image != nil && c.isEmpty() && (rule.ID == fbcDirs.ID || rule.ID == fbcRender.ID):
			c.run.NotRun("the directory of the catalog is empty", k.Rules...)
			continue
		}
		if err := Each(ctx, c.run, []Check[*catalogCheck]{k}, c); err != nil {
			return err
		}
	}
	if c.run.Data().ImagePrefixes == nil {
		c.run.NotRun("the rule data has no "+relatedRegistries.Data, relatedRegistries)
	}
	if !c.ocp.known {
		c.run.NotRun("the OpenShift version is not known: say --ocp-version", fbcMetadata)
	}
	return nil
}

// ocpVersion is an OpenShift version.
type ocpVersion struct {
	major, minor int
	text         string
	known        bool
}

func (v ocpVersion) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

var ocpPattern = lazyregexp.New(`^v?([0-9]{1,4})\.([0-9]{1,4})$`)

// IsOpenShiftVersion reports whether a text is an OpenShift version such as v4.17 or 4.17.
func IsOpenShiftVersion(text string) bool { return ocpPattern().MatchString(text) }

// openShift returns the version that the catalog is for: the one that was named, or the tag of the base image.
func (c *catalogCheck) openShift() ocpVersion {
	text := c.OCP
	if text == "" && c.Image != nil {
		name, _ := c.Image.Base()
		_, text = splitTag(name)
	}
	m := ocpPattern().FindStringSubmatch(text)
	if m == nil {
		return ocpVersion{text: text}
	}
	major, _ := strconv.Atoi(m[1]) // digits, see the pattern
	minor, _ := strconv.Atoi(m[2])
	return ocpVersion{major, minor, text, true}
}

func findBase(_ context.Context, c *catalogCheck, emit Emit) {
	name, _ := c.Image.Base()
	repository, _ := splitTag(name)
	switch {
	case name == "":
		emit(Finding{Message: "the base image is not known: the image has no annotation " + annotationBaseName})
	case !slices.Contains(c.run.Data().FBCBaseImages, repository):
		emit(Finding{Field: annotationBaseName,
			Message: fmt.Sprintf("base image %s is not permitted for a catalog", name)})
	}
	if c.Image.Index && !slices.Contains(c.Image.Platforms, "linux/amd64") {
		emit(Finding{Message: "the index has no image for linux/amd64"})
	}
}

func findVersionOfBase(_ context.Context, c *catalogCheck, emit Emit) {
	name := ""
	if c.Image != nil {
		name, _ = c.Image.Base()
	}
	switch {
	case c.ocp.text == "" && name == "":
		// That there is no base is a finding of its own.
	case c.ocp.text == "":
		emit(Finding{Field: annotationBaseName,
			Message: fmt.Sprintf("base image %q has no tag that says the OpenShift version", name)})
	case !c.ocp.known:
		emit(Finding{Severity: Warning, Field: annotationBaseName,
			Message: fmt.Sprintf("%q is not an OpenShift version", c.ocp.text)})
	}
}

// isEmpty reports whether the catalog has no files, which is one finding and not several.
func (c *catalogCheck) isEmpty() bool {
	entries, err := fs.ReadDir(c.FS, ".")
	return err != nil || len(entries) == 0
}

func findConfigs(_ context.Context, c *catalogCheck, emit Emit) {
	if _, ok := c.Image.Labels[labelConfigs]; !ok {
		emit(Finding{Field: labelConfigs, Message: "the image has no label " + labelConfigs})
		return
	}
	if c.isEmpty() {
		emit(Finding{File: c.Image.Labels[labelConfigs], Message: "the directory of the catalog is empty"})
	}
}

func findProbe(_ context.Context, c *catalogCheck, emit Emit) {
	if c.Image.Programs["grpc_health_probe"] == 0 {
		emit(Finding{Message: "the image has no file grpc_health_probe"})
	}
	if n := c.Image.BasePrograms["opm"]; c.Image.BasePrograms != nil && n != 1 {
		emit(Finding{Image: c.Image.BaseReference(),
			Message: fmt.Sprintf("the base image has %d files opm, not one", n)})
	}
}

func findPackageDirs(_ context.Context, c *catalogCheck, emit Emit) {
	entries, err := fs.ReadDir(c.FS, ".")
	if err != nil {
		return // found by the rules on the catalog's files
	}
	dirs := 0
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		dirs++
		if inner, err := fs.ReadDir(c.FS, e.Name()); err == nil && len(inner) == 0 {
			emit(Finding{File: e.Name(), Message: "the directory of the package is empty"})
		}
	}
	if dirs == 0 {
		emit(Finding{Message: "the catalog has no directories of packages"})
	}
}

func findPackages(ctx context.Context, c *catalogCheck, emit Emit) {
	packages := 0
	err := declcfg.Walk(ctx, c.FS, c.Load, func(m *declcfg.Meta) error {
		if m.Schema == declcfg.SchemaPackage {
			packages++
		}
		return nil
	})
	switch {
	case err != nil:
		first, _, _ := strings.Cut(err.Error(), "\n")
		emit(Finding{Rule: fbcRender.ID, Message: first})
	case packages == 0:
		c.noPackage = true
		emit(Finding{Rule: fbcNoPackage.ID, Message: "the catalog has no olm.package"})
	}
}

var pinnedPattern = lazyregexp.New(`@sha256:[a-fA-F0-9]{64}$`)

// findFragmentBundle has the rules of Konflux on a bundle of a catalog.
func findFragmentBundle(_ context.Context, b bundleCheck, emit Emit) {
	report := func(rule Rule, path []any, text string) {
		f := findingAt(b.bundle, path, text)
		f.Rule = rule.ID
		emit(f)
	}
	if b.ocp.known {
		objects := slices.IndexFunc(b.bundle.Properties, func(q declcfg.Property) bool { return q.Type == typeObject })
		metadata := slices.IndexFunc(b.bundle.Properties, func(q declcfg.Property) bool {
			return q.Type == typeMetadata
		})
		banned, needed, bannedAt, neededAt := typeObject, typeMetadata, objects, metadata
		if !b.ocp.atLeast(4, 17) {
			banned, needed, bannedAt, neededAt = typeMetadata, typeObject, metadata, objects
		}
		if bannedAt >= 0 {
			report(fbcMetadata, []any{"properties", bannedAt}, fmt.Sprintf(
				"the bundle has %s, which a catalog for OpenShift %s must not have", banned, b.ocp.text))
		}
		if neededAt < 0 {
			report(fbcMetadata, nil, fmt.Sprintf("the bundle has no %s, which a catalog for OpenShift %s must have",
				needed, b.ocp.text))
		}
	}
	if b.bundle.Image == "" {
		return
	}
	if !pinnedPattern().MatchString(b.bundle.Image) {
		report(fbcPinned, []any{"image"}, fmt.Sprintf("image %s is not pinned by a digest", b.bundle.Image))
	}
	if !slices.ContainsFunc(b.run.Data().FBCBundlePrefixes, func(p string) bool {
		return strings.HasPrefix(b.bundle.Image, p)
	}) {
		report(fbcRegistry, []any{"image"}, fmt.Sprintf("image %s is not in %s", b.bundle.Image,
			strings.Join(b.run.Data().FBCBundlePrefixes, " or ")))
	}
}
