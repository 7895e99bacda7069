package resources

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// maxObject bounds the size of an object in bytes: a cluster's store refuses much larger ones.
const maxObject = 250_000

// kind is a kind of objects that list mirrors.
type kind struct {
	apiVersion, kind string
	// file is the prefix of the file's and the objects' names; list is the field with the mirrors.
	file, list string
	applies    func(*Copied) bool
}

func byDigest(c *Copied) bool { return c.Source.Digest != "" }
func byTag(c *Copied) bool    { return c.Source.Tag != "" }

// addMirrors adds the sets of mirrors: one file for each kind, with an object for each category.
func (m *maker) addMirrors(images []Copied) {
	kinds := []kind{
		{"config.openshift.io/v1", "ImageDigestMirrorSet", "idms", "imageDigestMirrors", byDigest},
		{"config.openshift.io/v1", "ImageTagMirrorSet", "itms", "imageTagMirrors", byTag},
	}
	if m.o.Policy {
		kinds = append(kinds, kind{"operator.openshift.io/v1alpha1", "ImageContentSourcePolicy", "icsp",
			"repositoryDigestMirrors", byDigest})
	}
	for _, k := range kinds {
		var file bytes.Buffer
		for _, category := range []string{releases, operators, additional} {
			entries := m.entries(images, category, k.applies)
			for i, part := range m.split(entries) {
				file.WriteString("---\n")
				file.Write(m.text(object{"apiVersion": k.apiVersion, "kind": k.kind, "metadata": object{
					"name": fmt.Sprintf("%s-%s-%d", k.file, category, i), "annotations": m.annotations()},
					"spec": object{k.list: part}}))
			}
		}
		if file.Len() > 0 {
			m.add(k.file+"-oc-mirror.yaml", file.Bytes())
		}
	}
}

// entry is a source with its mirrors.
type entry struct {
	Mirrors []string `json:"mirrors"`
	Source  string   `json:"source"`
}

// entries returns the mirrors of a category, by source.
func (m *maker) entries(images []Copied, category string, applies func(*Copied) bool) []entry {
	mirrors := map[string][]string{}
	for i := range images {
		c := &images[i]
		if c.Catalog || c.category() != category || !applies(c) {
			continue
		}
		if !c.Source.InRegistry() {
			continue // nothing pulls a layout by name
		}
		source, mirror := m.scope(c)
		if !slices.Contains(mirrors[source], mirror) {
			mirrors[source] = append(mirrors[source], mirror)
		}
	}
	out := make([]entry, 0, len(mirrors))
	for _, source := range slices.Sorted(maps.Keys(mirrors)) {
		out = append(out, entry{mirrors[source], source})
	}
	return out
}

// scope returns what is redirected to what: the namespaces if the paths end alike, else the repositories.
func (m *maker) scope(c *Copied) (source, mirror string) {
	from, to := c.Source, c.Destination
	if m.o.Repositories || m.o.Nested || c.Source.Host == "" ||
		to.Path != from.Path && !strings.HasSuffix(to.Path, "/"+from.Path) {
		return from.Repository(), to.Repository()
	}
	from.Path, to.Path = parent(from.Path), parent(to.Path)
	if from.Path == "" {
		m.warn(fmt.Sprintf("the mirrors of %s hold for the whole registry %s: --idms-scope repository names "+
			"repositories", c.Source.Name(), c.Source.Host))
	}
	return strings.TrimSuffix(from.Repository(), "/"), strings.TrimSuffix(to.Repository(), "/")
}

// parent returns a path without its last part.
func parent(p string) string {
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}

// split divides mirrors among objects of a limited size.
func (m *maker) split(entries []entry) [][]entry {
	const room = maxObject - 2000 // for the rest of the object
	var out [][]entry
	size := room
	for _, e := range entries {
		n := len("  - mirrors:\n    source: \n") + len(e.Source)
		for _, mirror := range e.Mirrors {
			n += len("    - \n") + len(mirror)
		}
		if size += n; size > room {
			out, size = append(out, nil), n
		}
		out[len(out)-1] = append(out[len(out)-1], e)
	}
	return out
}

// mapping returns the images as lines SOURCE=DESTINATION with their transports, sorted.
func mapping(images []Copied) []byte {
	lines := make([]string, 0, len(images))
	for i := range images {
		from := images[i].Source
		if from.Digest != "" {
			from.Tag = "" // clusters pull it by the digest
		}
		lines = append(lines, from.String()+"="+images[i].Destination.String()+"\n")
	}
	slices.Sort(lines)
	return []byte(strings.Join(slices.Compact(lines), ""))
}

// registries returns a registries.conf with the mirrors of all repositories.
func (m *maker) registries(images []Copied) []byte {
	mirrors := map[string][]string{}
	for i := range images {
		if c := &images[i]; !c.Catalog && c.Source.InRegistry() && c.Source.Host != "" {
			from, to := c.Source.Repository(), c.Destination.Repository()
			if !slices.Contains(mirrors[from], to) {
				mirrors[from] = append(mirrors[from], to)
			}
		}
	}
	return append([]byte("# "+created(m.annotations()["createdBy"].(string))+"\n"),
		RegistriesConf(mirrors, m.o.Insecure)...)
}

// RegistriesConf returns a registries.conf with which podman and bindery pull images from mirrors, and from the source
// if no mirror has them. mirrors are the repositories that have copies, by the repository at the source. insecure
// allows plain HTTP and any certificate for the mirrors.
func RegistriesConf(mirrors map[string][]string, insecure bool) []byte {
	var b bytes.Buffer
	for i, from := range slices.Sorted(maps.Keys(mirrors)) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "[[registry]]\nprefix = %q\nlocation = %q\n", from, from)
		for _, to := range mirrors[from] {
			fmt.Fprintf(&b, "\n[[registry.mirror]]\nlocation = %q\n", to)
			if insecure {
				b.WriteString("insecure = true\n")
			}
		}
	}
	return b.Bytes()
}
