package declcfg

import "encoding/json"

// The annotations of a ClusterServiceVersion that decide on upgrades.
const (
	AnnotationSkipRange = "olm.skipRange"
	// AnnotationSubstitutesFor has the name of the bundle that this bundle substitutes for.
	AnnotationSubstitutesFor = "olm.substitutesFor"
)

// Origin has the upgrade edges that a bundle declares for itself, independent of channels: its ClusterServiceVersion has
// them, and databases store them in columns of the bundle's row. File-based catalogs have only the edges in each channel
// that result.
type Origin struct {
	Replaces       string
	Skips          []string
	SubstitutesFor string
}

// CSV is a ClusterServiceVersion of which values are read one by one. A value of another kind than it should have counts
// as missing, and the others are read all the same: what reads whole bundles reports it.
type CSV struct {
	object struct {
		Metadata struct {
			Name        json.RawMessage            `json:"name"`
			Annotations map[string]json.RawMessage `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			DisplayName json.RawMessage `json:"displayName"`
			Replaces    json.RawMessage `json:"replaces"`
			Skips       json.RawMessage `json:"skips"`
			Icon        json.RawMessage `json:"icon"`
		} `json:"spec"`
	}
}

// ReadCSV reads a ClusterServiceVersion in JSON, such as [Bundle.CSV] returns.
func ReadCSV(object []byte) *CSV {
	c := &CSV{}
	_ = json.Unmarshal(object, &c.object) // goes on after values of other kinds
	return c
}

// Name returns the name of the object.
func (c *CSV) Name() string { return valueOf[string](c.object.Metadata.Name) }

// DisplayName returns the name that user interfaces show.
func (c *CSV) DisplayName() string { return valueOf[string](c.object.Spec.DisplayName) }

// Origin returns the edges.
func (c *CSV) Origin() Origin {
	return Origin{
		Replaces:       valueOf[string](c.object.Spec.Replaces),
		Skips:          valueOf[[]string](c.object.Spec.Skips),
		SubstitutesFor: valueOf[string](c.object.Metadata.Annotations[AnnotationSubstitutesFor]),
	}
}

// SkipRange returns the range of the versions that the bundle skips.
func (c *CSV) SkipRange() string {
	return valueOf[string](c.object.Metadata.Annotations[AnnotationSkipRange])
}

// Icon returns the first icon; nil if there is none, or its data is not base64.
func (c *CSV) Icon() *Icon {
	icons := valueOf[[]struct {
		Data      string `json:"base64data"`
		MediaType string `json:"mediatype"`
	}](c.object.Spec.Icon)
	if len(icons) == 0 {
		return nil
	}
	icon, _ := NewIcon(icons[0].Data, icons[0].MediaType)
	return icon
}

// valueOf decodes a value; the result is zero if it is of another kind.
func valueOf[T any](value json.RawMessage) T {
	var v, zero T
	if json.Unmarshal(value, &v) != nil {
		return zero
	}
	return v
}
