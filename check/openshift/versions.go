package openshift

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/check/internal/apiserver"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// Version is a minor version of OpenShift. It is comparable; the zero value is none.
type Version struct{ Major, Minor int }

var versionForm = lazyregexp.New(`^v?([1-9][0-9]?)\.(0|[1-9][0-9]{0,2})(\.[0-9]{1,9})?$`)

// Parse returns the version of a text such as 4.17, v4.17 or v4.17.0. The patch is dropped.
func Parse(text string) (Version, error) {
	m := versionForm().FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("%.100q is no version of OpenShift such as v4.17", text)
	}
	major, _ := strconv.Atoi(m[1]) // at most three digits
	minor, _ := strconv.Atoi(m[2])
	return Version{major, minor}, nil
}

// String returns the version as "4.17".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Compare orders versions.
func (v Version) Compare(o Version) int {
	return cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor))
}

// MarshalText returns the version as "4.17".
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what [Parse] reads.
func (v *Version) UnmarshalText(text []byte) (err error) {
	*v, err = Parse(string(text))
	return err
}

// Kubernetes is a minor version of Kubernetes, as "1.30".
type Kubernetes = apiserver.Version

// Date is the day of the built-in tables: versions that came later are not in them.
const Date = "2026-09-30"

// The organizations of the operator pipelines.
const (
	Community   = "community-operators"
	Certified   = "certified-operators"
	Marketplace = "redhat-marketplace"
)

// Table has the known versions of OpenShift. It is safe for concurrent use.
type Table struct {
	kubernetes map[Version]Kubernetes
	indices    map[string][]Version
}

// NewTable returns the built-in table with the Kubernetes of more versions, and with the indices of organizations in
// place of the built-in ones. Both maps may be nil.
func NewTable(kubernetes map[Version]Kubernetes, indices map[string][]Version) *Table {
	t := &Table{map[Version]Kubernetes{{4, 1}: 13, {4, 2}: 14}, map[string][]Version{
		Community: minors(12, 22), Certified: minors(12, 22), Marketplace: minors(12, 21)}}
	for _, v := range minors(3, 22) {
		t.kubernetes[v] = Kubernetes(v.Minor + 13)
	}
	maps.Copy(t.kubernetes, kubernetes)
	for organization, versions := range indices {
		sorted := slices.SortedFunc(slices.Values(versions), Version.Compare)
		t.indices[organization] = slices.Compact(sorted)
	}
	return t
}

// minors returns 4.first to 4.last.
func minors(first, last int) (out []Version) {
	for i := first; i <= last; i++ {
		out = append(out, Version{4, i})
	}
	return out
}

// Versions returns the versions whose Kubernetes is known, in ascending order.
func (t *Table) Versions() []Version {
	return slices.SortedFunc(maps.Keys(t.kubernetes), Version.Compare)
}

// Kubernetes returns the Kubernetes in a version, and whether it is known.
func (t *Table) Kubernetes(v Version) (Kubernetes, bool) {
	k, ok := t.kubernetes[v]
	return k, ok
}

// Indices returns the versions for which an organization has an index, in ascending order; none for an unknown one.
func (t *Table) Indices(organization string) []Version { return slices.Clone(t.indices[organization]) }

// Annotation is the annotation of a bundle with the versions that it is for.
const Annotation = "com.redhat.openshift.versions"

// Select returns those of the indices that a text of the annotation [Annotation] means: "v4.12" is 4.12 and later,
// "=v4.12" that alone, "v4.12-v4.14" a range with both ends; a list as "v4.5,v4.6", which is from the lowest on, is
// documented for these two alone. The v may be absent. The empty text means all of them.
func Select(annotation string, indices []Version) ([]Version, error) {
	text := strings.TrimSpace(annotation)
	if text == "" {
		return slices.Clone(indices), nil
	}
	refused := fmt.Errorf("%.100q does not select versions of OpenShift: write v4.12 for 4.12 and later, =v4.12, "+
		"or v4.12-v4.14", annotation)
	var only bool
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		first, only = strings.CutPrefix(text, "=")
	}
	names := strings.Split(first, ",")
	if (only || isRange) && len(names) > 1 {
		return nil, refused
	}
	var versions []Version
	for _, name := range append(names, last) {
		v, err := Parse(name)
		switch {
		case name == "" && !isRange && len(versions) == len(names): // there is no last one
		case err != nil || strings.Count(name, ".") != 1:
			return nil, refused
		default:
			versions = append(versions, v)
		}
	}
	return slices.DeleteFunc(slices.Clone(indices), func(v Version) bool {
		switch {
		case only:
			return v != versions[0]
		case isRange:
			return v.Compare(versions[0]) < 0 || v.Compare(versions[1]) > 0
		}
		return v.Compare(slices.MinFunc(versions, Version.Compare)) < 0
	}), nil
}
