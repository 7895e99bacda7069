package schemagen

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Sample returns a value of a type in which everything is set: lists and maps have one item, and texts of an
// enumeration one of its values. A type that contains itself ends after a few levels.
func (g *Generator) Sample(t reflect.Type) any {
	v := reflect.New(t).Elem()
	g.fill(v, 0)
	return v.Interface()
}

const deepest = 8

func (g *Generator) fill(v reflect.Value, depth int) {
	if depth > deepest || !v.CanSet() {
		return
	}
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1e9, 0).UTC()))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{}`))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
		if values := g.Values(v.Type()); len(values) > 0 {
			v.SetString(values[0])
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf("text"))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		g.fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		g.fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		g.fill(key, depth+1)
		g.fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			g.fill(v.Field(i), depth+1)
			if first, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("enum"),
				"|"); first != "" && v.Field(i).Kind() == reflect.String {
				v.Field(i).SetString(first)
			}
		}
	}
}

// Empty returns a value of a type in which only texts of enumerations are set, in the structs that are there without a
// pointer: lists and maps are nil.
func (g *Generator) Empty(t reflect.Type) any {
	v := reflect.New(t).Elem()
	if t.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(t, 0, 0))
	}
	g.fillEnums(v)
	return v.Interface()
}

func (g *Generator) fillEnums(v reflect.Value) {
	switch {
	case !v.CanSet():
	case v.Kind() == reflect.String:
		if values := g.Values(v.Type()); len(values) > 0 {
			v.SetString(values[0])
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).Anonymous && f.Kind() == reflect.Pointer && f.CanSet() {
				f.Set(reflect.New(f.Type().Elem()))
				g.fillEnums(f.Elem())
			}
			g.fillEnums(v.Field(i))
		}
	}
}
