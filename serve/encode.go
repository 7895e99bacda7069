package serve

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/operator-bindery/bindery/declcfg"
)

// EncodePackage returns the cache file of a package: deterministic bytes that depend only on the arguments. All blobs
// of the catalog must belong to one package, or none of them to any. The catalog should have passed
// [declcfg.Catalog.Validate]; an error explains why it cannot be served. It must not be a skeleton.
//
// The sources are the files from which the package's blobs were read. A server that finds the cache file beside a
// catalog uses it only while these files are unchanged; without sources it is never used for a catalog.
//
// large, unless nil, is called for every bundle whose answer is too large for clients with the default limit.
func EncodePackage(c *declcfg.Catalog, large func(LargeBundle), sources ...SourceFile) ([]byte, error) {
	graph, err := c.Graph()
	if err != nil {
		return nil, err
	}
	b, err := encodePackage(nil, c, graph, sources, nil)
	if err != nil {
		return nil, err
	}
	if large != nil {
		for _, l := range b.large {
			large(l)
		}
	}
	return b.bytes()
}

// LargeBundle is a bundle whose answer is larger than [ClientMessageLimit]: clients with the default limit fail to
// receive it.
type LargeBundle struct {
	Package, Channel, Bundle string
	Size                     int // of the largest answer, in bytes
}

// encodePackage encodes a package into buf if it is large enough. Manifests that the bundles lack come from the spill.
func encodePackage(buf []byte, c *declcfg.Catalog, graph *declcfg.Graph, sources []SourceFile,
	m manifests) (*encoded, error) {
	name, err := onlyPackage(c)
	if err != nil {
		return nil, err
	}
	e := &encoder{index: index{name: name, sources: slices.Clone(sources)}, manifests: m}
	e.out.memory = append(buf, make([]byte, headerSize)...)
	sort.Slice(e.index.sources, func(i, j int) bool { return e.index.sources[i].Name < e.index.sources[j].Name })
	if len(graph.Packages) == 0 {
		e.index.pkg = e.record(nil)
	}
	for _, pkg := range graph.Packages {
		if err := e.pkg(pkg); err != nil {
			return nil, err
		}
	}
	for i := range c.Others {
		if err := e.custom(&c.Others[i]); err != nil {
			return nil, err
		}
	}
	if err := e.finish(); err != nil {
		return nil, err
	}
	e.out.name = name
	return &e.out, nil
}

// onlyPackage returns the name of the package that all blobs of a catalog belong to.
func onlyPackage(c *declcfg.Catalog) (string, error) {
	var name string
	first := true
	for b, err := range c.Blobs() {
		switch {
		case err != nil:
			return "", err
		case first:
			name, first = b.BlobPackage(), false
		case b.BlobPackage() != name:
			return "", fmt.Errorf("a cache file holds one package, not both %q and %q", name, b.BlobPackage())
		}
	}
	return name, nil
}

type encoder struct {
	index     index
	out       encoded
	manifests manifests
}

// record appends a message to the file.
func (e *encoder) record(message []byte) record {
	r := recordOf(e.out.size(), message)
	e.out.memory = append(e.out.memory, message...)
	return r
}

// recordOf describes a message at an offset of the file.
func recordOf(offset int64, message []byte) record {
	return record{offset: uint64(offset), length: uint32(min(len(message), math.MaxUint32)),
		crc: crc32.Checksum(message, castagnoli)}
}

func (e *encoder) pkg(pkg *declcfg.PackageNode) error {
	e.index.hasPackage = true
	e.index.defaultChannel = pkg.DefaultChannel
	if pkg.Default() == nil {
		return fmt.Errorf("package %q: default channel %q not found", pkg.Name, pkg.DefaultChannel)
	}
	e.index.bundles = make([]indexBundle, len(pkg.Bundles))
	position := make(map[string]int, len(pkg.Bundles))
	for i, b := range pkg.Bundles {
		position[b.Name] = i
		e.index.bundles[i].name = b.Name
	}
	for _, c := range pkg.Channels {
		ic, err := encodeChannel(c, position)
		if err != nil {
			return fmt.Errorf("package %q, channel %q: %w", pkg.Name, c.Name, err)
		}
		e.index.channels = append(e.index.channels, ic)
	}
	e.index.pkg = e.record(packageMessage(&e.index, pkg.Deprecation,
		func(i int) *string { return pkg.Channels[i].Deprecation }))
	if err := e.bundles(pkg); err != nil {
		return err
	}
	e.findLarge()
	return nil
}

// encodeChannel converts a channel's entries to positions. The entries stay sorted, as bundles are sorted by name too.
func encodeChannel(c *declcfg.ChannelNode, position map[string]int) (indexChannel, error) {
	ic := indexChannel{name: c.Name, entries: make([]indexEntry, len(c.Entries))}
	head, err := c.Head()
	if err != nil {
		return ic, err
	}
	for i, entry := range c.Entries {
		if entry.Bundle == nil {
			return ic, fmt.Errorf("no bundle for entry %q", entry.Name)
		}
		ic.entries[i] = indexEntry{
			bundle:    position[entry.Name],
			skipRange: entry.SkipRange,
			replaces:  entry.Replaces,
			skips:     entry.Skips,
		}
		if entry == head {
			ic.head = i
		}
	}
	return ic, nil
}

// packageMessage returns the api.Package of a package; channel returns the deprecation of the channel at a position.
func packageMessage(x *index, deprecation *string, channel func(i int) *string) []byte {
	m := appendString(nil, 1, x.name)
	for i := range x.channels {
		c := &x.channels[i]
		message := appendString(nil, 1, c.name)
		message = appendString(message, 2, x.entryName(&c.entries[c.head]))
		message = appendDeprecation(message, 3, channel(i))
		m = appendMessage(m, 2, message)
	}
	m = appendString(m, 3, x.defaultChannel)
	return appendDeprecation(m, 4, deprecation)
}

// bundles writes first the parts that every question about bundles needs, and after them the manifests.
func (e *encoder) bundles(pkg *declcfg.PackageNode) (err error) {
	e.index.bundles = make([]indexBundle, len(pkg.Bundles))
	size := 0
	for _, b := range pkg.Bundles {
		if e.manifests[b.Name] == nil {
			size += heavySize(pkg, b.Bundle)
		}
	}
	// Growing step by step would copy the file several times and need twice its memory.
	e.out.memory = slices.Grow(e.out.memory, size+size/16)
	providers := map[gvk][]int{}
	csvs := make([]*declcfg.Property, len(pkg.Bundles))
	for i, b := range pkg.Bundles {
		props, err := readProperties(b.Bundle)
		if err != nil {
			return fmt.Errorf("package %q, bundle %q: %w", pkg.Name, b.Name, err)
		}
		csvs[i] = props.csv
		e.index.bundles[i] = indexBundle{name: b.Name, hasImage: b.Image != "",
			light: e.record(lightBundle(pkg, b, props))}
		for _, k := range props.provided {
			if at := providers[k]; len(at) == 0 || at[len(at)-1] != i {
				providers[k] = append(at, i)
			}
		}
	}
	for i, b := range pkg.Bundles {
		if e.index.bundles[i].heavy, err = e.heavy(pkg, b, csvs[i]); err != nil {
			return fmt.Errorf("package %q, bundle %q: %w", pkg.Name, b.Name, err)
		}
	}
	e.index.gvks = indexGVKs(providers)
	return nil
}

// heavy writes the manifests of a bundle. Spilled ones stay in the spill until the file is written.
func (e *encoder) heavy(pkg *declcfg.PackageNode, b *declcfg.BundleNode, metadata *declcfg.Property) (record, error) {
	m := e.manifests[b.Name]
	switch {
	case m == nil:
		start, at := e.out.size(), len(e.out.memory)
		memory, err := appendHeavyBundle(e.out.memory, pkg, b, metadata)
		if err != nil {
			return record{}, err
		}
		e.out.memory = memory
		return recordOf(start, memory[at:]), nil
	case m.err != nil:
		return record{}, m.err
	case m.hasCSV || metadata == nil:
		r := record{offset: uint64(e.out.size()), length: uint32(m.length), crc: m.crc}
		e.out.cut(m)
		return r, nil
	}
	// Manifests without a ClusterServiceVersion, and metadata to synthesize one from.
	objects := make([]byte, m.length)
	if err := m.read(objects); err != nil {
		return record{}, err
	}
	csv, err := synthesizeCSV(pkg, b, metadata)
	if err != nil {
		return record{}, err
	}
	own := [][]byte(nil)
	if len(objects) == 0 {
		own = [][]byte{csv}
	}
	return e.record(append(appendManifests(nil, csv, own), objects...)), nil
}

// indexGVKs sorts APIs with the positions of their providers.
func indexGVKs(providers map[gvk][]int) []indexGVK {
	var all []indexGVK
	for k, at := range providers {
		all = append(all, indexGVK{gvk: k, bundles: at})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].gvk.compare(all[j].gvk) < 0 })
	return all
}

// findLarge collects the bundles whose largest answer may exceed a client's limit.
func (e *encoder) findLarge() {
	for i := range e.index.channels {
		c := &e.index.channels[i]
		for j := range c.entries {
			entry := &c.entries[j]
			b := &e.index.bundles[entry.bundle]
			size := int(b.light.length) + int(b.heavy.length) + len(appendEntry(nil, c.name, entry, !b.hasImage))
			if size > ClientMessageLimit {
				e.out.large = append(e.out.large,
					LargeBundle{Package: e.index.name, Channel: c.name, Bundle: b.name, Size: size})
			}
		}
	}
}

func (e *encoder) custom(m *declcfg.Meta) error {
	message, err := structMessage(m.Blob)
	if err != nil {
		return fmt.Errorf("blob of schema %q, package %q, name %q: %w", m.Schema, m.Package, m.Name, err)
	}
	e.index.customs = append(e.index.customs, indexCustom{schema: m.Schema, record: e.record(message)})
	return nil
}

// finish appends the index and writes the header.
func (e *encoder) finish() error {
	h := header{indexOffset: uint64(e.out.size())}
	encodedIndex := e.index.encode()
	if len(encodedIndex) > maxIndexSize || e.out.size() > math.MaxInt32 {
		return fmt.Errorf("package %q: %w", e.index.name, ErrTooLarge)
	}
	e.out.memory = append(e.out.memory, encodedIndex...)
	h.indexLength = uint64(len(encodedIndex))
	h.fileSize = uint64(e.out.size())
	h.indexSum = sha256.Sum256(encodedIndex)
	h.append(e.out.memory[:0])
	return nil
}

// The messages of the service are written field by field, because an answer is assembled from parts that are stored
// separately. In the protocol buffers encoding the order of fields has no meaning, so the concatenation of the parts is
// the message.

// appendString appends a string field, or nothing for the empty string, as in proto3.
func appendString(dst []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return appendElement(dst, field, s)
}

// appendElement appends a string field even if it is empty, for elements of repeated fields.
func appendElement(dst []byte, field protowire.Number, s string) []byte {
	dst = protowire.AppendTag(dst, field, protowire.BytesType)
	return protowire.AppendString(dst, s)
}

func appendMessage(dst []byte, field protowire.Number, m []byte) []byte {
	dst = protowire.AppendTag(dst, field, protowire.BytesType)
	return protowire.AppendBytes(dst, m)
}

// appendPair appends a message of two strings, fields 1 and 2.
func appendPair(dst []byte, field protowire.Number, a, b string) []byte {
	return appendMessage(dst, field, appendString(appendString(nil, 1, a), 2, b))
}

// appendDeprecation appends an api.Deprecation field, or nothing without a deprecation.
func appendDeprecation(dst []byte, field protowire.Number, message *string) []byte {
	if message == nil {
		return dst
	}
	return appendMessage(dst, field, appendString(nil, 1, *message))
}

// appendGVK appends an api.GroupVersionKind field.
func appendGVK(dst []byte, field protowire.Number, k gvk) []byte {
	return appendMessage(dst, field, appendString(appendString(appendString(nil, 1, k.group), 2, k.version), 3, k.kind))
}

// gvk identifies an API.
type gvk struct{ group, version, kind string }

func (k gvk) compare(o gvk) int {
	return cmp.Or(cmp.Compare(k.group, o.group), cmp.Compare(k.version, o.version), cmp.Compare(k.kind, o.kind))
}

// Field numbers of api.Bundle.
const (
	bundleCSVName      = 1
	bundlePackageName  = 2
	bundleChannelName  = 3
	bundleCSVJSON      = 4
	bundleObject       = 5
	bundlePath         = 6
	bundleProvidedAPIs = 7
	bundleRequiredAPIs = 8
	bundleVersion      = 9
	bundleSkipRange    = 10
	bundleDependencies = 11
	bundleProperties   = 12
	bundleReplaces     = 13
	bundleSkips        = 14
	bundleDeprecation  = 15
)

// packageName returns a wire-form api.PackageName.
func packageName(name string) []byte { return appendString(nil, 1, name) }

// channelEntry returns a wire-form api.ChannelEntry.
func channelEntry(pkg, channel, bundle, replaces string) []byte {
	b := make([]byte, 0, len(pkg)+len(channel)+len(bundle)+len(replaces)+12)
	b = appendString(b, 1, pkg)
	b = appendString(b, 2, channel)
	b = appendString(b, 3, bundle)
	return appendString(b, 4, replaces)
}
