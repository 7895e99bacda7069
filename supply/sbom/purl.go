package sbom

import (
	"strings"

	"github.com/opencontainers/go-digest"
)

// ociPURL returns the package URL of an image (type oci): the last element of the repository in lower case, the digest,
// and the whole repository as a qualifier. It is empty without a repository or a digest: an image has no other
// identity.
func ociPURL(name string, d digest.Digest, arch string) string {
	if name == "" || d == "" {
		return ""
	}
	short := strings.ToLower(name[strings.LastIndex(name, "/")+1:])
	var b strings.Builder
	b.WriteString("pkg:oci/" + escape(short, "") + "@" + escape(d.String(), ":") + "?")
	if arch != "" {
		b.WriteString("arch=" + escape(arch, "") + "&")
	}
	b.WriteString("repository_url=" + escape(name, ""))
	return b.String()
}

// golangPURL returns the package URL of a Go module, whose elements are in lower case.
func golangPURL(path, version string) string {
	if path == "" {
		return ""
	}
	s := "pkg:golang/" + escape(strings.ToLower(path), "/")
	if version != "" {
		s += "@" + escape(version, ":")
	}
	return s
}

// escape encodes all bytes but letters, digits, ".-_~" and the ones in keep, in the canonical form of package URLs.
func escape(s, keep string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(".-_~", c) >= 0 ||
			strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}
