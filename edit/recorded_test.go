package edit_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/recorded"
	"github.com/operator-bindery/bindery/internal/testbundles"
	"github.com/operator-bindery/bindery/sqlite"
)

const registry = "127.0.0.1:5056/"

// step is one command of a recorded sequence.
type step struct {
	do   func(*testing.T, *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error)
	fail string // a part of the error's text
	kind error
	exit int // opm's exit status, if it fails
}

// refs expands "REPOSITORY: TAG TAG..." lists.
func refs(lists ...string) []string {
	var out []string
	for _, l := range lists {
		repository, tags, _ := strings.Cut(l, ":")
		for _, tag := range strings.Fields(tags) {
			out = append(out, registry+repository+":"+tag)
		}
	}
	return out
}

func add(o edit.AddOptions, lists ...string) step {
	return addRefs(o, refs(lists...))
}

func addRefs(o edit.AddOptions, images []string) step {
	return step{do: func(t *testing.T, c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		var list []edit.Addition
		for _, image := range images {
			list = append(list, recordedAddition(t, image))
		}
		return edit.Add(c, list, o)
	}}
}

// each adds bundles one by one.
func each(o edit.AddOptions, lists ...string) []step {
	var out []step
	for _, ref := range refs(lists...) {
		out = append(out, addRefs(o, []string{ref}))
	}
	return out
}

func rm(packages ...string) step {
	return step{do: func(_ *testing.T, c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return edit.Remove(c, packages, edit.RemoveOptions{})
	}}
}

func prune(keep ...string) step {
	return step{do: func(_ *testing.T, c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return edit.Prune(c, keep)
	}}
}

func pruneStranded() step {
	return step{do: func(_ *testing.T, c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return edit.PruneStranded(c)
	}}
}

func truncate(o edit.TruncateOptions, lists ...string) step {
	return step{do: func(_ *testing.T, c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return edit.DeprecateTruncate(c, refs(lists...), o)
	}}
}

func (s step) fails(exit int, kind error, text string) step {
	s.exit, s.kind, s.fail = exit, kind, text
	return s
}

var additions sync.Map

// recordedAddition reads a recorded bundle.
func recordedAddition(t *testing.T, image string) edit.Addition {
	t.Helper()
	if a, ok := additions.Load(image); ok {
		return a.(edit.Addition)
	}
	tagged := image
	if strings.Contains(image, "@") {
		tagged = tagOf(t, image)
	}
	repository, tag, _ := strings.Cut(strings.TrimPrefix(tagged, registry), ":")
	dir := testbundles.Write(t, t.TempDir(), filepath.Base(repository)+"-"+tag)
	b, err := bundle.Read(context.Background(), os.DirFS(dir), bundle.ReadOptions{})
	if err != nil {
		t.Fatalf("%s: %v", image, err)
	}
	a, err := edit.NewAddition(b, image)
	if err != nil {
		t.Fatal(err)
	}
	additions.Store(image, a)
	return a
}

// tagOf finds the tag of a recorded image that is given by digest.
func tagOf(t *testing.T, image string) string {
	t.Helper()
	_, digest, _ := strings.Cut(image, "@")
	f, err := os.Open(filepath.Join(testbundles.Collection(), "images-dev.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), "\t"); len(fields) > 1 && fields[1] == digest {
			return fields[0]
		}
	}
	t.Fatalf("no recorded image has the digest %s", digest)
	return ""
}

// database reads the catalog of a recorded database.
func database(t *testing.T, name string) *declcfg.Catalog {
	return databaseOf(t, recorded.All(t), name)
}

func databaseOf(t *testing.T, from recorded.Collection, name string) *declcfg.Catalog {
	t.Helper()
	db, err := sqlite.Open(context.Background(), from.Database(t, name), sqlite.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := &declcfg.Catalog{}
	for b, err := range db.Blobs(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		c.Add(b)
	}
	return c
}

// lines shows a catalog as sorted lines, one for each package, channel, entry, edge, property and image. Manifests are
// left out where without is set.
func lines(c *declcfg.Catalog, without bool) []string {
	var out []string
	line := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, p := range c.Packages {
		icon := "none"
		if p.Icon != nil {
			icon = fmt.Sprintf("%s %x", p.Icon.MediaType, sha256.Sum256(p.Icon.Data))
		}
		line("package %s default %s icon %s description %q", p.Name, p.DefaultChannel, icon, p.Description)
	}
	for _, ch := range c.Channels {
		line("channel %s/%s of %d", ch.Package, ch.Name, len(ch.Entries))
		for _, e := range ch.Entries {
			skips := slices.Clone(e.Skips)
			sort.Strings(skips)
			line("entry %s/%s/%s replaces %q skips %q range %q", ch.Package, ch.Name, e.Name, e.Replaces, skips, e.SkipRange)
		}
	}
	for _, b := range c.Bundles {
		line("bundle %s/%s image %s", b.Package, b.Name, b.Image)
		for _, p := range b.Properties {
			if p.Type != declcfg.PropertyBundleObject || !without {
				value, _ := sortKeys(p.Value)
				line("property %s/%s %s %s", b.Package, b.Name, p.Type, value)
			}
		}
		for _, r := range b.RelatedImages {
			line("image %s/%s %s %s", b.Package, b.Name, r.Name, r.Image)
		}
	}
	for _, d := range c.Deprecations {
		for _, e := range d.Entries {
			line("deprecated %s %v %q", d.Package, e.Reference, e.Message)
		}
	}
	sort.Strings(out)
	return out
}

func sortKeys(value json.RawMessage) (string, error) {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return string(value), err
	}
	sorted, err := json.Marshal(v)
	return string(sorted), err
}

// differences are the lines that only one of two lists has.
func differences(got, want []string) string {
	count := map[string]int{}
	for _, l := range got {
		count[l]++
	}
	for _, l := range want {
		count[l]--
	}
	var out []string
	for l, n := range count {
		if len(l) > 300 {
			l = l[:300] + "..."
		}
		switch {
		case n > 0:
			out = append(out, "  only ours: "+l)
		case n < 0:
			out = append(out, "  only opm's: "+l)
		}
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

// onlyHeads leaves of catalogs what opm's mode semver-skippatch got right.
func onlyHeads(theirs, ours *declcfg.Catalog) {
	for _, c := range []*declcfg.Catalog{theirs, ours} {
		g, err := declcfg.NewGraph(c)
		if err != nil {
			panic(err)
		}
		var channels []declcfg.Channel
		for _, p := range g.Packages {
			for _, ch := range p.Channels {
				head, err := ch.Head()
				if err != nil {
					panic(err)
				}
				channels = append(channels, declcfg.Channel{Name: ch.Name, Package: p.Name, Entries: []declcfg.ChannelEntry{{Name: head.Name}}})
			}
		}
		c.Channels, c.Bundles = channels, nil
	}
}

func TestRecordedSequences(t *testing.T) {
	for _, s := range sequences {
		t.Run(s.database, func(t *testing.T) {
			t.Parallel()
			want := database(t, s.database)
			c := &declcfg.Catalog{}
			if s.from != "" {
				c = database(t, s.from)
			}
			for i, step := range s.steps {
				before := show(c)
				next, account, err := step.do(t, c)
				if after := show(c); after != before {
					t.Fatalf("step %d changed its input:\n%s", i, after)
				}
				if step.kind != nil {
					var e *edit.Error
					if !errors.As(err, &e) || !errors.Is(err, step.kind) || !strings.Contains(err.Error(), step.fail) || e.ExitStatus() != step.exit || next != nil || account != nil {
						t.Errorf("step %d: got %v", i, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if account == nil {
					t.Fatalf("step %d: no account", i)
				}
				c = next
				if err := declcfg.Validate(c); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			if s.also != nil {
				s.also(t, c)
			}
			if s.edit != nil {
				s.edit(want, c)
			}
			if d := differences(lines(c, !s.objects), lines(want, !s.objects)); d != "" {
				t.Errorf("%s\n%s", s.why, d)
			}
		})
	}
}
