package schema_test

import (
	"encoding/json"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/testing/schemagen"
)

// The forms of files that are not decoded into one type, for their schemas. A field that is not omitempty is required.

type composeForm struct {
	// Name of the catalog.
	Name string `json:"name,omitempty"`
	// Repository of the image, without a tag.
	Repo string `json:"repo,omitempty"`
	// Tag of the image.
	Tag string `json:"tag,omitempty"`
	// The catalogs that the composite is made of.
	References []struct {
		// Name of the package.
		Name string `json:"name"`
		// Image of its catalog.
		Image string `json:"image"`
	} `json:"references"`
}

type lockForm struct {
	Version int `json:"version" enum:"1"`
	// The digest of each image, by its name without "docker://".
	Images map[string]string `json:"images,omitempty"`
}

type semverForm struct {
	Schema string `json:"schema" enum:"olm.semver"`
	// Generate a channel for each major version, such as stable-v1.
	GenerateMajorChannels bool `json:"generateMajorChannels,omitempty"`
	// Generate a channel for each minor version, such as stable-v1.2; it is the default.
	GenerateMinorChannels bool `json:"generateMinorChannels,omitempty"`
	// Which channels the default channel is chosen from.
	DefaultChannelTypePreference string `json:"defaultChannelTypePreference,omitempty" enum:"major|minor"`
	// Bundles of the channels of candidates.
	Candidate *semverBundles `json:"candidate,omitempty"`
	// Bundles of the fast channels.
	Fast *semverBundles `json:"fast,omitempty"`
	// Bundles of the stable channels.
	Stable *semverBundles `json:"stable,omitempty"`
}

type semverBundles struct {
	Bundles []struct {
		Image string `json:"image"`
	} `json:"bundles,omitempty"`
}

type basicForm struct {
	Schema string `json:"schema" enum:"olm.template.basic"`
	// The blobs of the catalog; a bundle has only its schema and its image.
	Entries []json.RawMessage `json:"entries,omitempty"`
}

type substitutesForm struct {
	Schema string `json:"schema" enum:"olm.template.substitutes"`
	// The blobs of the catalog.
	Entries []json.RawMessage `json:"entries,omitempty"`
	// The bundles that take the place of others, in this order.
	Substitutions []struct {
		// Image of the bundle that takes the place.
		Name string `json:"name"`
		// Name of the bundle whose place it takes.
		Base string `json:"base"`
	} `json:"substitutions,omitempty"`
}

type waiversForm struct {
	Waivers []struct {
		// Identifier of the rule, such as bundle.image-digest.
		Rule string `json:"rule"`
		// Why the findings are accepted.
		Reason string `json:"reason"`
		// The last day on which the waiver counts, such as 2027-01-31, in UTC.
		Until string `json:"until"`
		// Name of a package; * stands for any text.
		Package string `json:"package,omitempty"`
		// Name of a channel; * stands for any text.
		Channel string `json:"channel,omitempty"`
		// Name of a bundle; * stands for any text.
		Bundle string `json:"bundle,omitempty"`
		// Name of a file; * stands for any text without /.
		File string `json:"file,omitempty"`
	} `json:"waivers,omitempty"`
}

type ruleDataForm struct {
	rules.Data
	// The keys, in a file that has other things beside them.
	RuleData *rules.Data `json:"rule_data,omitempty"`
}

type snapshotForm struct {
	Components []snapshotComponent `json:"components,omitempty"`
	// The spec of a Snapshot resource.
	Spec *struct {
		Components []snapshotComponent `json:"components"`
	} `json:"spec,omitempty"`
}

type snapshotComponent struct {
	Name           string `json:"name,omitempty"`
	ContainerImage string `json:"containerImage"`
}

type imageSetForm struct {
	Kind       string `json:"kind" enum:"ImageSetConfiguration"`
	APIVersion string `json:"apiVersion,omitempty" enum:"mirror.openshift.io/v2alpha1|mirror.openshift.io/v1alpha2"`
	// Size of the files of an archive in GiB.
	ArchiveSize int `json:"archiveSize,omitempty"`
	// What is mirrored.
	Mirror struct {
		imageSetContent
		// Images that are left out.
		BlockedImages []struct {
			// A regular expression that is searched for in the names of images.
			Name string `json:"name"`
		} `json:"blockedImages,omitempty"`
	} `json:"mirror"`
}

type deleteSetForm struct {
	Kind       string `json:"kind" enum:"DeleteImageSetConfiguration"`
	APIVersion string `json:"apiVersion,omitempty" enum:"mirror.openshift.io/v2alpha1|mirror.openshift.io/v1alpha2"`
	// What is deleted.
	Delete imageSetContent `json:"delete"`
}

type imageSetContent struct {
	// Catalogs, and what is kept of them.
	Operators []imageSetOperator `json:"operators,omitempty"`
	// Images that no catalog names.
	AdditionalImages []struct {
		Name       string             `json:"name"`
		TargetRepo string             `json:"targetRepo,omitempty"`
		TargetTag  string             `json:"targetTag,omitempty"`
		Platforms  []imageSetPlatform `json:"platforms,omitempty"`
	} `json:"additionalImages,omitempty"`
	// Releases of OpenShift and OKD.
	Platform *imageSetRelease `json:"platform,omitempty"`
	// Charts whose images are mirrored.
	Helm *imageSetHelm `json:"helm,omitempty"`
	// Not mirrored by this program.
	Samples []struct {
		Name string `json:"name,omitempty"`
	} `json:"samples,omitempty"`
}

type imageSetOperator struct {
	// Name of the catalog with a tag or a digest, or oci://DIRECTORY.
	Catalog string `json:"catalog"`
	// All versions of what is kept, in place of the heads of channels.
	Full bool `json:"full,omitempty"`
	// Path of the catalog at the destination.
	TargetCatalog string `json:"targetCatalog,omitempty"`
	// Tag of the catalog at the destination.
	TargetTag string `json:"targetTag,omitempty"`
	// File from which the CatalogSource is made.
	TargetCatalogSourceTemplate string             `json:"targetCatalogSourceTemplate,omitempty"`
	SkipDependencies            bool               `json:"skipDependencies,omitempty"`
	Platforms                   []imageSetPlatform `json:"platforms,omitempty"`
	Packages                    []struct {
		Name           string `json:"name"`
		DefaultChannel string `json:"defaultChannel,omitempty"`
		MinVersion     string `json:"minVersion,omitempty"`
		MaxVersion     string `json:"maxVersion,omitempty"`
		Channels       []struct {
			Name       string `json:"name"`
			MinVersion string `json:"minVersion,omitempty"`
			MaxVersion string `json:"maxVersion,omitempty"`
		} `json:"channels,omitempty"`
	} `json:"packages,omitempty"`
}

type imageSetPlatform struct {
	OS           string `json:"os,omitempty"`
	Architecture string `json:"architecture,omitempty"`
}

type imageSetRelease struct {
	// The image with the data of update graphs, for the update service of a cluster.
	Graph bool `json:"graph,omitempty"`
	// Of the releases: amd64 if none is given, arm64, ppc64le, s390x, multi.
	Architectures []string `json:"architectures,omitempty"`
	// The parts of multi-architecture releases to copy, in place of architectures.
	Platforms []imageSetPlatform `json:"platforms,omitempty"`
	// One release by tag or digest, in place of channels.
	Release string `json:"release,omitempty"`
	// The boot images of virtual machines.
	KubeVirtContainer bool `json:"kubeVirtContainer,omitempty"`
	Channels          []struct {
		Name string `json:"name,omitempty"`
		// Either ocp, the default, or okd.
		Type string `json:"type,omitempty"`
		// Lowest version, as X.Y.Z or X.Y.Z-PRERELEASE.
		MinVersion string `json:"minVersion,omitempty"`
		// Highest version, as X.Y.Z or X.Y.Z-PRERELEASE.
		MaxVersion string `json:"maxVersion,omitempty"`
		// The versions on a shortest path of updates alone.
		ShortestPath bool `json:"shortestPath,omitempty"`
		// All versions, if there are no bounds.
		Full bool `json:"full,omitempty"`
	} `json:"channels,omitempty"`
}

type imageSetHelm struct {
	// Charts in files and directories.
	Local        []imageSetChart `json:"local,omitempty"`
	Repositories []struct {
		Name string `json:"name,omitempty"`
		// Where the index of a repository is, https://..., or a path at a registry, oci://HOST/PATH.
		URL string `json:"url,omitempty"`
		// Every version of every chart if there is no list.
		Charts []imageSetChart `json:"charts,omitempty"`
	} `json:"repositories,omitempty"`
}

type imageSetChart struct {
	Name string `json:"name,omitempty"`
	// A version or a range, of which the newest is taken; the newest of all but pre-releases if there is none.
	Version string `json:"version,omitempty"`
	// Archive or directory of a local chart.
	Path string `json:"path,omitempty"`
	// JSONPath expressions that find further images in the objects of the chart.
	ImagePaths []string `json:"imagePaths,omitempty"`
	// The only platforms of indexes to copy.
	Platforms []imageSetPlatform `json:"platforms,omitempty"`
}

type inventoryForm struct {
	Inventory string `json:"inventory" enum:"registry"`
	Version   int    `json:"version" enum:"1"`
	// Host of the registry.
	Registry string `json:"registry"`
	// What the names of all repositories begin with.
	Path         string `json:"path,omitempty"`
	Repositories []struct {
		Name string `json:"name"`
		// The digest of each tag.
		Tags      map[string]string `json:"tags"`
		Manifests []string          `json:"manifests"`
		Blobs     []inventoryBlob   `json:"blobs"`
	} `json:"repositories"`
}

type inventoryBlob struct{}

// problemSchema is that of a problem of a catalog, which encodes itself.
var problemSchema = schemagen.Object{"type": "object", "additionalProperties": false,
	"required": []string{"rule", "message"}, "properties": schemagen.Object{
		"rule": text, "message": text, "package": text, "channel": text, "bundle": text, "file": text,
		"line":   schemagen.Object{"type": "integer", "minimum": 1},
		"column": schemagen.Object{"type": "integer", "minimum": 1},
	}}

// entrySchema is that of an entry of a channel as a list: its name, what it replaces and skips.
var entrySchema = schemagen.Object{"type": "array", "minItems": 1, "maxItems": 4, "items": false,
	"prefixItems": []any{text, text, schemagen.Object{"type": "array", "items": text}, text}}

// blobSchema is that of a blob of a registry: its digest and its size.
var blobSchema = schemagen.Object{"type": "array", "minItems": 2, "maxItems": 2, "items": false,
	"prefixItems": []any{text, schemagen.Object{"type": "integer", "minimum": 0}}}

var text = schemagen.Object{"type": "string"}

// ruleData accepts the keys of a whole policy, but not those that are meant for this program and that it does not know.
func ruleData(o schemagen.Object) {
	for _, at := range []schemagen.Object{o, o["$defs"].(schemagen.Object)["data"].(schemagen.Object)} {
		known := []string{}
		for name := range at["properties"].(schemagen.Object) {
			known = append(known, name)
		}
		at["additionalProperties"] = true
		at["propertyNames"] = schemagen.Object{"anyOf": []any{schemagen.Object{"enum": sorted(known)},
			schemagen.Object{"not": schemagen.Object{"pattern": "^(fbc_|openshift_|allowed_olm_)"}}}}
	}
}

// snapshotData accepts the members of a Kubernetes resource and of the tools that write snapshots.
func snapshotData(o schemagen.Object) {
	spec := member(o, "spec")
	delete(o["properties"].(schemagen.Object)["spec"].(schemagen.Object), "anyOf")
	for _, at := range []schemagen.Object{o, spec,
		o["$defs"].(schemagen.Object)["snapshotComponent"].(schemagen.Object)} {
		at["additionalProperties"] = true
	}
	for _, at := range []schemagen.Object{o, spec} {
		member(at, "components")["minItems"] = 1
		member(at, "components")["type"] = "array"
	}
	o["anyOf"] = []any{schemagen.Object{"required": []string{"components"}},
		schemagen.Object{"required": []string{"spec"}}}
}
