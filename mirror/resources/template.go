package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// maxTemplate bounds the size of a template in bytes.
const maxTemplate = 1 << 20

// Template is a CatalogSource whose name, image and type are filled in; everything else in it stays.
type Template struct{ text []byte }

// ReadTemplate reads a CatalogSource in YAML or JSON from a file and checks that it can be filled in.
func ReadTemplate(ctx context.Context, path string) (*Template, error) {
	data, err := regularfile.ReadMounted(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("targetCatalogSourceTemplate: %w", err)
	}
	t, err := parseTemplate(data)
	if err != nil {
		return nil, fmt.Errorf("targetCatalogSourceTemplate %s: %w", path, err)
	}
	return t, nil
}

// parseTemplate is like [ReadTemplate], for a text. Errors are [fault.ErrInvalid].
func parseTemplate(data []byte) (*Template, error) {
	limits := canon.Limits{MaxDocument: maxTemplate, MaxIrregular: maxTemplate, MaxDepth: 50}
	split := canon.NewSplitter(bytes.NewReader(data), limits)
	doc, err := split.Next()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fault.ErrInvalid, err)
	}
	conv := canon.Converter{Limits: limits}
	doc.Data = bytes.Clone(doc.Data)
	text, err := conv.Append(nil, doc)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fault.ErrInvalid, err)
	}
	if _, err := split.Next(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: more than one document", fault.ErrInvalid)
	}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			SourceType string `json:"sourceType"`
			ConfigMap  string `json:"configMap"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", fault.ErrInvalid, err)
	}
	const version, kind = "operators.coreos.com/v1alpha1", "CatalogSource"
	switch {
	case head.APIVersion != version || head.Kind != kind:
		return nil, fmt.Errorf("%w: %s %s is not %s %s", fault.ErrInvalid, fault.Quote(head.APIVersion),
			fault.Quote(head.Kind), version, kind)
	case head.Spec.SourceType != "" && head.Spec.SourceType != "grpc":
		return nil, fmt.Errorf("%w: the sourceType %s is not grpc", fault.ErrInvalid, fault.Quote(head.Spec.SourceType))
	case head.Spec.ConfigMap != "":
		return nil, fmt.Errorf("%w: it has a configMap, and an image is filled in", fault.ErrInvalid)
	}
	return &Template{text}, nil
}

// object returns a copy of the template with metadata and spec, without what only a cluster writes.
func (t *Template) object() object {
	var out object
	dec := json.NewDecoder(bytes.NewReader(t.text))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		panic(err) // ReadTemplate has read the same text
	}
	delete(out, "status")
	for _, field := range []string{"metadata", "spec"} {
		if _, ok := out[field].(object); !ok {
			out[field] = object{}
		}
	}
	delete(out["metadata"].(object), "creationTimestamp")
	return out
}
