package opmcache

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// rounded returns a catalog with numbers as opm reads them. It shares everything else with c, which does not change.
func rounded(c *declcfg.Catalog) (*declcfg.Catalog, error) {
	out := &declcfg.Catalog{
		Packages: c.Packages, Channels: c.Channels, Deprecations: c.Deprecations,
		Bundles: slices.Clone(c.Bundles), Others: slices.Clone(c.Others),
	}
	for i := range out.Bundles {
		b := &out.Bundles[i]
		b.Properties = slices.Clone(b.Properties)
		for j := range b.Properties {
			p := &b.Properties[j]
			if p.Type == declcfg.PropertyBundleObject {
				continue // a string
			}
			value, err := appendNumbers(make([]byte, 0, len(p.Value)), p.Value)
			if err != nil {
				return nil, fmt.Errorf("package %q, bundle %q, property of type %q: %w", b.Package, b.Name, p.Type, err)
			}
			p.Value = value
		}
	}
	for i := range out.Others {
		m := &out.Others[i]
		blob, err := appendNumbers(make([]byte, 0, len(m.Blob)), m.Blob)
		if err != nil {
			return nil, fmt.Errorf("blob of schema %q, package %q, name %q: %w", m.Schema, m.Package, m.Name, err)
		}
		m.Blob = blob
	}
	return out, nil
}

// appendNumbers appends canonical JSON as opm has it in memory, where every number is a float64. opm hashes that text,
// so it would refuse a digest of the exact numbers.
func appendNumbers(dst, text []byte) ([]byte, error) {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			end := jsonscan.StringEnd(text, i)
			if end < 0 {
				return nil, errors.New("a string without an end")
			}
			dst = append(dst, text[i:end]...)
			i = end
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(text) && bytes.IndexByte([]byte("+-.eE0123456789"), text[end]) >= 0 {
				end++
			}
			f, err := strconv.ParseFloat(string(text[i:end]), 64)
			if err != nil || math.IsInf(f, 0) {
				return nil, fmt.Errorf("the number %.40s is too large for opm, which cannot read the catalog",
					text[i:end])
			}
			number, err := json.Marshal(f)
			if err != nil {
				return nil, err
			}
			dst = append(dst, number...)
			i = end
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst, nil
}
