package checkup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/olmv1/resolve"
	"github.com/operator-bindery/bindery/olmv1/safety"
	"github.com/operator-bindery/bindery/render"
)

const (
	inMemory     = 32 << 20 // bytes of compressed definitions; more are in a file
	maxRefusals  = 10_000   // messages of a report
	maxUpgrades  = 5_000_000
	namedInText  = 5 // bundles and channels in the message of a finding
	longestWords = 16 << 10
)

// upgrades judges the upgrades of a catalog. It keeps the definitions of the bundles, each text once, and the resolvers
// of the packages.
type upgrades struct {
	*checkup
	judge *safety.Judge

	mu       sync.Mutex
	texts    *spool.Spool
	spans    map[safety.Digest]spool.Span
	encoder  *zstd.Encoder
	decoder  *zstd.Decoder
	held     map[rules.BundleName][]safety.Definition
	places   map[rules.BundleName]declcfg.Position
	packages map[string]*resolve.Resolver
}

func newUpgrades(c *checkup) (*upgrades, error) {
	u := &upgrades{checkup: c, texts: spool.New(c.Render.TempDir, inMemory), spans: map[safety.Digest]spool.Span{},
		held: map[rules.BundleName][]safety.Definition{}, places: map[rules.BundleName]declcfg.Position{},
		packages: map[string]*resolve.Resolver{}}
	var err error
	if u.judge, err = safety.NewJudge(); err != nil {
		return nil, err
	}
	if u.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return nil, err
	}
	u.decoder, err = zstd.NewReader(nil)
	return u, err
}

// Close removes what was kept.
func (u *upgrades) Close() error {
	u.decoder.Close()
	return u.texts.Close()
}

// subject has the upgrades of a catalog collected while it is checked.
func (u *upgrades) subject(s *rules.CatalogSubject) {
	s.Upgrades = func(r *resolve.Resolver, bundles []*declcfg.Bundle) {
		for _, b := range bundles {
			u.packages[b.Package] = r
			u.places[rules.BundleName{Package: b.Package, Bundle: b.Name}] = b.Pos
		}
	}
}

// bundle keeps the definitions of a bundle of the catalog.
func (u *upgrades) bundle(pkg, name string, m *manifests.Bundle) error {
	all, err := bundlecheck.Definitions(m, u.Settings)
	if err != nil {
		return nil // OLM v1 does not install it, which other rules say
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i, d := range all {
		if all[i].Read, err = u.keep(d); err != nil {
			return err
		}
	}
	u.held[rules.BundleName{Package: pkg, Bundle: name}] = all
	return nil
}

// files keeps the definitions of a bundle that was pulled.
func (u *upgrades) files(pkg, name string, fsys fs.FS) error {
	m, err := manifests.Read(fsys)
	if err != nil {
		return nil // a finding
	}
	return u.bundle(pkg, name, m)
}

// keep stores a text that is not there yet, and returns how to read it.
func (u *upgrades) keep(d safety.Definition) (func() ([]byte, error), error) {
	if _, ok := u.spans[d.Digest]; !ok {
		text, err := d.Read()
		if err != nil {
			return nil, err
		}
		if u.spans[d.Digest], err = u.texts.Append(u.encoder.EncodeAll(text, nil)); err != nil {
			return nil, err
		}
	}
	return func() ([]byte, error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		compressed, err := io.ReadAll(u.texts.Open(u.spans[d.Digest]))
		if err != nil {
			return nil, err
		}
		return u.decoder.DecodeAll(compressed, nil)
	}, nil
}

// run judges all upgrades.
func (u *upgrades) check(ctx context.Context) error {
	all := 0
	for _, r := range u.packages {
		for range r.Edges() {
			if all++; all > maxUpgrades {
				return fmt.Errorf("%w: the catalog allows more than %d upgrades", fault.ErrLimit, maxUpgrades)
			}
			if all%1024 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	out, done := &rules.Upgrades{}, 0
	missing := map[rules.BundleName]bool{}
	for _, pkg := range slices.Sorted(maps.Keys(u.packages)) {
		p := &packageUpgrades{upgrades: u, pkg: pkg, out: out, missing: missing, refusals: map[refusalKey]*rules.UpgradeRefusal{}}
		for e := range u.packages[pkg].Edges() {
			if err := p.edge(ctx, e); err != nil {
				return err
			}
			if done++; u.Compared != nil && (done%64 == 0 || done == all) {
				u.Compared(done, all)
			}
		}
		p.report()
	}
	out.Missing = slices.SortedFunc(maps.Keys(missing), func(a, b rules.BundleName) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Bundle, b.Bundle))
	})
	u.run.SetUpgrades(out)
	return nil
}

// packageUpgrades are the upgrades of a package.
type packageUpgrades struct {
	*upgrades
	pkg      string
	out      *rules.Upgrades
	missing  map[rules.BundleName]bool
	refusals map[refusalKey]*rules.UpgradeRefusal
	order    []refusalKey
}

// refusalKey is what upgrades have in common that are refused in the same words.
type refusalKey struct {
	to, message string
	failed      bool // the definitions cannot be compared
}

func (p *packageUpgrades) edge(ctx context.Context, e resolve.Edge) error {
	if p.run.Refuses(p.pkg, e.From) || p.run.Refuses(p.pkg, e.To) {
		p.out.LeftOut++
		return nil
	}
	var sides [2][]safety.Definition
	known := true
	for i, name := range []string{e.From, e.To} {
		of := rules.BundleName{Package: p.pkg, Bundle: name}
		definitions, ok := p.held[of]
		if !ok {
			known, p.missing[of] = false, true
		}
		sides[i] = definitions
	}
	if !known {
		p.out.Unknown++
		return nil
	}
	refused, err := p.judge.Upgrade(ctx, sides[0], sides[1])
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		p.add(e, nil, err.Error(), true)
	}
	switch {
	case len(refused) > 0:
		p.out.Judged++
		p.out.Refused++
		p.add(e, refused, safety.Message(refused), false)
	case err != nil:
		p.out.Unknown++
	default:
		p.out.Judged++
	}
	return nil
}

// add notes an upgrade that is refused, or cannot be judged.
func (p *packageUpgrades) add(e resolve.Edge, refused []*safety.Refusal, message string, failed bool) {
	key := refusalKey{e.To, fault.Clip(message, longestWords), failed}
	r := p.refusals[key]
	if r == nil {
		r = &rules.UpgradeRefusal{Package: p.pkg, Bundle: e.To, Message: key.message}
		for _, one := range refused {
			r.Definitions = append(r.Definitions, one.Definition)
		}
		p.refusals[key] = r
		p.order = append(p.order, key)
	}
	r.From = append(r.From, rules.UpgradeFrom{Bundle: e.From, Channels: e.Channels})
}

// report adds the findings of the package, in the order of the bundles that the upgrades lead to.
func (p *packageUpgrades) report() {
	slices.SortStableFunc(p.order, func(a, b refusalKey) int { return cmp.Compare(a.to, b.to) })
	var found []rules.Finding
	for _, key := range p.order {
		r := p.refusals[key]
		at := p.places[rules.BundleName{Package: p.pkg, Bundle: r.Bundle}]
		f := rules.Finding{Rule: rules.RuleUpgrade.ID, Package: p.pkg, Bundle: r.Bundle, File: at.File, Line: at.Line,
			Message: edges(r) + ": " + r.Message}
		if key.failed {
			f.Severity, f.Fix = rules.Warning, "compare the bundles with \"bindery diff --manifests\""
		} else if len(p.out.Refusals) < maxRefusals {
			p.out.Refusals = append(p.out.Refusals, *r)
		} else {
			p.out.More++
		}
		found = append(found, f)
	}
	p.run.Find([]rules.Rule{rules.RuleUpgrade}, found)
}

// edges names upgrades as "FROM, FROM -> TO (CHANNEL, CHANNEL)".
func edges(r *rules.UpgradeRefusal) string {
	var from, channels []string
	for _, f := range r.From {
		from = append(from, f.Bundle)
		for _, c := range f.Channels {
			if !slices.Contains(channels, c) {
				channels = append(channels, c)
			}
		}
	}
	text := firstOf(from) + " -> " + r.Bundle
	if len(channels) > 0 {
		text += " (" + firstOf(channels) + ")"
	}
	return text
}

// firstOf joins the first names of a list, and says how many there are besides.
func firstOf(names []string) string {
	if n := len(names); n > namedInText {
		names = append(slices.Clone(names[:namedInText]), fmt.Sprintf("and %d more", n-namedInText))
	}
	return strings.Join(names, ", ")
}

// ErrFrom is the error for a bundle that cannot be compared with the one that is checked.
var ErrFrom = fault.New(fault.Input, "the upgrade cannot be judged")

// from judges the upgrade from another bundle to the one that is checked.
func (c *checkup) from(ctx context.Context, s bundlecheck.Subject) error {
	if c.From == "" || !c.run.Has(rules.OLMv1) {
		return nil
	}
	var old []safety.Definition
	var was *manifests.Bundle
	err := c.Render.BundleFiles(ctx, c.From, func(_ render.FetchedBundle, fsys fs.FS) (err error) {
		if was, err = manifests.Read(fsys); err == nil {
			old, err = bundlecheck.Definitions(was, c.Settings)
		}
		return err
	})
	if err != nil {
		return err
	}
	m, err := manifests.Read(s.FS)
	if err != nil {
		return nil // a finding
	}
	if was.Package() != m.Package() {
		return fmt.Errorf("%w: %s is of the package %q, and the bundle of the package %q", ErrFrom, c.From, was.Package(),
			m.Package())
	}
	next, err := bundlecheck.Definitions(m, c.Settings)
	if err != nil {
		return nil // a finding
	}
	judge, err := safety.NewJudge()
	if err != nil {
		return err
	}
	refused, failed := judge.Upgrade(ctx, old, next)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out := &rules.Upgrades{Judged: 1}
	switch {
	case len(refused) > 0:
		r := rules.UpgradeRefusal{Package: m.Package(), Bundle: m.Name(), From: []rules.UpgradeFrom{{Bundle: was.Name()}},
			Message: fault.Clip(safety.Message(refused), longestWords)}
		for _, one := range refused {
			r.Definitions = append(r.Definitions, one.Definition)
		}
		out.Refused, out.Refusals = 1, []rules.UpgradeRefusal{r}
	case failed != nil:
		out.Judged, out.Unknown = 0, 1
	}
	c.run.SetUpgrades(out)
	return errors.Join(bundlecheck.Upgrade(ctx, c.run, s, was.Name(), refused, failed))
}
