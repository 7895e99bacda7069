package imageset

import (
	"errors"
	"fmt"
	"net"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Target is where images go: a registry with an optional path. The zero Target gives the names without both, which are
// those on a medium.
type Target struct {
	Host, Path string
	// MaxNestedPaths, unless 0, is the maximum number of parts of a path at the destination, with those of Path.
	// Further ones are joined to the last one with dashes.
	MaxNestedPaths int
}

// Check returns an error that names the field, of the class [fault.Usage], for a number of parts that there cannot be.
func (t Target) Check() error {
	if t.MaxNestedPaths < 0 {
		return fault.Fieldf("invalid {MaxNestedPaths} value %d, expected a positive number", t.MaxNestedPaths)
	}
	return nil
}

// ParseTarget parses [docker://]HOST[:PORT][/PATH].
func ParseTarget(text string) (Target, error) {
	rest := strings.TrimPrefix(text, Docker+"://")
	var t Target
	t.Host, t.Path, _ = strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	switch {
	case strings.Contains(rest, "://"), strings.Contains(rest, "@"), strings.Contains(t.Path, ":"):
		return Target{}, fmt.Errorf("%w: destination %s: a registry and a path are wanted, such as %s",
			fault.ErrInvalid, fault.Quote(text), "docker://registry.example.com:5000/mirror")
	case !hostExpr().MatchString(t.Host):
		return Target{}, fmt.Errorf("%w: destination %s: %s is no registry", fault.ErrInvalid, fault.Quote(text),
			fault.Quote(t.Host))
	case t.Path != "" && !pathExpr().MatchString(t.Path):
		return Target{}, fmt.Errorf("%w: destination %s: %s is no path of a repository", fault.ErrInvalid,
			fault.Quote(text), fault.Quote(t.Path))
	}
	return t, nil
}

// plainHost returns the one of the names HOST[:PORT] of a registry by which it is compared, as far as names tell it:
// loopback addresses and localhost are one host, and 443 is the port where none is written.
func plainHost(text string) string {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.Trim(text, "[]"), "443"
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip := net.ParseIP(host); host == "localhost" || ip.IsLoopback() || ip.IsUnspecified() {
		host = "localhost"
	} else if ip != nil {
		host = ip.String()
	}
	return net.JoinHostPort(host, port)
}

// String returns HOST[/PATH].
func (t Target) String() string {
	if t.Path == "" {
		return t.Host
	}
	return t.Host + "/" + t.Path
}

// at returns the destination of a path and a tag.
func (t Target) at(source, tag string) Ref {
	if t.Path != "" {
		source = t.Path + "/" + source
	}
	if parts := strings.Split(source, "/"); t.MaxNestedPaths > 0 && len(parts) > t.MaxNestedPaths {
		kept := parts[:t.MaxNestedPaths-1]
		source = strings.Join(append(kept[:len(kept):len(kept)], strings.Join(parts[len(kept):], "-")), "/")
	}
	return Ref{Transport: Docker, Host: t.Host, Path: source, Tag: tag}
}

// DigestTag returns the tag of an image that is pulled by digest: sha256-HEX. It keeps registries from deleting the
// image as untagged.
func DigestTag(d digest.Digest) string { return d.Algorithm().String() + "-" + d.Encoded() }

// Image returns the destination of a bundle or a related image: its path, with its tag or, without one, [DigestTag].
// The host of the source is dropped.
func (t Target) Image(r Ref) Ref {
	if r.Tag == "" && r.Digest != "" {
		return t.at(r.Path, DigestTag(r.Digest))
	}
	return t.at(r.Path, r.Tag)
}

// Additional returns the destination of an additional image. The error is about a layout whose path is no name of a
// repository.
func (t Target) Additional(a AdditionalImage) (Ref, error) {
	name := a.Name
	if !name.InRegistry() {
		name = Ref{Transport: Docker, Path: strings.TrimLeft(path.Clean("/"+name.Path), "/"), Tag: "latest"}
	}
	if a.TargetRepo != "" {
		name.Path = a.TargetRepo
	}
	if a.TargetTag != "" {
		name.Tag = a.TargetTag
	}
	if !pathExpr().MatchString(name.Path) {
		return Ref{}, fmt.Errorf("%w: the path %s is no name of a repository: set targetRepo", fault.ErrInvalid,
			fault.Quote(name.Path))
	}
	return t.Image(name), nil
}

// Catalog returns the destination of a catalog. filtered says that it is rebuilt; rebuilt is then the digest of the
// rebuilt image, or empty before it is known. hash is [Operator.FilterHash], which stands for it in the meantime.
func (t Target) Catalog(o Operator, filtered bool, rebuilt digest.Digest, hash string) Ref {
	name, tag := o.Catalog.Path, o.Catalog.Tag
	if !o.Catalog.InRegistry() {
		name, tag = path.Base(name), "latest"
	}
	if o.TargetCatalog != "" {
		name = o.TargetCatalog
	}
	switch {
	case o.TargetTag != "":
		tag = o.TargetTag
	case tag != "":
	case !filtered:
		tag = DigestTag(o.Catalog.Digest)
	case rebuilt != "":
		tag = DigestTag(rebuilt)
	default:
		tag = "sha256-" + hash
	}
	return t.at(name, tag)
}

// checkPath checks a path at the destination that a configuration gives: targetCatalog or targetRepo.
func checkPath(text string) error {
	switch {
	case strings.Contains(text, "@"), strings.Contains(text, ":"):
		return fmt.Errorf("%s has a tag or a digest, and is to be a path only", fault.Quote(text))
	case !pathExpr().MatchString(text):
		return fmt.Errorf("%s is no path of a repository", fault.Quote(text))
	case len(text) >= maxPath:
		return errors.New("longer than the name of a repository may be")
	}
	return nil
}

// ReleaseImages returns the destination of a release image with a tag; without one, that of all release images.
func (t Target) ReleaseImages(tag string) Ref { return t.at("openshift/release-images", tag) }

// ReleaseContent returns the destination of a component of the release with a tag; without both that of all of them.
func (t Target) ReleaseContent(release, component string) Ref {
	tag := release
	if component != "" {
		tag += "-" + component
	}
	return t.at("openshift/release", tag)
}

// GraphImage returns the destination of the image with the data of update graphs.
func (t Target) GraphImage() Ref { return t.at("openshift/graph-image", "latest") }
