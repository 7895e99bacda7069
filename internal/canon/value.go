package canon

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v2"
)

// value is a resolved YAML node; scalars have their text.
type value struct {
	kind kind
	text string // of scalars: JSON text, strings unescaped
	*collection
}

// collection is the content of a sequence or of a mapping sorted by keys.
type collection struct {
	keys  []string
	items []value
}

type kind uint8

const (
	kindNull kind = iota // the zero value: the library does not set targets of nulls
	kindString
	kindLiteral // text is JSON: a number, true or false
	kindSequence
	kindMapping
	kindInvalid // text is the error; it is reported unless a later equal key replaces the value
)

// UnmarshalYAML decodes a node of any kind. The library does not tell the kind, so each is tried.
func (v *value) UnmarshalYAML(unmarshal func(any) error) error {
	var other *yaml.TypeError
	var text string
	err := unmarshal(&text)
	if err == nil {
		var meaning any
		if err := unmarshal(&meaning); err != nil {
			return err
		}
		return v.setScalar(text, meaning)
	}
	if !errors.As(err, &other) {
		return err
	}
	var pairs map[key]value
	if err = unmarshal(&pairs); err == nil {
		return v.setMapping(pairs)
	} else if !errors.As(err, &other) {
		return err
	}
	v.kind, v.collection = kindSequence, &collection{}
	return unmarshal(&v.items)
}

// invalid returns a value that JSON cannot represent. It is an error only if it remains: the library takes the last of
// equal keys.
func invalid(message string) value { return value{kind: kindInvalid, text: message} }

func (v *value) setMapping(pairs map[key]value) error {
	v.kind, v.collection = kindMapping, &collection{keys: make([]string, 0, len(pairs)),
		items: make([]value, len(pairs))}
	for k := range pairs {
		if !k.set {
			*v = invalid("yaml: unsupported map key of type: null")
			return nil
		}
		v.keys = append(v.keys, k.name)
	}
	slices.Sort(v.keys)
	for i, name := range v.keys {
		v.items[i] = pairs[key{name, true}]
	}
	return nil
}

// UnmarshalText receives quoted strings that look like null, for which the library does not call UnmarshalYAML.
func (v *value) UnmarshalText(text []byte) error {
	*v = value{kind: kindString, text: string(text)}
	return nil
}

func (v *value) setScalar(text string, meaning any) error {
	v.kind = kindLiteral
	switch m := meaning.(type) {
	case nil:
		v.kind = kindNull
	case string:
		v.kind, v.text = kindString, m
	case bool:
		v.text = strconv.FormatBool(m)
	case int:
		v.text = exactInt(text, strconv.Itoa(m))
	case int64:
		v.text = exactInt(text, strconv.FormatInt(m, 10))
	case uint64:
		v.text = exactInt(text, strconv.FormatUint(m, 10))
	case float64:
		if math.IsInf(m, 0) || math.IsNaN(m) {
			*v = invalid(fmt.Sprintf("yaml: unsupported value: %v", m))
			return nil
		}
		v.text = exactFloat(text, m)
	default:
		return fmt.Errorf("yaml: unsupported value of type %T", meaning)
	}
	return nil
}

// key is a mapping's key as a string. It is a struct so that a null key, for which the library does not call
// UnmarshalYAML, differs from an empty string.
type key struct {
	name string
	set  bool
}

func (k *key) UnmarshalYAML(unmarshal func(any) error) error {
	var meaning any
	if err := unmarshal(&meaning); err != nil {
		return err
	}
	name, err := keyText(meaning)
	*k = key{name: name, set: true}
	return err
}

// UnmarshalText works like that of value.
func (k *key) UnmarshalText(text []byte) error {
	*k = key{name: string(text), set: true}
	return nil
}

// keyText returns the text of a resolved scalar as a JSON key.
func keyText(meaning any) (string, error) {
	switch m := meaning.(type) {
	case string:
		return m, nil
	case bool:
		return strconv.FormatBool(m), nil
	case int:
		return strconv.Itoa(m), nil
	case int64:
		return strconv.FormatInt(m, 10), nil
	case uint64:
		return strconv.FormatUint(m, 10), nil
	case float64:
		return floatKey(m), nil
	case map[any]any, []any:
		return "", errors.New("yaml: invalid map key: a collection")
	}
	return "", errors.New("yaml: unsupported map key of type: null")
}

// floatKey formats a fraction as opm's YAML library does for keys: rounded to float32, with infinity beyond.
func floatKey(f float64) string {
	switch text := strconv.FormatFloat(f, 'g', -1, 32); text {
	case "+Inf":
		return ".inf"
	case "-Inf":
		return "-.inf"
	case "NaN":
		return ".nan"
	default:
		return text
	}
}
