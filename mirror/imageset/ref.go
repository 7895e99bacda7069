package imageset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/redact"
)

// maxReference bounds the length of a reference in bytes. Names of repositories have at most 255, tags 128.
const maxReference = 1000

// maxPath is the maximum length of a path in bytes, with the host.
const maxPath = 255

// Ref names an image in a registry, an OCI layout, or another place.
type Ref struct {
	// Transport is [Docker], [OCI], or one that the caller of [ParseRef] has named.
	Transport string
	// Host is the registry with its port; empty if the name has one part only.
	Host string
	// Path is the repository within the registry; with [OCI] the path of a directory, and else what names the image.
	Path string
	// Tag and Digest may be set both, or, with [OCI], neither. A layout has no tag.
	Tag    string
	Digest digest.Digest
}

// Expressions of parts of a reference, anchored.
var (
	pathExpr = lazyregexp.New(`^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*$`)
	tagExpr  = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	hostExpr = lazyregexp.New(`^(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)
)

// errTagless is returned by [ParseRef], with the reference, if an image has neither tag nor digest.
var errTagless = errors.New("tag and digest are empty")

// ParseRef parses [TRANSPORT://]NAME[:TAG][@DIGEST] as oc-mirror does. Without a transport it is that of registries.
// What stands before the first slash is the host, whether it looks like one or not: no registry is implied, and no tag.
// A name without a slash has no host. In a layout's path a colon separates nothing, nor in that of the places of other
// transports, which are refused unless they are among others.
//
// Unlike oc-mirror, a port next to a digest is not taken for a tag, and names that no registry accepts are errors.
func ParseRef(text string, others ...string) (Ref, error) {
	if text == "" {
		return Ref{}, errors.New("reference name is empty")
	}
	if len(text) > maxReference {
		return Ref{}, fmt.Errorf("%w: a reference of %d bytes, more than %d", fault.ErrLimit, len(text), maxReference)
	}
	for _, r := range text {
		if r <= ' ' || r == 0x7f || r == 0xFFFD {
			return Ref{}, fmt.Errorf("reference %s has spaces or control characters", fault.Quote(text))
		}
	}
	r := Ref{Transport: Docker}
	rest := text
	if transport, after, ok := strings.Cut(text, "://"); ok {
		if transport != Docker && transport != OCI && !slices.Contains(others, transport) {
			return Ref{}, fmt.Errorf("transport %s of %s is neither docker nor oci", fault.Quote(transport),
				fault.Quote(text))
		}
		r.Transport, rest = transport, after
	}
	if name, d, ok := strings.Cut(rest, "@"); ok {
		r.Digest = digest.Digest(d)
		if err := r.Digest.Validate(); err != nil && r.Transport == Docker && strings.Contains(d, "/") {
			return Ref{}, fmt.Errorf("reference %s has a user and a password, and no image is named with them",
				fault.Quote(redact.Text(text)))
		} else if err != nil {
			return Ref{}, fmt.Errorf("digest of %s: %w", fault.Quote(text), err)
		}
		rest = name
	}
	if !r.InRegistry() {
		if rest == "" {
			return Ref{}, fmt.Errorf("reference %s has no path", fault.Quote(text))
		}
		r.Path = rest
		return r, nil
	}
	var slash bool
	if r.Host, r.Path, slash = strings.Cut(rest, "/"); !slash {
		r.Host, r.Path = "", rest
	}
	if at := strings.LastIndexByte(r.Path, ':'); at >= 0 {
		r.Path, r.Tag = r.Path[:at], r.Path[at+1:]
		if !tagExpr().MatchString(r.Tag) {
			return Ref{}, fmt.Errorf("%s of %s is no tag", fault.Quote(r.Tag), fault.Quote(text))
		}
	}
	switch {
	case slash && !hostExpr().MatchString(r.Host):
		return Ref{}, fmt.Errorf("%s of %s is no registry", fault.Quote(r.Host), fault.Quote(text))
	case !pathExpr().MatchString(r.Path), len(r.Host)+len(r.Path) >= maxPath:
		return Ref{}, fmt.Errorf("%s of %s is no name of a repository", fault.Quote(r.Path), fault.Quote(text))
	case r.Tag == "" && r.Digest == "":
		return r, fmt.Errorf("%s: %w", fault.Quote(text), errTagless)
	}
	return r, nil
}

// CheckRegistry returns an error if an image in a registry is written without one. Which registry is meant then depends on
// the machine that reads it, and the mirror and the files for clusters would get the name without a registry.
func (r Ref) CheckRegistry() error {
	host := r.Host
	if !r.InRegistry() || strings.ContainsAny(host, ".:") || host == "localhost" || strings.ToLower(host) != host {
		return nil
	}
	full := r
	if full.Host, full.Path = "docker.io", r.Repository(); host == "" {
		full.Path = "library/" + full.Path
	}
	return &NoRegistryError{r.Name(), full.Name()}
}

// NoRegistryError is about the name of an image without a registry. It is of the class [fault.ErrInvalid].
type NoRegistryError struct {
	Name string
	// Full is the name at Docker Hub, which such names stood for first.
	Full string
}

// Error implements [error].
func (e *NoRegistryError) Error() string { return fault.Quote(e.Name) + " names no registry" }

// Fix is what to write instead.
func (e *NoRegistryError) Fix() string {
	return "write the full name, such as " + e.Full + ": what is before the first slash is a registry if it has a dot or a port, or is localhost"
}

// Unwrap returns the class.
func (e *NoRegistryError) Unwrap() error { return fault.ErrInvalid }

// InRegistry tells whether the image is in a registry.
func (r Ref) InRegistry() bool { return r.Transport == Docker }

// IsZero reports whether the reference is empty.
func (r Ref) IsZero() bool { return r == Ref{} }

// Repository returns HOST/PATH, without tag and digest; of a layout its path.
func (r Ref) Repository() string {
	if r.Host == "" || !r.InRegistry() {
		return r.Path
	}
	return r.Host + "/" + r.Path
}

// AtHost tells whether the image is at a registry HOST[:PORT], whichever of its names is written.
func (r Ref) AtHost(host string) bool { return r.Host == host || plainHost(r.Host) == plainHost(host) }

// PlainName returns the name with the tag, the same for all names of the registry.
func (r Ref) PlainName() string { return plainHost(r.Host) + "/" + r.Path + ":" + r.Tag }

// Name returns the reference without its transport.
func (r Ref) Name() string {
	text := r.Repository()
	if r.Tag != "" {
		text += ":" + r.Tag
	}
	if r.Digest != "" {
		text += "@" + r.Digest.String()
	}
	return text
}

// String returns the reference with its transport, such as docker://... or oci://...
func (r Ref) String() string { return r.Transport + "://" + r.Name() }

// MarshalText writes the reference with its transport.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what [Ref.MarshalText] has written: a reference of any transport.
func (r *Ref) UnmarshalText(text []byte) (err error) {
	transport, _, _ := strings.Cut(string(text), "://")
	*r, err = ParseRef(string(text), transport)
	return err
}
