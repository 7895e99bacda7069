package edit_test

import (
	"bufio"
	"cmp"
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

	"github.com/blang/semver/v4"

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

var (
	etcd = "community/etcd: v0.6.1 v0.9.0 v0.9.2 v0.9.2-clusterwide v0.9.4 v0.9.4-clusterwide"
	sts  = "community/silicom-sts-operator: v0.0.1 v0.0.2 v0.0.3 v0.0.4 v0.0.5 v0.0.6"
	prom = "community/prometheus: v0.14.0 v0.15.0 v0.22.2 v0.27.0 v0.32.0 v0.37.0 v0.47.0 v0.56.3"

	skupper  = "community/skupper-operator: v1.5.3 v1.6.0 v1.7.0 v1.7.1 v1.8.0 v1.8.1 v1.8.2 v1.8.3 v1.8.4 v1.9.0 v1.9.1 v1.9.2 v1.9.3 v1.9.4 v1.9.6"
	cross    = "community/universal-crossplane: v1.2.1-up.3 v1.2.1-up.4 v1.2.2-up.1 v1.2.3-up.1 v1.3.1-up.1 v1.3.3-up.1 v1.4.3-up.1 v1.5.1-up.1"
	kairos   = "community/kairos-operator: v2.0.1 v2.1.0 v2.1.1 v2.2.0"
	health   = "community/node-healthcheck-operator: v0.1.1 v0.3.0 v0.5.0 v0.6.0 v0.6.1 v0.7.0 v0.8.0 v0.9.0 v0.10.0 v0.10.3 v0.11.0 v0.12.0"
	rhoas    = "community/rhoas-operator: v0.6.8 v0.7.1 v0.7.2 v0.7.6 v0.7.8 v0.7.9 v0.7.10 v0.8.2 v0.9.0 v0.9.1 v0.9.2 v0.9.3 v0.9.5 v0.9.6 v0.11.0 v0.12.0 v0.13.0"
	deprec   = "synth/synth-deprec: v1.0.0 v1.1.0 v1.2.0 v1.3.0 v1.4.0 v2.0.0"
	subsBase = "synth/synth-subs: v1.0.0 v1.1.0 v1.2.0"
	subs     = "synth/synth-subs: v1.0.0 v1.1.0 v1.1.0-0.1664.p v1.2.0 v1.2.0-0.1700.p"

	medium = []string{etcd, prom, sts, skupper,
		"community/pelorus-operator: v0.0.1 v0.0.2 v0.0.3 v0.0.4 v0.0.5 v0.0.6 v0.0.7 v0.0.8 v0.0.9",
		"community/rabbitmq-messaging-topology-operator: v1.8.0 v1.9.0 v1.10.0 v1.10.1 v1.10.2 v1.10.3 v1.11.0 v1.12.0 v1.12.1 v1.12.2 v1.13.0 v1.14.1 v1.14.2 v1.15.0 v1.16.0 v1.17.4 v1.18.1 v1.18.2 v1.19.2 v1.19.3",
		"community/file-integrity-console-plugin: v0.3.1 v0.4.0 v0.4.0-ocp4.16 v0.4.0-ocp4.19 v0.4.1 v0.4.1-ocp4.16 v0.4.1-ocp4.19",
		"community/cockroachdb: v2.0.9 v2.1.1 v2.1.11 v3.0.7 v5.0.3 v5.0.4 v6.0.0",
		"community/apicurito: v0.1.0 v1.0.1 v1.0.2 v1.0.3",
		"community/dapr-kubernetes-operator: v0.0.3 v0.0.4 v0.0.5 v0.0.6 v0.0.7 v0.0.8 v0.0.9 v0.0.10 v0.0.11 v0.0.12 v0.0.13"}
	mediumDigest = []string{
		"etcd@sha256:39743e9a56f4de7861b7fcf7d3a7ec4171fd8d1f1457e0305fcbdfb54c1fe280", "etcd@sha256:ecb7ca6c2475004ef4ca26015c0e892ef7acef46a655294968909664cd80e960",
		"etcd@sha256:e456d0b3716de915b5ade9579124e8e123ac7e84100a22bc042bd16ddbee305d", "etcd@sha256:a1ab43f28c8901492fa20ff9c3a6e84ee5054ae9925c0427ad23660b38e0e599",
		"etcd@sha256:20764874ca1b2665ae825cd2e3bfbf0c1e242ec0e116e9f6a2f56aa5b5ba677a", "etcd@sha256:a00354c534ce2e3e3c61660b321776a24d999bda914e07936dc8b647547916d9",
		"silicom-sts-operator@sha256:9dbdbebd41e49d1218e38ba445ba231a7ed88b99c1ca6c7a0393a15d9b883122", "silicom-sts-operator@sha256:71bbc637f3a3a74fab1ac666857f748894c8487942c50f9c47d4e50685a08ad4",
		"silicom-sts-operator@sha256:a346c3c33a33b03e860cc3517cc30768d9dd16c89ee9a0ee7af4d219e68da06a", "silicom-sts-operator@sha256:2aed854a517c5332418f070d53f4bade5df0f45163c0df3990ca71dfed380f5f",
		"silicom-sts-operator@sha256:1e0d1cdedcd5a0d518c8bf0e4233c888ad1846f05ccd8cb2acd718b93109dc41", "silicom-sts-operator@sha256:9ebc892e86c4b1616b0925381da88d7701d7e31162da145378e0513bb35494d7"}
)

func byDigest() []string {
	var out []string
	for _, d := range mediumDigest {
		out = append(out, registry+"community/"+d)
	}
	return out
}

// sequences are how the recorded databases were made. Those that begin with a database begin with opm's graph.
var sequences = []struct {
	database string
	from     string // a recorded database; empty for an empty catalog
	steps    []step
	why      string                              // why opm's database is not the whole answer
	edit     func(theirs, ours *declcfg.Catalog) // what has to be changed to make them equal
	objects  bool                                // compare manifests
	also     func(*testing.T, *declcfg.Catalog)  // what else ours must be
}{
	{database: "small", steps: []step{add(edit.AddOptions{}, etcd, sts)}, objects: true},
	{database: "small-digest", steps: []step{addRefs(edit.AddOptions{}, byDigest())}, objects: true},
	{database: "medium", steps: []step{add(edit.AddOptions{}, medium...)}, objects: true},
	{database: "constraint", steps: []step{add(edit.AddOptions{}, "synth/synth-constraint: v0.1.0 v0.2.0", etcd, prom)}, objects: true},
	{database: "incremental", steps: each(edit.AddOptions{}, skupper), objects: true},
	{database: "incremental-semver", steps: each(edit.AddOptions{Mode: edit.SemVer}, cross)},
	{database: "deprec-base", steps: []step{add(edit.AddOptions{}, deprec)}, objects: true},
	{database: "subs", steps: []step{add(edit.AddOptions{SubstitutesFor: true}, subs)}, objects: true},
	{database: "subs-two-step", steps: []step{
		add(edit.AddOptions{SubstitutesFor: true}, subsBase),
		add(edit.AddOptions{SubstitutesFor: true}, "synth/synth-subs: v1.1.0-0.1664.p"),
		add(edit.AddOptions{SubstitutesFor: true}, "synth/synth-subs: v1.2.0-0.1700.p"),
	}, objects: true},
	{database: "subs-noalpha", steps: []step{
		add(edit.AddOptions{}, subs).fails(1, edit.ErrAlpha, "SubstitutesFor is an alpha-only feature"),
		add(edit.AddOptions{Permissive: true}, subs),
	}, why: "opm keeps the bundles that it added before it failed; what it keeps is what a permissive add adds", objects: true},
	{database: "overwrite", from: "small", steps: []step{add(edit.AddOptions{OverwriteLatest: true}, "synth/etcd-overwrite: v0.9.4")}, objects: true},
	{database: "overwrite-notlatest", from: "small", steps: []step{
		add(edit.AddOptions{OverwriteLatest: true}, "synth/etcd-overwrite: v0.9.2").fails(1, edit.ErrOverwrite, "Cannot overwrite a bundle that is not at the head of a channel using --overwrite-latest"),
	}, objects: true},
	{database: "readd", from: "small", steps: []step{
		add(edit.AddOptions{}, "community/etcd: v0.9.4").fails(2, edit.ErrImageExists, "Bundle 127.0.0.1:5056/community/etcd:v0.9.4 already exists\nBundle already added that provides package and csv"),
	}, objects: true},
	{database: "replaces-fail-permissive", steps: []step{add(edit.AddOptions{Permissive: true}, kairos)}, objects: true},
	{database: "replaces-fail", steps: []step{
		add(edit.AddOptions{}, kairos).fails(1, edit.ErrGraph, "add prunes bundle kairos-operator.v2.0.1 (127.0.0.1:5056/community/kairos-operator:v2.0.1) from package kairos-operator, channel alpha: "+
			"this may be due to incorrect channel head (kairos-operator.v2.2.0, skips/replaces [kairos-operator.v2.1.1]). Be aware that"),
		add(edit.AddOptions{Permissive: true}, kairos),
	}, why: "opm changes the database although the add fails; the graph is that of a permissive add", objects: true},
	{database: "nodefault", steps: []step{
		add(edit.AddOptions{}, "community/kairos-operator: v2.0.1", "synth/synth-nodefault: v0.1.0").fails(1, edit.ErrDefaultChannel, "unable to determine default channel among channel heads"),
		add(edit.AddOptions{Permissive: true}, "community/kairos-operator: v2.0.1", "synth/synth-nodefault: v0.1.0"),
	}, why: "opm keeps the package that it could add", objects: true},
	{database: "deprec-readd", from: "deprec-v1.2.0", steps: []step{
		add(edit.AddOptions{}, "synth/synth-deprec: v1.1.0").fails(1, edit.ErrGraph, "add prunes bundle synth-deprec.v1.1.0 (127.0.0.1:5056/synth/synth-deprec:v1.1.0) from package synth-deprec, channel stable: "+
			"this may be due to incorrect channel head (synth-deprec.v1.3.0, skips/replaces [synth-deprec.v1.2.0])."),
	}, objects: true},
	{database: "rm", from: "medium", steps: []step{rm("prometheus", "cockroachdb")}, objects: true},
	{database: "rm-missing", from: "medium", steps: []step{
		rm("nosuchpackage").fails(1, edit.ErrNotFound, "error removing operator package nosuchpackage: no package found for packagename nosuchpackage"),
	}, objects: true},
	{database: "prune", from: "medium", steps: []step{prune("etcd", "skupper-operator")}, objects: true},
	{database: "prune-none", from: "medium", steps: []step{prune("nosuchpackage")}, objects: true},
	{database: "prune-stranded", from: "replaces-fail", steps: []step{pruneStranded()}, objects: true,
		why: "what is stranded in a database is not in the catalog that is read from it"},
	{database: "prune-stranded2", from: "stranded-in", steps: []step{pruneStranded()}, objects: true,
		why: "what is stranded in a database is not in the catalog that is read from it"},
	{database: "deprec-v1.0.0", from: "deprec-base", steps: []step{truncate(edit.TruncateOptions{}, "synth/synth-deprec: v1.0.0")}, objects: true},
	{database: "deprec-v1.2.0", from: "deprec-base", steps: []step{truncate(edit.TruncateOptions{}, "synth/synth-deprec: v1.2.0")}, objects: true},
	{database: "deprec-two", from: "deprec-base", steps: []step{truncate(edit.TruncateOptions{}, "synth/synth-deprec: v1.1.0 v1.2.0")}, objects: true},
	{database: "deprec-allheads", from: "deprec-base", steps: []step{
		truncate(edit.TruncateOptions{AllowPackageRemoval: true}, "synth/synth-deprec: v1.3.0 v1.4.0 v2.0.0")}, objects: true},
	{database: "deprec-missing", from: "deprec-base", steps: []step{
		truncate(edit.TruncateOptions{}, "synth/synth-deprec: v9.9.9").fails(1, edit.ErrNotFound,
			"target bundlepaths for deprecation missing from registry: [127.0.0.1:5056/synth/synth-deprec:v9.9.9]")}, objects: true},
	{database: "deprec-v1.3.0", from: "deprec-base", steps: []step{
		truncate(edit.TruncateOptions{}, "synth/synth-deprec: v1.3.0").fails(1, edit.ErrDefaultChannel,
			"error deprecating bundle 127.0.0.1:5056/synth/synth-deprec:v1.3.0: Bundle deprecation causing default channel removal")}, objects: true},
	{database: "deprec-v2.0.0", from: "deprec-base", steps: []step{
		truncate(edit.TruncateOptions{}, "synth/synth-deprec: v2.0.0").fails(1, edit.ErrDefaultChannel,
			"error deprecating bundle 127.0.0.1:5056/synth/synth-deprec:v2.0.0: Bundle deprecation causing default channel removal")}, objects: true},
	{database: "skippatch", steps: each(edit.AddOptions{Mode: edit.SemVerSkipPatch}, health, cross, kairos, etcd, rhoas), edit: onlyHeads,
		why: "eleven of the adds failed in opm (\"Invalid graph\") and cut the channels off all the same; only heads and default channels are those that they should be",
		also: func(t *testing.T, c *declcfg.Catalog) {
			got := show(c)
			for _, want := range []string{
				"etcd/clusterwide-alpha: etcdoperator.v0.9.0, etcdoperator.v0.9.2-clusterwide, etcdoperator.v0.9.4-clusterwide !etcdoperator.v0.9.0 !etcdoperator.v0.9.2-clusterwide",
				"etcd/singlenamespace-alpha: etcdoperator.v0.9.0, etcdoperator.v0.9.2, etcdoperator.v0.9.4 !etcdoperator.v0.9.0 !etcdoperator.v0.9.2",
				"kairos-operator/stable: 2.0.1, 2.1.0, 2.1.1 >2.0.1 !2.1.0, 2.2.0 >2.1.1",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("%s\nis not in\n%s", want, got)
				}
			}
		}},
	{database: "semver", steps: each(edit.AddOptions{Mode: edit.SemVer}, health, cross, rhoas, kairos, etcd)},
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

// TestRecordedBundles adds all recorded bundles of each package in every mode, in ways of which nothing was recorded: what
// comes of it is valid, and does not depend on whether they come at once or one by one.
func TestRecordedBundles(t *testing.T) {
	packages := map[string][]edit.Addition{}
	for _, name := range testbundles.Names(t) {
		b, err := bundle.Read(context.Background(), os.DirFS(testbundles.Write(t, t.TempDir(), name)), bundle.ReadOptions{})
		if err != nil {
			continue // there are broken ones among them
		}
		a, err := edit.NewAddition(b, registry+"all/"+name)
		if err != nil {
			continue
		}
		p, err := a.Bundle.PackageProperty()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := semver.Parse(p.Version); err == nil && !strings.HasPrefix(name, "etcd-overwrite") {
			packages[b.Package] = append(packages[b.Package], a)
		}
	}
	bundles, whole, same := 0, 0, 0
	for _, list := range packages {
		slices.SortFunc(list, func(a, b edit.Addition) int {
			x, _ := a.Bundle.PackageProperty()
			y, _ := b.Bundle.PackageProperty()
			v, w := semver.MustParse(x.Version), semver.MustParse(y.Version)
			return cmp.Or(v.Compare(w), cmp.Compare(x.Version, y.Version))
		})
		bundles += len(list)
		for _, mode := range edit.Modes() {
			o := edit.AddOptions{Mode: mode, SubstitutesFor: true}
			all, _, err := edit.Add(&declcfg.Catalog{}, list, o)
			o.Permissive = true
			lenient, account, lenientErr := edit.Add(&declcfg.Catalog{}, list, o)
			if lenientErr != nil || (err == nil) != (len(account.Problems) == 0) {
				t.Errorf("%s: %v, %v, %v", list[0].Bundle.Package, err, lenientErr, account)
				continue
			}
			if err := declcfg.Validate(lenient); err != nil {
				t.Errorf("%s in mode %s: %v", list[0].Bundle.Package, mode, err)
			}
			if err != nil {
				continue
			}
			whole++
			one := &declcfg.Catalog{}
			for _, a := range list {
				if one, _, err = edit.Add(one, []edit.Addition{a}, edit.AddOptions{Mode: mode, SubstitutesFor: true}); err != nil {
					break
				}
			}
			if err != nil {
				continue
			}
			if show(all) != show(one) {
				// A bundle that is cut off by a later one is gone from a catalog, and its like cannot come back.
				t.Logf("%s in mode %s: one by one\n%s\nat once\n%s", list[0].Bundle.Package, mode, show(one), show(all))
				continue
			}
			same++
		}
	}
	t.Logf("%d bundles of %d packages, %d of %d batches are added whole, %d of them as well one by one", bundles, len(packages), whole, 3*len(packages), same)
	if bundles < 100 || whole < len(packages) || same < len(packages) {
		t.Errorf("%d bundles, %d whole, %d same", bundles, whole, same)
	}
}

// TestTakenApart takes the bundles of databases out and adds them again, by what their manifests wish for.
func TestTakenApart(t *testing.T) {
	for _, name := range []string{"small", "medium", "constraint", "subs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := databaseOf(t, recorded.Part(t), name)
			defaults := map[string]string{}
			for _, p := range c.Packages {
				defaults[p.Name] = p.DefaultChannel
			}
			var list []edit.Addition
			for i := range c.Bundles {
				b := &c.Bundles[i]
				a := edit.Addition{Bundle: b, DefaultChannel: defaults[b.Package]}
				for _, ch := range c.Channels {
					for _, e := range ch.Entries {
						if ch.Package == b.Package && e.Name == b.Name {
							a.Channels = append(a.Channels, ch.Name)
						}
					}
				}
				manifest, err := b.CSV()
				if err != nil {
					t.Fatal(err)
				}
				var csv struct {
					Metadata struct{ Annotations map[string]string }
					Spec     struct {
						Replaces string
						Skips    []string
					}
				}
				if err := json.Unmarshal(manifest, &csv); err != nil {
					t.Fatal(err)
				}
				a.Replaces, a.Skips, a.SkipRange = csv.Spec.Replaces, csv.Spec.Skips, csv.Metadata.Annotations["olm.skipRange"]
				a.SubstitutesFor = csv.Metadata.Annotations["olm.substitutesFor"]
				list = append(list, a)
			}
			got, account, err := edit.Add(&declcfg.Catalog{}, list, edit.AddOptions{SubstitutesFor: true})
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.Packages {
				c.Packages[i].Icon = nil // the additions were given none
			}
			if d := differences(lines(got, false), lines(c, false)); d != "" {
				t.Error(d)
			}
			if len(account.Notes)+len(account.Problems) > 0 {
				t.Error(account)
			}
			// The same again, upon what is there: nothing has changed, for there is nothing that could be added.
			if _, _, err := edit.Add(c, list, edit.AddOptions{SubstitutesFor: true}); !errors.Is(err, edit.ErrImageExists) {
				t.Errorf("got %.200v", err)
			}
		})
	}
}
