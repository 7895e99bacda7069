package charts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
	"github.com/operator-bindery/bindery/internal/webclient"
)

const (
	// MaxIndex is the limit of an index in bytes.
	MaxIndex = 32 << 20
	// maxVersions is how many versions of charts an index may have, and maxURLs how many addresses each.
	maxVersions = 200_000
	maxURLs     = 100
)

// Entry is a version of a chart in an index.
type Entry struct {
	Name, Version string
	// Library tells that the chart renders nothing.
	Library bool
	// Digest is that of the archive; empty if the index does not say.
	Digest digest.Digest
	// URLs are where the archive is, as they are written: relative to the repository, or whole.
	URLs []string
}

// Index is the index of a repository.
type Index struct {
	names    []string // sorted
	versions map[string][]Entry
	// Odd says what is left out of it.
	Odd []string
}

// indexForm is the file; other fields do not matter here.
type indexForm struct {
	Entries map[string][]*struct {
		Name    string   `json:"name"`
		Version string   `json:"version"`
		Type    string   `json:"type"`
		Digest  string   `json:"digest"`
		URLs    []string `json:"urls"`
	} `json:"entries"`
}

// ParseIndex reads the text of an index.yaml. Entries without a usable name, version or address are left out.
func ParseIndex(text []byte) (*Index, error) {
	if len(text) > MaxIndex {
		return nil, fmt.Errorf("%w: an index of %d bytes (limit %d)", fault.ErrLimit, len(text), MaxIndex)
	}
	limits := canon.Limits{MaxDocument: MaxIndex, MaxIrregular: MaxIndex, MaxNodes: 1_000_000, MaxDepth: 32}
	split := canon.NewSplitter(bytes.NewReader(text), limits)
	doc, err := split.Next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: the index is empty", fault.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: index: %w", fault.ErrInvalid, err)
	}
	conv := canon.Converter{Limits: limits}
	plain, err := conv.Append(nil, doc)
	if err != nil {
		return nil, fmt.Errorf("%w: index: %w", fault.ErrInvalid, err)
	}
	var form indexForm
	if err := json.Unmarshal(plain, &form); err != nil {
		return nil, fmt.Errorf("%w: index: %w", fault.ErrInvalid, err)
	}
	if form.Entries == nil {
		return nil, fmt.Errorf("%w: it has no entries: it is no index of charts", fault.ErrInvalid)
	}
	x := &Index{versions: map[string][]Entry{}}
	count := 0
	for name, list := range form.Entries {
		if CheckName(name) != nil {
			x.Odd = append(x.Odd, fault.Quote(name)+" is no name of a chart")
			continue
		}
		for _, v := range list {
			if count++; count > maxVersions {
				return nil, fmt.Errorf("%w: an index with more than %d versions of charts", fault.ErrLimit, maxVersions)
			}
			if v == nil || v.Name != name || FullVersion(v.Version) == "" || len(v.URLs) == 0 || len(v.URLs) > maxURLs {
				x.Odd = append(x.Odd, "a version of "+name+" without a usable name, version or URL")
				continue
			}
			x.versions[name] = append(x.versions[name], Entry{name, v.Version, v.Type == "library", digestOf(v.Digest), v.URLs})
		}
		slices.SortStableFunc(x.versions[name], func(a, b Entry) int { return compareVersions(a.Version, b.Version) })
		if len(x.versions[name]) > 0 {
			x.names = append(x.names, name)
		}
	}
	slices.Sort(x.names)
	slices.Sort(x.Odd)
	return x, nil
}

// digestOf reads a digest as indexes have it: HEX, or sha256:HEX. Others do not count.
func digestOf(text string) digest.Digest {
	d := digest.NewDigestFromEncoded(digest.SHA256, strings.TrimPrefix(strings.ToLower(text), "sha256:"))
	if d.Validate() != nil {
		return ""
	}
	return d
}

// Find returns the newest version of a chart that fits a rule.
func (x *Index) Find(name string, rule Rule) (Entry, error) {
	list := x.versions[name]
	if len(list) == 0 {
		err := absent("the repository has no chart " + fault.Quote(name))
		if near, ok := nearest.Name(name, x.names); ok {
			return Entry{}, fault.Advise(err, "did you mean "+fault.Quote(near)+"?")
		}
		return Entry{}, err
	}
	versions := make([]string, len(list))
	for i := range list {
		versions[i] = list[i].Version
	}
	at := rule.find(versions)
	if at < 0 {
		return Entry{}, noVersion(name, rule, versions)
	}
	return list[at], nil
}

// noVersion is the error about a chart none of whose versions fits.
func noVersion(name string, rule Rule, versions []string) error {
	shown := versions[:min(len(versions), 10)]
	text := strings.Join(shown, ", ")
	if more := len(versions) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if rule.text == "" {
		return absent(fmt.Sprintf("chart %s has only pre-releases (%s): name one as its version", name, fault.Clip(text, 500)))
	}
	return absent(fmt.Sprintf("no version of the chart %s fits %s; there are %s", name, fault.Quote(rule.text), fault.Clip(text, 500)))
}

// All returns all versions of all charts but libraries, by name, the newest first.
func (x *Index) All() []Entry {
	var out []Entry
	for _, name := range x.names {
		for _, e := range x.versions[name] {
			if !e.Library {
				out = append(out, e)
			}
		}
	}
	return out
}

// address returns the URL of an archive: that of the entry, relative to the repository. Only a repository of the same host gets
// the user and password of the repository's URL.
func address(repository *url.URL, written string) (*url.URL, error) {
	ref, err := url.Parse(written)
	if err != nil || len(written) > 4000 {
		return nil, fmt.Errorf("%w: the index names the archive %s, which is no URL", fault.ErrInvalid, fault.Quote(written))
	}
	base := *repository
	if !strings.HasSuffix(base.Path, "/") {
		base.Path, base.RawPath = base.Path+"/", ""
	}
	base.RawQuery, base.Fragment = "", ""
	at := base.ResolveReference(ref)
	if at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.Opaque != "" {
		return nil, fmt.Errorf("%w: the index names the archive %s, expected one of http or https", fault.ErrInvalid, fault.Quote(written))
	}
	if err := webclient.CheckAddress(repository.Hostname(), at.Hostname()); err != nil {
		return nil, fmt.Errorf("%w: the index names the archive %s: %w", fault.ErrInvalid, fault.Quote(plain(at)), err)
	}
	if at.Host != repository.Host || at.Scheme != repository.Scheme {
		at.User = nil
	} else {
		at.User = repository.User
	}
	return at, nil
}
