package resources_test

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/resources"
)

// runs of oc-mirror from registry to registry, with the number that --max-nested-paths had.
var runs = map[string]int{"01-m2m-heads": 0, "04-m2m-full": 0, "05-target-catalog": 0, "07-blocked": 0,
	"10-multiarch-catalog": 0, "13-additional": 0, "15-max-nested-paths": 2, "16-signatures": 0,
	"17-catalog-by-digest": 0,
	"19-cs-template":       0, "18h-bundle-not-in-its-related-images": 0}

var (
	copiedLine = regexp.MustCompile(`Success copying (?:docker://)?(registry\.example\.com/\S+) ➡️ 127`)
	fileLine   = regexp.MustCompile(`(?m)^##### (\S+)\n`)
)

// copied returns the images that a recorded run copied, according to its output.
func copied(t *testing.T, files map[string][]byte, dir string, nested int) []resources.Copied {
	t.Helper()
	set, err := imageset.Parse(files[dir+"/isc.yaml"], "isc.yaml", imageset.Image, imageset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	to := imageset.Target{Host: "127.0.0.1:5802", Path: "m", MaxNestedPaths: nested}
	var out []resources.Copied
	for _, op := range set.Operators {
		c := resources.Copied{Source: op.Catalog, Destination: to.Catalog(op, !op.WholeCatalog(),
			rebuilt(files, dir), ""), Catalog: true}
		if op.TargetCatalogSourceTemplate != "" {
			if c.Template, err = resources.ParseTemplate(files[dir+"/cs.yaml"]); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, c)
	}
	additional := map[string]bool{}
	for _, a := range set.AdditionalImages {
		additional[a.Name.Name()] = true
		if _, _, blocked := set.Blocked(a.Name, "", imageset.Ref{}, to); blocked {
			continue
		}
		d, err := to.Additional(a)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, resources.Copied{Source: a.Name, Destination: d, Additional: true})
	}
	for _, m := range copiedLine.FindAllStringSubmatch(string(files[dir+"/01-m2m.txt"]), -1) {
		r, err := imageset.ParseRef(m[1])
		if err != nil {
			t.Fatal(err)
		}
		if !additional[r.Name()] && !strings.Contains(r.Path, "/catalog") {
			out = append(out, resources.Copied{Source: r, Destination: to.Image(r)})
		}
	}
	return out
}

// rebuilt returns the digest of a rebuilt catalog, from the destination's listing.
func rebuilt(files map[string][]byte, dir string) digest.Digest {
	m := regexp.MustCompile(`m/acme/catalog:sha256-([0-9a-f]{64})`).FindSubmatch(files[dir+"/01-m2m.registry.txt"])
	if m == nil {
		return ""
	}
	return digest.Digest("sha256:" + string(m[1]))
}

// recordedFiles splits the recorded files of a run.
func recordedFiles(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	at := fileLine.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		out[text[m[2]:m[3]]] = text[m[1]:end]
	}
	return out
}

// ordered returns the text of sets of mirrors with objects and entries in their fixed order, which oc-mirror's have
// not.
func ordered(t *testing.T, text string) string {
	t.Helper()
	var objects []string
	for _, doc := range strings.Split(text, "---\n")[1:] {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatal(err)
		}
		for _, list := range v["spec"].(map[string]any) {
			slices.SortFunc(list.([]any), func(a, b any) int {
				return strings.Compare(a.(map[string]any)["source"].(string), b.(map[string]any)["source"].(string))
			})
			for _, e := range list.([]any) {
				slices.SortFunc(e.(map[string]any)["mirrors"].([]any), func(a, b any) int {
					return strings.Compare(a.(string), b.(string))
				})
			}
		}
		again, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, "---\n"+string(again))
	}
	slices.Sort(objects)
	slices.Reverse(objects) // operator before generic
	return strings.Join(objects, "")
}

// The files are byte by byte those of oc-mirror, but for the time and the order in sets of mirrors.
func TestFilesAsRecorded(t *testing.T) {
	files := mirrortest.Runs(t)
	o := resources.Options{CreatedBy: "oc-mirror v2", Version: "v0.0.0-unknown",
		CreatedAt: time.Date(2026, 8, 1, 2, 3, 4, 0, time.UTC)}
	for dir, nested := range runs {
		t.Run(dir, func(t *testing.T) {
			o := o
			o.Nested = nested > 0
			made, _, err := o.Make(copied(t, files, dir, nested))
			if err != nil {
				t.Fatal(err)
			}
			want := recordedFiles(t, string(files[dir+"/01-m2m.cluster-resources.yaml"]))
			got := map[string]string{}
			for _, f := range made {
				got[f.Name] = string(f.Data)
			}
			if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
				t.Fatalf("got the files %v, recorded %v", a, b)
			}
			for name, text := range want {
				text = strings.ReplaceAll(text, "<rfc3339>", "2026-08-01T02:03:04Z")
				if path.Base(name)[0] == 'i' {
					text = ordered(t, text)
					if got[name] != ordered(t, got[name]) {
						t.Errorf("%s has no fixed order:\n%s", name, got[name])
					}
				}
				if got[name] != text {
					t.Errorf("%s: got\n%s\nrecorded\n%s", name, got[name], text)
				}
			}
		})
	}
}
