package bundle

import (
	"encoding/json"

	"github.com/operator-bindery/bindery/declcfg"
)

// CSV has the fields of a ClusterServiceVersion that a catalog needs.
type CSV struct {
	Object
	Version string
	Release string
	// Replaces, Skips, SkipRange and SubstitutesFor are the edges that the operator's author wished for.
	Replaces, SkipRange, SubstitutesFor string
	Skips                               []string
	DisplayName, Description            string
	// Icon is the first of the icons: base64 and its media type.
	IconData, IconMediaType string
	RelatedImages           []RelatedImage
	// Images are those of the containers and init containers of the deployments, each once, sorted.
	Images []string
	// Owned and Required are the APIs, those of custom resources and of API services.
	Owned, Required []API
	Annotations     map[string]string
	// Spec is the spec as JSON.
	Spec json.RawMessage

	ownedCRDs  int                // the first of Owned are CRDs, the others API services
	properties []declcfg.Property // of the annotation olm.properties
}

// RelatedImage is an entry of spec.relatedImages.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// API is a group, version and kind with the plural name of its resource.
type API struct{ Group, Version, Kind, Plural string }
