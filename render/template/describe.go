package template

import (
	"encoding/json"
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
)

// describe gives a package the description and first icon of a bundle's ClusterServiceVersion, if it has them; warn is
// called for undecodable parts.
func describe(pkg *declcfg.Package, b declcfg.Bundle, warn func(declcfg.Position, string)) {
	tell := func(what string, err error) {
		if warn != nil {
			warn(declcfg.Position{},
				fmt.Sprintf("package %q gets no %s from bundle %q: %v", pkg.Name, what, b.Name, err))
		}
	}
	object, err := b.CSV()
	if err != nil {
		tell("description and no icon", err)
		return
	}
	if object == nil {
		return
	}
	var csv struct {
		Spec struct {
			Description string `json:"description"`
			Icon        []struct {
				Data      string `json:"base64data"`
				MediaType string `json:"mediatype"`
			} `json:"icon"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(object, &csv); err != nil {
		tell("description and no icon", err)
		return
	}
	pkg.Description = csv.Spec.Description
	if len(csv.Spec.Icon) == 0 {
		return
	}
	if pkg.Icon, err = declcfg.NewIcon(csv.Spec.Icon[0].Data, csv.Spec.Icon[0].MediaType); err != nil {
		tell("icon", err)
	}
}
