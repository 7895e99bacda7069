package serve_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/api"
)

// model answers the service's calls by searching all blobs of a catalog for every question. It uses no cache files or
// indexes and shares no code with the server: a difference is a bug in one of them.
type model struct{ catalog *declcfg.Catalog }

// expected is the right result of a call.
type expected struct {
	answers []proto.Message
	code    codes.Code
	text    string // of the error
	// oneOf means that any one of the answers is right.
	oneOf bool
}

func missing(format string, args ...any) expected {
	return expected{code: codes.NotFound, text: fmt.Sprintf(format, args...)}
}

// ask answers a request of any method. The experimental method is recognised by its request type, methods with a common
// request type by their name.
func (m model) ask(method string, req proto.Message, acknowledged bool) expected {
	switch req := req.(type) {
	case *api.ListPackageRequest:
		return m.listPackages()
	case *api.ListBundlesRequest:
		return m.listBundles()
	case *api.GetPackageRequest:
		return m.getPackage(req.GetName())
	case *api.GetBundleRequest:
		return m.getBundle(req.GetPkgName(), req.GetChannelName(), req.GetCsvName())
	case *api.GetBundleInChannelRequest:
		return m.getHead(req.GetPkgName(), req.GetChannelName())
	case *api.GetReplacementRequest:
		return m.getReplacement(req.GetPkgName(), req.GetChannelName(), req.GetCsvName())
	case *api.GetAllReplacementsRequest:
		return m.getReplacements(req.GetCsvName())
	case *api.GetAllProvidersRequest:
		return m.getProviders(req.GetGroup(), req.GetVersion(), req.GetKind(), false)
	case *api.GetLatestProvidersRequest:
		return m.getProviders(req.GetGroup(), req.GetVersion(), req.GetKind(), true)
	case *api.GetDefaultProviderRequest:
		return m.getDefaultProvider(req.GetGroup(), req.GetVersion(), req.GetKind())
	case *api.ExperimentalListPackageCustomSchemasRequest:
		return m.listCustom(req.GetSchema(), req.GetPackageName(), acknowledged)
	}
	panic("no such method: " + method)
}

// packages returns those of the catalog by name.
func (m model) packages() []declcfg.Package {
	list := slices.Clone(m.catalog.Packages)
	slices.SortFunc(list, func(a, b declcfg.Package) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (m model) pkg(name string) *declcfg.Package {
	for i := range m.catalog.Packages {
		if m.catalog.Packages[i].Name == name {
			return &m.catalog.Packages[i]
		}
	}
	return nil
}

// channels returns those of a package, or of all packages, sorted by channel and then package.
func (m model) channels(pkg string) []declcfg.Channel {
	var list []declcfg.Channel
	for _, c := range m.catalog.Channels {
		if pkg == "" || c.Package == pkg {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b declcfg.Channel) int {
		if n := strings.Compare(a.Name, b.Name); n != 0 {
			return n
		}
		return strings.Compare(a.Package, b.Package)
	})
	return list
}

func (m model) channel(pkg, name string) *declcfg.Channel {
	for i, c := range m.catalog.Channels {
		if c.Package == pkg && c.Name == name {
			return &m.catalog.Channels[i]
		}
	}
	return nil
}

func (m model) bundle(pkg, name string) *declcfg.Bundle {
	for i, b := range m.catalog.Bundles {
		if b.Package == pkg && b.Name == name {
			return &m.catalog.Bundles[i]
		}
	}
	return nil
}

// entries returns those of a channel by name.
func entries(c *declcfg.Channel) []declcfg.ChannelEntry {
	list := slices.Clone(c.Entries)
	slices.SortFunc(list, func(a, b declcfg.ChannelEntry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// head returns the entry that no other one replaces or skips.
func head(c *declcfg.Channel) declcfg.ChannelEntry {
	var heads []declcfg.ChannelEntry
	for _, e := range c.Entries {
		if !slices.ContainsFunc(c.Entries, func(o declcfg.ChannelEntry) bool {
			return o.Name != e.Name && (o.Replaces == e.Name || slices.Contains(o.Skips, e.Name))
		}) {
			heads = append(heads, e)
		}
	}
	if len(heads) != 1 {
		panic(fmt.Sprintf("channel %q has %d heads", c.Name, len(heads)))
	}
	return heads[0]
}

func (m model) deprecation(pkg, schema, name string) *api.Deprecation {
	for _, d := range m.catalog.Deprecations {
		for _, e := range d.Entries {
			if d.Package == pkg && e.Reference.Schema == schema && e.Reference.Name == name {
				return &api.Deprecation{Message: e.Message}
			}
		}
	}
	return nil
}

func (m model) listPackages() (x expected) {
	for _, p := range m.packages() {
		x.answers = append(x.answers, &api.PackageName{Name: p.Name})
	}
	return x
}

func (m model) getPackage(name string) expected {
	p := m.pkg(name)
	if p == nil {
		return missing("package %q not found", name)
	}
	answer := &api.Package{Name: name, DefaultChannelName: p.DefaultChannel,
		Deprecation: m.deprecation(name, "olm.package", "")}
	for _, c := range m.channels(name) {
		answer.Channels = append(answer.Channels, &api.Channel{
			Name: c.Name, CsvName: head(&c).Name, Deprecation: m.deprecation(name, "olm.channel", c.Name),
		})
	}
	return expected{answers: []proto.Message{answer}}
}

// answer returns the complete answer about an entry.
func (m model) answer(c *declcfg.Channel, e declcfg.ChannelEntry) *api.Bundle {
	b := m.bundle(c.Package, e.Name)
	a := &api.Bundle{
		CsvName: e.Name, PackageName: c.Package, ChannelName: c.Name, BundlePath: b.Image,
		SkipRange: e.SkipRange, Replaces: e.Replaces, Skips: e.Skips,
		Deprecation: m.deprecation(c.Package, "olm.bundle", e.Name),
	}
	var metadata map[string]any
	for _, p := range b.Properties {
		var fields map[string]any
		_ = json.Unmarshal(p.Value, &fields) // values of unknown types need not be objects
		field := func(name string) string { s, _ := fields[name].(string); return s }
		gvk := &api.GroupVersionKind{Group: field("group"), Version: field("version"), Kind: field("kind")}
		switch p.Type {
		case "olm.bundle.object":
			object, err := base64.StdEncoding.DecodeString(field("data"))
			if err != nil {
				panic(err)
			}
			a.Object = append(a.Object, string(object))
			if a.CsvJson == "" && objectKind(object) == "ClusterServiceVersion" {
				a.CsvJson = string(object)
			}
			continue
		case "olm.csv.metadata":
			metadata = fields
			continue
		case "olm.package":
			a.Version = field("version")
		case "olm.gvk":
			a.ProvidedApis = append(a.ProvidedApis, gvk)
		case "olm.gvk.required":
			a.RequiredApis = append(a.RequiredApis, gvk)
			a.Dependencies = append(a.Dependencies, &api.Dependency{Type: "olm.gvk", Value: string(p.Value)})
		case "olm.package.required":
			value := map[string]string{"packageName": field("packageName"), "version": field("versionRange")}
			a.Dependencies = append(a.Dependencies, &api.Dependency{Type: "olm.package", Value: toJSON(value)})
		}
		a.Properties = append(a.Properties, &api.Property{Type: p.Type, Value: string(p.Value)})
	}
	if a.CsvJson == "" && metadata != nil {
		a.CsvJson = m.madeCSV(c.Package, b, metadata)
		if len(a.Object) == 0 {
			a.Object = []string{a.CsvJson}
		}
	}
	return a
}

func objectKind(object []byte) string {
	var o struct{ Kind string }
	if err := json.Unmarshal(object, &o); err != nil {
		panic(err)
	}
	return o.Kind
}

// madeCSV returns a ClusterServiceVersion synthesized from its metadata.
func (m model) madeCSV(pkg string, b *declcfg.Bundle, metadata map[string]any) string {
	p := m.pkg(pkg)
	meta := map[string]any{"name": b.Name}
	spec := map[string]any{
		"install":     map[string]any{"strategy": "deployment", "spec": map[string]any{"deployments": nil}},
		"cleanup":     map[string]any{"enabled": false},
		"displayName": "", "provider": map[string]any{}, "customresourcedefinitions": map[string]any{},
		"apiservicedefinitions": map[string]any{},
	}
	for from, to := range map[string]string{
		"apiServiceDefinitions": "apiservicedefinitions", "crdDescriptions": "customresourcedefinitions",
		"description": "description",
		"displayName": "displayName", "installModes": "installModes", "keywords": "keywords", "links": "links",
		"maintainers": "maintainers",
		"maturity":    "maturity", "minKubeVersion": "minKubeVersion", "nativeAPIs": "nativeAPIs",
		"provider": "provider",
	} {
		if v, ok := metadata[from]; ok {
			spec[to] = v
		}
	}
	for _, name := range []string{"annotations", "labels"} {
		if v, ok := metadata[name].(map[string]any); ok && len(v) > 0 {
			meta[name] = v
		}
	}
	if _, ok := spec["description"]; !ok && p.Description != "" {
		spec["description"] = p.Description
	}
	if p.Icon != nil {
		spec["icon"] = []any{map[string]any{"base64data": base64.StdEncoding.EncodeToString(p.Icon.Data),
			"mediatype": p.Icon.MediaType}}
	}
	for _, prop := range b.Properties {
		if prop.Type == "olm.package" {
			var v struct{ Version string }
			if err := json.Unmarshal(prop.Value, &v); err != nil {
				panic(err)
			}
			spec["version"] = v.Version
		}
	}
	var images []any
	for _, r := range b.RelatedImages {
		images = append(images, map[string]any{"name": r.Name, "image": r.Image})
	}
	if images != nil {
		spec["relatedImages"] = images
	}
	return toJSON(map[string]any{
		"kind": "ClusterServiceVersion", "apiVersion": "operators.coreos.com/v1alpha1",
		"metadata": meta, "spec": spec, "status": map[string]any{"cleanup": map[string]any{}},
	})
}

// one returns the answer about one entry: without edges.
func (m model) one(c *declcfg.Channel, e declcfg.ChannelEntry) proto.Message {
	a := m.answer(c, e)
	a.Replaces, a.Skips = "", nil
	return a
}

// inChannel returns a channel, or the error about what is missing.
func (m model) inChannel(pkg, channel string) (*declcfg.Channel, expected) {
	if m.pkg(pkg) == nil {
		return nil, missing("package %q not found", pkg)
	}
	c := m.channel(pkg, channel)
	if c == nil {
		return nil, missing("package %q, channel %q not found", pkg, channel)
	}
	return c, expected{}
}

func (m model) getBundle(pkg, channel, name string) expected {
	c, x := m.inChannel(pkg, channel)
	if c == nil {
		return x
	}
	for _, e := range c.Entries {
		if e.Name == name {
			return expected{answers: []proto.Message{m.one(c, e)}}
		}
	}
	return missing("package %q, channel %q, bundle %q not found", pkg, channel, name)
}

func (m model) getHead(pkg, channel string) expected {
	c, x := m.inChannel(pkg, channel)
	if c == nil {
		return x
	}
	return expected{answers: []proto.Message{m.one(c, head(c))}}
}

func (m model) getReplacement(pkg, channel, name string) expected {
	c, x := m.inChannel(pkg, channel)
	if m.pkg(pkg) == nil {
		return missing("package %s not found", pkg)
	}
	if c == nil {
		return x
	}
	x.oneOf = true
	for _, e := range c.Entries {
		if e.Replaces == name || slices.Contains(e.Skips, name) {
			x.answers = append(x.answers, m.one(c, e))
		}
	}
	if len(x.answers) == 0 {
		return missing("no entry found for package %q, channel %q", pkg, channel)
	}
	return x
}

// byPackage returns the channels sorted by package and name, the order of all lists of entries.
func (m model) byPackage() (list []declcfg.Channel) {
	for _, p := range m.packages() {
		list = append(list, m.channels(p.Name)...)
	}
	return list
}

func (m model) getReplacements(name string) (x expected) {
	for _, c := range m.byPackage() {
		for _, e := range entries(&c) {
			if e.Replaces == name || slices.Contains(e.Skips, name) {
				x.answers = append(x.answers,
					&api.ChannelEntry{PackageName: c.Package, ChannelName: c.Name, BundleName: e.Name,
						Replaces: e.Replaces})
			}
		}
	}
	if len(x.answers) == 0 {
		return missing("no channel entries found that replace %s", name)
	}
	return x
}

func (m model) provides(pkg, bundle, group, version, kind string) bool {
	for _, p := range m.bundle(pkg, bundle).Properties {
		var v struct{ Group, Version, Kind string }
		if p.Type == "olm.gvk" && json.Unmarshal(p.Value,
			&v) == nil && v.Group == group && v.Version == version && v.Kind == kind {
			return true
		}
	}
	return false
}

func (m model) getProviders(group, version, kind string, latest bool) (x expected) {
	for _, c := range m.byPackage() {
		for _, e := range entries(&c) {
			if latest && e.Name != head(&c).Name || !m.provides(c.Package, e.Name, group, version, kind) {
				continue
			}
			entry := func(replaces string) {
				x.answers = append(x.answers,
					&api.ChannelEntry{PackageName: c.Package, ChannelName: c.Name, BundleName: e.Name,
						Replaces: replaces})
			}
			entry(e.Replaces)
			for _, s := range e.Skips {
				there := slices.ContainsFunc(c.Entries, func(o declcfg.ChannelEntry) bool { return o.Name == s })
				if s != e.Replaces && (there || !latest) {
					entry(s)
				}
			}
		}
	}
	if len(x.answers) == 0 {
		return missing("no channel entries found that provide group:%q version:%q kind:%q", group, version, kind)
	}
	return x
}

func (m model) getDefaultProvider(group, version, kind string) expected {
	x := m.getProviders(group, version, kind, true)
	if x.code != codes.OK {
		return x
	}
	for _, a := range x.answers {
		e := a.(*api.ChannelEntry)
		if m.pkg(e.PackageName).DefaultChannel == e.ChannelName {
			return m.getBundle(e.PackageName, e.ChannelName, e.BundleName)
		}
	}
	return missing("no entry found that provides group:%q version:%q kind:%q", group, version, kind)
}

func (m model) listBundles() (x expected) {
	for _, c := range m.channels("") {
		for _, e := range entries(&c) {
			a := m.answer(&c, e)
			if a.BundlePath != "" {
				a.CsvJson, a.Object = "", nil
			}
			x.answers = append(x.answers, a)
		}
	}
	return x
}

var customName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

func (m model) listCustom(schema, pkg string, acknowledged bool) (x expected) {
	bad := func(format string, args ...any) expected {
		return expected{code: codes.InvalidArgument, text: fmt.Sprintf(format, args...)}
	}
	switch {
	case !acknowledged:
		return x
	case schema == "":
		return bad("schema must be set")
	case !customName.MatchString(schema) || strings.HasSuffix(schema, "\n"):
		return bad("invalid schema %q", schema)
	case pkg != "" && !customName.MatchString(pkg):
		return bad("invalid package name %q", pkg)
	}
	for _, o := range m.catalog.Others {
		if o.Schema == schema && o.Package == pkg {
			s := &structpb.Struct{}
			if err := s.UnmarshalJSON(o.Blob); err != nil {
				panic(err)
			}
			x.answers = append(x.answers, s)
		}
	}
	return x
}

// toJSON formats a value as JSON with sorted keys and without HTML escapes.
func toJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// normal normalises the JSON inside an answer: the order of keys has no meaning.
func normal(m proto.Message) proto.Message {
	b, ok := m.(*api.Bundle)
	if !ok {
		return m
	}
	b = proto.Clone(b).(*api.Bundle)
	fix := func(s *string) {
		d := json.NewDecoder(strings.NewReader(*s))
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil {
			*s = toJSON(v)
		}
	}
	fix(&b.CsvJson)
	for i := range b.Object {
		fix(&b.Object[i])
	}
	for _, d := range b.Dependencies {
		fix(&d.Value)
	}
	return b
}
