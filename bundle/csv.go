package bundle

import (
	"encoding/json"

	"github.com/operator-bindery/bindery/declcfg"
)

// CSV has the parts of a ClusterServiceVersion that a catalog needs.
type CSV struct {
	Object
	Version string
	Release string
	// Replaces, Skips, SkipRange and SubstitutesFor are the upgrade edges that the operator's author declares.
	Replaces, SkipRange, SubstitutesFor string
	Skips                               []string
	DisplayName, Description            string
	// IconData and IconMediaType are the first icon, in base64, and its media type.
	IconData, IconMediaType string
	RelatedImages           []declcfg.RelatedImage
	// Images are those of the containers and init containers of the deployments, sorted, without duplicates.
	Images []string
	// Owned and Required are the APIs of custom resources and of API services.
	Owned, Required []API
	Annotations     map[string]string
	// Spec is the spec as JSON.
	Spec json.RawMessage

	ownedCRDs  int                // the first of Owned are CRDs, the others API services
	properties []declcfg.Property // of the annotation olm.properties
}

// API is a group, version and kind with the plural name of its resource.
type API struct{ Group, Version, Kind, Plural string }
