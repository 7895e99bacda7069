package serve

import (
	"cmp"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages of the service are written field by field, because an answer is put together from parts that are stored
// separately: the order of fields within a message has no meaning in the protocol buffers encoding, so one part after
// another is the whole.

// appendString appends a string field, or nothing for the empty string, as proto3 has it.
func appendString(dst []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return appendElement(dst, field, s)
}

// appendElement appends a string field also when it is empty, as elements of repeated fields are.
func appendElement(dst []byte, field protowire.Number, s string) []byte {
	dst = protowire.AppendTag(dst, field, protowire.BytesType)
	return protowire.AppendString(dst, s)
}

// appendMessage appends a message field.
func appendMessage(dst []byte, field protowire.Number, m []byte) []byte {
	dst = protowire.AppendTag(dst, field, protowire.BytesType)
	return protowire.AppendBytes(dst, m)
}

// appendPair appends a message of two strings, fields 1 and 2.
func appendPair(dst []byte, field protowire.Number, a, b string) []byte {
	return appendMessage(dst, field, appendString(appendString(nil, 1, a), 2, b))
}

// appendDeprecation appends an api.Deprecation field, or nothing where there is no deprecation.
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

// gvk names an API.
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
