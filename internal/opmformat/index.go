package opmformat

// Index is what both formats have under the name [IndexName]. The case of the keys is opm's.
type Index map[string]Package

type Package struct {
	Name           string             `json:"name"`
	Description    string             `json:"description"`
	Icon           *Icon              `json:"icon"`
	DefaultChannel string             `json:"defaultChannel"`
	Channels       map[string]Channel `json:"Channels"`
	Deprecation    *Deprecation       `json:"deprecation,omitempty"`
}

type Icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type Channel struct {
	Name        string           `json:"Name"`
	Head        string           `json:"Head"`
	Bundles     map[string]Entry `json:"Bundles"`
	Deprecation *Deprecation     `json:"deprecation,omitempty"`
}

type Entry struct {
	Package  string   `json:"package"`
	Channel  string   `json:"channel"`
	Name     string   `json:"name"`
	Replaces string   `json:"replaces"`
	Skips    []string `json:"skips"`
}

type Deprecation struct {
	Message string `json:"message"`
}

// Text is the message, or nil where there is none.
func (d *Deprecation) Text() *string {
	if d == nil {
		return nil
	}
	return &d.Message
}
