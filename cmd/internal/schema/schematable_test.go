package schema_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/cmd/internal/app"
	bundlecmd "github.com/operator-bindery/bindery/cmd/internal/bundle"
	cachecmd "github.com/operator-bindery/bindery/cmd/internal/cache"
	catalogcmd "github.com/operator-bindery/bindery/cmd/internal/catalog"
	checkcmd "github.com/operator-bindery/bindery/cmd/internal/check"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	migratecmd "github.com/operator-bindery/bindery/cmd/internal/migrate"
	mirrorcmd "github.com/operator-bindery/bindery/cmd/internal/mirror"
	repositorycmd "github.com/operator-bindery/bindery/cmd/internal/repository"
	schemacmd "github.com/operator-bindery/bindery/cmd/internal/schema"
	signcmd "github.com/operator-bindery/bindery/cmd/internal/sign"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/diff"
	"github.com/operator-bindery/bindery/declcfg/lifecycle"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/schemagen"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/migrate/jobs"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imagemap"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
	"github.com/operator-bindery/bindery/sqlite"
	"github.com/operator-bindery/bindery/supply/publish"
)

// text returns the text of a schema.
func (d schemaRow) text(t *testing.T, g *schemagen.Generator) []byte {
	t.Helper()
	if d.tag == "" {
		d.tag = "json"
	}
	o, err := g.Schema(schemagen.Root{ID: schemaID + d.name + ".json", Title: d.title, Description: d.description,
		Type: d.of, Tag: d.tag, Read: d.read, Upstream: d.upstream})
	if err != nil {
		t.Fatal(err)
	}
	if d.adjust != nil {
		d.adjust(o)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// schemaID is the address of a schema, by its name.
const schemaID = "https://raw.githubusercontent.com/operator-bindery/bindery/main/docs/reference/schemas/"

// schemaRow is a schema that is made of a type.
type schemaRow struct {
	name, title, description string
	of                       reflect.Type
	tag                      string // of its fields; "json" if empty
	read                     bool   // the program reads it and accepts $schema in it
	upstream                 bool   // the program reads it, and other programs define it: without $schema
	adjust                   func(schemagen.Object)
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// describedSchemas are all schemas.
var describedSchemas = []schemaRow{
	// Files that are read.
	{name: "selection", title: "Selection of packages, channels and versions",
		description: "The file of catalog filter --selection: what is kept of a catalog.",
		of:          typeOf[catalogcmd.SelectionFile](), read: true, adjust: func(o schemagen.Object) {
			member(o, "packages")["minItems"] = 1
			member(o, "packages")["type"] = "array"
		}},
	{name: "compose", title: "Composite of the catalogs of many teams",
		description: "The file of build compose: one image for each package.",
		of:          typeOf[composeForm](), read: true, adjust: func(o schemagen.Object) {
			member(o, "references")["minItems"] = 1
			member(o, "references")["maxItems"] = 5000
		}},
	{name: "lock", title: "Lock file of images",
		description: "The file of --lock: the digest of each image that was used, so that a build can be repeated.",
		of:          typeOf[lockForm](), read: true},
	{name: "template-semver", title: "Template of the type semver",
		description: "A list of bundle images, from whose versions channels are generated.",
		of:          typeOf[semverForm](), read: true},
	{name: "template-basic", title: "Template of the type basic",
		description: "A catalog with the image of each bundle in place of the bundle.",
		of:          typeOf[basicForm](), read: true, adjust: basicEntries},
	{name: "template-substitutes", title: "Template of the type substitutes",
		description: "A catalog and the bundles that take the place of others in it.",
		of:          typeOf[substitutesForm](), read: true, adjust: catalogEntries},
	{name: "waivers", title: "Waivers of check",
		description: "The file of check --waivers: findings that are accepted for a reason, until a day.",
		of:          typeOf[waiversForm](), read: true},
	{name: "rule-data", title: "Rule data of check",
		description: "The file of check --rule-data: what an installation of a pipeline demands. Other keys are " +
			"accepted, as the file is that of a whole policy.",
		of: typeOf[ruleDataForm](), read: true, adjust: ruleData},
	{name: "snapshot", title: "Release snapshot",
		description: "The file of check --snapshot: images that are released together. Other members are accepted.",
		of:          typeOf[snapshotForm](), read: true, adjust: snapshotData},
	{name: "image-set", title: "ImageSetConfiguration",
		description: "What is mirrored: releases, catalogs, what is kept of them, the images of charts, and other images. samples " +
			"are only passed over.",
		of: typeOf[imageSetForm](), upstream: true},
	{name: "delete-image-set", title: "DeleteImageSetConfiguration",
		description: "Which images are listed for deletion at a mirror.",
		of:          typeOf[deleteSetForm](), upstream: true},
	{name: "delete-list", title: "List of images to delete",
		description: "What mirror delete writes with --config, and reads with --list.",
		of:          typeOf[mirror.DeleteList](), upstream: true, adjust: func(o schemagen.Object) {
			member(o, "kind")["const"] = "DeleteImageList"
		}},

	// Blobs of catalogs.
	{name: "olm.package", title: "Package of a catalog", description: blobText,
		of: typeOf[packageForm](), upstream: true},
	{name: "olm.channel", title: "Channel of a catalog", description: blobText,
		of: typeOf[channelForm](), upstream: true, adjust: needsEntry},
	{name: "olm.bundle", title: "Bundle of a catalog", description: blobText,
		of: typeOf[bundleForm](), upstream: true, adjust: func(o schemagen.Object) {
			member(o, "properties")["minItems"] = 1
		}},
	{name: "olm.deprecations", title: "Deprecations of a catalog", description: blobText,
		of: typeOf[deprecationsForm](), upstream: true, adjust: needsEntry},
	{name: "catalog", title: "Blob of a catalog",
		description: "Each document of a catalog is valid against it: a blob of the four schemas, or one of another " +
			"schema with any members.",
		of: typeOf[catalogForm](), upstream: true, adjust: anyBlob},

	// Files that are written.
	{name: "migrate-report", title: "Report of a migration",
		description: "The file of migrate --report: what was found in the database and what became of it.",
		of:          typeOf[migrate.Report]()},
	{name: "migrate-result", title: "Line of the results of a list of migrations",
		description: "A line of the file of migrate --results.", of: typeOf[migratecmd.LineResult]()},
	{name: "migrate-record", title: "Record of a line of a list of migrations",
		description: "A file in the directory of migrate --report-dir: what was written for a line.",
		of:          typeOf[jobs.Record]()},
	{name: "edit-account", title: "Account of an edit",
		description: "The file of --account of commands that edit catalogs.", of: typeOf[catalogcmd.Account]()},
	{name: "mirror-account", title: "Account of a mirror",
		description: "The file of --account of mirror run and mirror publish, and their answer in JSON.",
		of:          typeOf[mirror.Account]()},
	{name: "build-metadata", title: "Account of an image that was written",
		description: "The file of --metadata-file of commands that write images.", of: typeOf[publish.Metadata]()},
	{name: "build-plan", title: "Plan of an image",
		description: "The file of --metadata-file with --dry-run: the layers that an image would have.",
		of:          typeOf[build.Planned]()},
	{name: "mirror-inventory", title: "Inventory of a registry",
		description: "What mirror inventory writes: repositories with tags, manifests and blobs.",
		of:          typeOf[inventoryForm]()},

	// Answers.
	{name: "list-packages", title: "Packages of a catalog", description: "The answer of list packages.",
		of: typeOf[[]list.Package]()},
	{name: "list-lifecycles", title: "Lifecycles of the packages of a catalog",
		description: "The answer of list packages --lifecycle.", of: typeOf[[]lifecycle.Package]()},
	{name: "list-channels", title: "Channels of a catalog", description: "The answer of list channels.",
		of: typeOf[[]list.Channel]()},
	{name: "list-bundles", title: "Bundles of a catalog", description: "The answer of list bundles.",
		of: typeOf[[]list.Bundle]()},
	{name: "list-images", title: "Images of a catalog", description: "The answer of list images.",
		of: typeOf[[]list.Image]()},
	{name: "list-images-by", title: "Images of a catalog in groups", description: "The answer of list images --by.",
		of: typeOf[[]list.ImageGroup]()},
	{name: "diff", title: "Difference of two catalogs", description: "The answer of diff.",
		of: typeOf[diff.Report]()},
	{name: "diff-manifests", title: "Difference of what two bundles apply",
		description: "The answer of diff --manifests.", of: typeOf[upgrade.Report]()},
	{name: "validate", title: "Validity of a catalog", description: "The answer of validate.",
		of: typeOf[checkcmd.Verdict]()},
	{name: "bundle-validate", title: "Validity of a bundle", description: "The answer of bundle validate.",
		of: typeOf[bundlecmd.Verdict]()},
	{name: "inspect", title: "Catalog image", description: "The answer of inspect, and of verify without keys.",
		of: typeOf[inspect.Report]()},
	{name: "verify-keys", title: "Signatures of an image, verified with keys or by an identity",
		description: "The answer of verify --key, and of verify --certificate-identity.", of: typeOf[signature.Report]()},
	{name: "verify-policy", title: "Signatures of an image, judged by a policy",
		description: "The answer of verify --signatures.", of: typeOf[signcmd.PolicyVerdict]()},
	{name: "sign", title: "Signatures or attestations that were written", description: "The answer of sign and attest.",
		of: typeOf[signcmd.MadeForImage]()},
	{name: "attach", title: "File that was attached to an image", description: "The answer of attach.",
		of: typeOf[signcmd.AttachedFile]()},
	{name: "tree", title: "What is attached to an image", description: "The answer of tree.",
		of: typeOf[signcmd.NamedTree]()},
	{name: "copy", title: "Images that were copied", description: "The answer of copy.", of: typeOf[signcmd.CopiedImages]()},
	{name: "check", title: "Findings of check", description: "The answer of check.", of: typeOf[rules.Report]()},
	{name: "check-rules", title: "Rules of check", description: "The answer of check --list.",
		of: typeOf[[]rules.Rule]()},
	{name: "check-rule", title: "Rule of check", description: "The answer of check --explain.",
		of: typeOf[rules.Rule]()},
	{name: "resolve", title: "Bundle that OLM v1 installs", description: "The answer of resolve.",
		of: typeOf[checkcmd.Resolved]()},
	{name: "resolve-v0", title: "Bundles that OLM v0 installs", description: "The answer of resolve --v0.",
		of: typeOf[checkcmd.ResolvedV0]()},
	{name: "version", title: "Version of the program", description: "The answer of version.",
		of: typeOf[app.VersionReport]()},
	{name: "schemas", title: "Names of schemas", description: "The answer of schema without a name.",
		of: typeOf[schemacmd.List]()},
	{name: "cache-info", title: "Cache of the user", description: "The answer of cache info.",
		of: typeOf[cachecmd.Counts]()},
	{name: "cache-prune", title: "What was removed from the cache", description: "The answer of cache prune.",
		of: typeOf[cachecmd.Pruned]()},
	{name: "tags", title: "Tags of a repository", description: "The answer of tags.",
		of: typeOf[repositorycmd.Tags]()},
	{name: "mirror-plan", title: "Plan of a mirror", description: "The answer of mirror plan.",
		of: typeOf[mirror.Plan]()},
	{name: "mirror-stock", title: "What an inventory of a registry has",
		description: "The answer of mirror inventory.", of: typeOf[mirrorcmd.Inventoried]()},
	{name: "mirror-verify", title: "What a mirror lacks", description: "The answer of mirror verify.",
		of: typeOf[mirror.Verification]()},
	{name: "mirror-deleted", title: "Images that were deleted", description: "The answer of mirror delete --list.",
		of: typeOf[mirror.Deletion]()},
	{name: "image-mapping", title: "Images and their places at a mirror", description: "The answer of registry mirror.",
		of: typeOf[[]imagemap.Mapping]()},
	{name: "error", title: "Error", description: "The line on standard error with --error-format json.",
		of: typeOf[cmdline.JSONError]()},
}

// schemaGenerator makes the schemas. Its enumerations are complete: a value that is not one of the constants is an
// error.
func schemaGenerator() *schemagen.Generator {
	return &schemagen.Generator{
		Module: "github.com/operator-bindery/bindery", Dir: "../../..",
		Enums: []reflect.Type{
			typeOf[rules.Severity](), typeOf[rules.State](), typeOf[rules.Scope](), typeOf[rules.Profile](),
			typeOf[diff.Change](), typeOf[mirror.Status](), typeOf[mirror.Kind](), typeOf[mirror.Mode](),
			typeOf[filter.Level](), typeOf[jobs.State](), typeOf[edit.Kind](), typeOf[edit.Action](),
			typeOf[change.Kind](), typeOf[sqlite.FindingKind](), typeOf[store.How](), typeOf[bundle.Severity](),
			typeOf[inspect.Kind](), typeOf[inspect.CacheFormat](), typeOf[inspect.CacheState](),
		},
		Schemas: map[reflect.Type]schemagen.Object{
			typeOf[declcfg.Problem](): problemSchema,
			typeOf[filter.Entry]():    entrySchema,
			typeOf[inventoryBlob]():   blobSchema,
		},
	}
}
