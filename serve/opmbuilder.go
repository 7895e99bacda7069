package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/operator-bindery/bindery/internal/opmformat"
	"github.com/operator-bindery/bindery/serve/api"
)

// opmBuilder makes packages of the entries of a cache of opm's: the index comes first, then all entries, in any order. What
// it is given may be anybody's work. It holds the indices of all packages, and what is small of the answers of those packages
// of which some entries are still to come.
type opmBuilder struct {
	records  storedRecords
	files    []fs.File
	packages map[string]*opmPackage
	entries  map[string]opmEntry // that are still to come, by the name that the format has for them
	err      error               // the first thing that is odd, after which nothing more is taken

	manifests []byte // a buffer for those of one bundle
}

// opmPackage is a package in the making.
type opmPackage struct {
	index
	lights   [][]byte // of the bundles
	provided [][]gvk  // likewise
	quoted   map[int]quotedManifests
	missing  int // entries that are still to come
}

// opmEntry is the place of an entry in a package.
type opmEntry struct {
	pkg            *opmPackage
	channel, entry int
}

func newOPMBuilder(a *area) *opmBuilder {
	return &opmBuilder{records: storedRecords{area: a}, packages: map[string]*opmPackage{}, entries: map[string]opmEntry{}}
}

func (b *opmBuilder) close() error {
	errs := []error{b.records.area.close()}
	for _, f := range b.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// store is what was built, when all entries have come.
func (b *opmBuilder) store() (Store, error) {
	if b.err == nil && len(b.entries) > 0 {
		b.err = fmt.Errorf("no entry %.200q", sortedNames(b.entries)[0])
	}
	if b.err != nil {
		return nil, b.err
	}
	s := &store{closers: []func() error{b.close}}
	for _, name := range sortedNames(b.packages) {
		s.packages = append(s.packages, &Package{index: b.packages[name].index, r: &b.records})
	}
	return s, nil
}

// fail keeps the first error.
func (b *opmBuilder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// opmIndexPackage is what the index says of a package and the answers need: not the icon and the description, which are in
// the manifests of bundles.
type opmIndexPackage struct {
	Name           string                       `json:"name"`
	DefaultChannel string                       `json:"defaultChannel"`
	Channels       map[string]opmformat.Channel `json:"Channels"`
	Deprecation    *opmformat.Deprecation       `json:"deprecation"`
}

// readIndex reads the index, package by package. name is what the format calls an entry.
func (b *opmBuilder) readIndex(text []byte, name func(pkg, channel, bundle string) string) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(fmt.Errorf("%s is no object", opmformat.IndexName), err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fmt.Errorf("%s: %w", opmformat.IndexName, err)
		}
		var in opmIndexPackage
		if err := d.Decode(&in); err != nil {
			return fmt.Errorf("%s: package %.100q: %w", opmformat.IndexName, key, err)
		}
		p, err := newOPMPackage(&in)
		if err == nil && (in.Name == "" || in.Name != key || b.packages[in.Name] != nil) {
			err = errors.New("its name is another, or there twice")
		}
		if err != nil {
			return fmt.Errorf("%s: package %.100q: %w", opmformat.IndexName, key, err)
		}
		b.packages[in.Name] = p
		p.pkg = b.copied(packageMessage(&p.index, in.Deprecation.Text(), func(i int) *string { return in.Channels[p.channels[i].name].Deprecation.Text() }))
		for i := range p.channels {
			for j := range p.channels[i].entries {
				key := name(p.name, p.channels[i].name, p.entryName(&p.channels[i].entries[j]))
				if _, twice := b.entries[key]; twice {
					return fmt.Errorf("two entries have the name %.200q", key)
				}
				b.entries[key] = opmEntry{p, i, j}
			}
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("%s: %w", opmformat.IndexName, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%s: there is something behind the object", opmformat.IndexName)
	}
	return nil
}

// newOPMPackage makes the index of a package but for what the answers about its bundles say.
func newOPMPackage(in *opmIndexPackage) (*opmPackage, error) {
	p := &opmPackage{index: index{name: in.Name, hasPackage: true, defaultChannel: in.DefaultChannel}}
	position := map[string]int{}
	for key, c := range in.Channels {
		if c.Name != key {
			return nil, fmt.Errorf("channel %.100q has another name", key)
		}
		for key, e := range c.Bundles {
			if e.Name != key || e.Package != in.Name || e.Channel != c.Name {
				return nil, fmt.Errorf("channel %.100q: entry %.100q is of another name, channel or package", c.Name, key)
			}
			position[key] = 0
		}
	}
	for i, name := range sortedNames(position) {
		position[name] = i
		p.bundles = append(p.bundles, indexBundle{name: name})
	}
	for _, name := range sortedNames(in.Channels) {
		c := in.Channels[name]
		ic := indexChannel{name: name, head: -1}
		for i, key := range sortedNames(c.Bundles) {
			e := c.Bundles[key]
			ic.entries = append(ic.entries, indexEntry{bundle: position[key], replaces: e.Replaces, skips: e.Skips})
			if key == c.Head {
				ic.head = i
			}
		}
		if ic.head < 0 {
			return nil, fmt.Errorf("channel %.100q: its head %.100q is no entry", name, c.Head)
		}
		p.missing += len(ic.entries)
		p.channels = append(p.channels, ic)
	}
	if p.channel(in.DefaultChannel) == nil {
		return nil, fmt.Errorf("default channel %.100q not found", in.DefaultChannel)
	}
	p.lights, p.provided = make([][]byte, len(p.bundles)), make([][]gvk, len(p.bundles))
	return p, nil
}

// copied puts a message into the area.
func (b *opmBuilder) copied(message []byte) record {
	r := recordOf(0, message)
	r.offset = uint64(b.records.area.append(message))
	return r
}

// stored is a message: in the log of a database, or nowhere yet, or one that was taken before.
type stored struct {
	message []byte
	place   uint64 // zero for nowhere
	known   *record
}

// is reports whether the message is that of a record.
func (s stored) is(r record) bool {
	if s.known != nil {
		return *s.known == r
	}
	return int(r.length) == len(s.message) && r.crc == crc32.Checksum(s.message, castagnoli)
}

func (b *opmBuilder) record(s stored) record {
	if s.place == 0 {
		return b.copied(s.message)
	}
	r := recordOf(0, s.message)
	r.offset = s.place
	return r
}

// bundle takes the answer about an entry, of the name that the format has for it. Entries that the index does not know are
// left out, as opm never finds them. light is the answer without manifests, and changed; heavy is the rest.
func (b *opmBuilder) bundle(name string, light *api.Bundle, heavy stored) error {
	e, ok := b.entries[name]
	if !ok {
		return nil
	}
	delete(b.entries, name)
	c := &e.pkg.channels[e.channel]
	entry := &c.entries[e.entry]
	ib := &e.pkg.bundles[entry.bundle]
	if light.CsvName != ib.name || light.PackageName != e.pkg.name || light.ChannelName != c.name ||
		light.Replaces != entry.replaces || !slices.Equal(light.Skips, entry.skips) {
		return fmt.Errorf("the entry %.200q is not what %s says", name, opmformat.IndexName)
	}
	entry.skipRange = light.SkipRange
	light.ChannelName, light.Replaces, light.Skips, light.SkipRange = "", "", nil, ""
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(light)
	if err != nil {
		return fmt.Errorf("the entry %.200q: %w", name, err)
	}
	if had := e.pkg.lights[entry.bundle]; had != nil {
		if !bytes.Equal(had, wire) || !heavy.is(ib.heavy) {
			return fmt.Errorf("the bundle of the entry %.200q is another in another channel", name)
		}
	} else {
		e.pkg.lights[entry.bundle] = wire
		ib.hasImage, ib.heavy = light.BundlePath != "", b.record(heavy)
		for _, k := range light.ProvidedApis {
			e.pkg.provided[entry.bundle] = append(e.pkg.provided[entry.bundle], gvk{k.GetGroup(), k.GetVersion(), k.GetKind()})
		}
	}
	if e.pkg.missing--; e.pkg.missing == 0 {
		b.finish(e.pkg)
	}
	return nil
}

// finish writes what is small of a package's answers, one behind the other, when all of them have come.
func (b *opmBuilder) finish(p *opmPackage) {
	at := uint64(b.records.area.append(bytes.Join(p.lights, nil)))
	providers := map[gvk][]int{}
	for i, light := range p.lights {
		p.bundles[i].light = recordOf(0, light)
		p.bundles[i].light.offset = at
		at += uint64(len(light))
		for _, k := range p.provided[i] {
			if at := providers[k]; len(at) == 0 || at[len(at)-1] != i {
				providers[k] = append(at, i)
			}
		}
	}
	p.gvks = indexGVKs(providers)
	p.lights, p.provided, p.quoted = nil, nil, nil
}

// custom takes a blob of a custom schema as the message that is sent for it.
func (b *opmBuilder) custom(schema, pkg string, message stored) error {
	if !isCustomName(schema) || pkg != "" && !isCustomName(pkg) {
		return nil // nobody can ask for it
	}
	if err := proto.Unmarshal(message.message, &structpb.Struct{}); err != nil {
		return fmt.Errorf("blob of schema %q, package %q: %w", schema, pkg, err)
	}
	p := b.packages[pkg]
	if p == nil {
		p = &opmPackage{index: index{name: pkg, pkg: b.copied(nil)}}
		b.packages[pkg] = p
	}
	p.customs = append(p.customs, indexCustom{schema: schema, record: b.record(message)})
	return nil
}
