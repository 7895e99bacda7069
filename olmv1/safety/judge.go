package safety

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"
	"sigs.k8s.io/crdify/pkg/validations"
	"sigs.k8s.io/crdify/pkg/validations/property"
	"sigs.k8s.io/crdify/pkg/validators/version"

	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// Change is a change of a definition that OLM v1 refuses.
type Change = upgrade.RefusedChange

// Refusal is a definition for which OLM v1 refuses an upgrade.
type Refusal struct {
	// Definition is the name of the CustomResourceDefinition.
	Definition string `json:"definition"`
	// Changes are sorted: those of the definition as a whole, those of its versions, those between served versions.
	Changes []Change `json:"changes"`
}

// Error returns the message of operator-controller.
func (r *Refusal) Error() string {
	lines := make([]string, len(r.Changes))
	for i, c := range r.Changes {
		lines[i] = c.String()
	}
	return fmt.Sprintf("validating upgrade for CRD %q: %s", r.Definition, strings.Join(lines, "\n"))
}

// Judge judges upgrades. It keeps what it found of a pair of definitions, and some decoded definitions. It is safe for
// concurrent use.
type Judge struct {
	runner *runner.Runner

	mu      sync.Mutex
	found   map[pairKey]verdict
	known   int // size of found
	decoded map[Digest]*crd
	pool    *pool // the parts that decoded definitions share
}

type pairKey struct{ from, to Digest }

type verdict struct {
	changes []Change
	err     error
}

// size returns about how much memory a verdict takes.
func (v verdict) size() int {
	n := 200
	for _, c := range v.changes {
		n += 100 + len(c.Version) + len(c.Property) + len(c.Message)
	}
	return n
}

// maxFound limits the size of the verdicts that are kept.
const maxFound = 64 << 20

// maxWords limits the text of what changes in a definition: each change names the path of its field.
const maxWords = 8 << 20

// maxDecoded is about how many different schemas of decoded definitions are kept; each takes about 1 kB.
const maxDecoded = 60_000

// NewJudge returns a judge that has judged nothing.
func NewJudge() (*Judge, error) {
	r, err := runner.New(&config.Config{
		Conversion:           config.ConversionPolicyIgnore,
		UnhandledEnforcement: config.EnforcementPolicyError,
		Validations: []config.ValidationConfig{
			{Name: "description", Enforcement: config.EnforcementPolicyNone},
			{Name: "enum", Enforcement: config.EnforcementPolicyError,
				Configuration: map[string]any{"additionPolicy": property.AdditionPolicyAllow}},
		},
	}, runner.DefaultRegistry())
	if err != nil {
		return nil, err
	}
	return &Judge{runner: r, found: map[pairKey]verdict{}, decoded: map[Digest]*crd{}, pool: newPool()}, nil
}

// Upgrade returns the definitions for which OLM v1 refuses to put the new ones in place of the old ones, in the order of
// the new ones. One that only one side has is not judged. The error says which definitions cannot be compared, and is of
// the class of limits if they are too large; the refusals by other definitions come with it.
func (j *Judge) Upgrade(ctx context.Context, from, to []Definition) (refused []*Refusal, err error) {
	old := map[string]Definition{}
	for _, d := range from {
		old[d.Name] = d
	}
	left := maxUpgrade
	for _, d := range to {
		before, ok := old[d.Name]
		if !ok {
			continue
		}
		changes, failed := j.definition(ctx, before, d, &left)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if failed != nil && err == nil {
			err = failed
		}
		if len(changes) > 0 {
			refused = append(refused, &Refusal{d.Name, changes})
		}
	}
	return refused, err
}

// Refused is an [upgrade.Judge].
func Refused(ctx context.Context, name string, from, to []byte) ([]Change, error) {
	j, err := NewJudge()
	if err != nil {
		return nil, err
	}
	return j.Refused(ctx, name, from, to)
}

// Refused is an [upgrade.Judge] for many upgrades, of which one begins where another ends: each definition is decoded once.
func (j *Judge) Refused(ctx context.Context, name string, from, to []byte) ([]Change, error) {
	return j.Definition(ctx, newDefinition(name, from), newDefinition(name, to))
}

// Definition returns the changes from one definition to another for which OLM v1 refuses the upgrade. The error names
// the definition.
func (j *Judge) Definition(ctx context.Context, from, to Definition) ([]Change, error) {
	left := maxUpgrade
	return j.definition(ctx, from, to, &left)
}

// maxUpgrade bounds the work on all definitions of an upgrade, in schemas that the library is given.
const maxUpgrade = 3_000_000

// definition is Definition with the work that is left for the upgrade.
func (j *Judge) definition(ctx context.Context, from, to Definition, left *int) ([]Change, error) {
	key := pairKey{from.Digest, to.Digest}
	j.mu.Lock()
	v, ok := j.found[key]
	j.mu.Unlock()
	if ok {
		return v.changes, v.err
	}
	if *left < 0 {
		return nil, limit("the definitions of the two bundles differ in more than can be compared")
	}
	v.changes, v.err = j.compare(ctx, from, to, left)
	*left -= v.size() / pathUnit
	if v.size() > maxWords {
		v = verdict{err: limit("what changes takes more than %d MiB to say", maxWords>>20)}
	}
	switch chance := (*chanceError)(nil); {
	case v.err == nil || ctx.Err() != nil:
	case errors.As(v.err, &chance):
		v.err = fmt.Errorf("CustomResourceDefinition %q: %w", to.Name, v.err)
	default:
		v.err = fmt.Errorf("CustomResourceDefinition %q cannot be compared: %w", to.Name, v.err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.known += v.size(); j.known > maxFound {
		j.found, j.known = map[pairKey]verdict{}, v.size()
	}
	j.found[key] = v
	return v.changes, v.err
}

// decode returns a decoded definition. It is not to be changed.
func (j *Judge) decode(d Definition) (*crd, error) {
	digest := d.Digest
	j.mu.Lock()
	c := j.decoded[digest]
	j.mu.Unlock()
	if c != nil {
		return c, nil
	}
	text, err := textOf(d)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pool.schemas > maxDecoded {
		j.decoded, j.pool = map[Digest]*crd{}, newPool()
	}
	if c, err = j.pool.decode(text); err != nil {
		return nil, err
	}
	j.decoded[digest] = c
	return c, nil
}

func (j *Judge) compare(ctx context.Context, from, to Definition, left *int) (changes []Change, err error) {
	defer func() {
		if r := recover(); r != nil {
			changes, err = nil, fmt.Errorf("the library that compares them failed: %v", r)
		}
	}()
	if from.Digest == to.Digest {
		if text, err := to.Read(); err != nil || bytes.Count(text, []byte(`"served":true`)) < 2 {
			return nil, err
		}
	}
	old, err := j.decode(from)
	if err != nil {
		return nil, fmt.Errorf("the old one: %w", err)
	}
	next, err := j.decode(to)
	if err != nil {
		return nil, fmt.Errorf("the new one: %w", err)
	}
	p := &pruning{ctx: ctx}
	defer func() { *left -= p.copies + p.visits/10 }()
	a, b := p.pairUnserved(old, next)
	if p.err != nil {
		return nil, p.err
	}
	results := j.runner.Run(a, b)
	whole := ofComparisons("", "", results.CRDValidation)
	same := ofVersions(results.SameVersionValidation)
	var between []Change
	var chance chanceError
	p.pairs(old, next, func(a, b *apiextensionsv1.CustomResourceDefinition) {
		between = append(between, j.between(a, b, &chance)...)
		if len(between) > maxChanges {
			p.err = limit("there are more than %d changes between their served versions", maxChanges)
		}
	})
	if p.err != nil {
		return nil, p.err
	}
	for _, part := range [][]Change{whole, same, between} {
		slices.SortFunc(part, Change.Compare)
		changes = append(changes, part...)
	}
	if len(changes) == 0 && chance.attempts >= manyAttempts {
		return nil, &chance
	}
	return changes, nil
}

// manyAttempts is the number of attempts for which operator-controller would try for longer than some minutes.
const manyAttempts = 24

// chanceError is the error about an upgrade that OLM v1 takes in one of many attempts. The library writes the fields that
// one served version requires and another does not in an order by chance, and compares the texts of the old definition
// with those of the new one.
type chanceError struct {
	attempts int
	change   Change
}

// add notes a change that the old definition has too. Up to eight fields are in a map that Go walks from a place by chance:
// 600 attempts of operator-controller each took 66 % of upgrades with two fields, 42 with three, 20 with five, 15 with
// eight, and none with twelve.
func (e *chanceError) add(c Change) {
	if e.attempts == 0 {
		e.attempts, e.change = 1, c
	}
	_, list, _ := strings.Cut(c.Message, "[")
	n := len(strings.Fields(list))
	if n > 8 {
		n = 1000
	}
	e.attempts = min(e.attempts*max(n, 1), 1_000_000)
}

func (e *chanceError) Error() string {
	return fmt.Sprintf("OLM v1 takes it in one of some %d attempts only, though nothing changes that it refuses: it compares lists "+
		"of required fields, whose order is by chance (%v)", e.attempts, e.change)
}

// between returns the changes between two served versions that are not between those of the old definition already. The
// library writes several required fields in an order by chance, so that it takes them for the same only sometimes;
// operator-controller asks again until it does.
func (j *Judge) between(old, next *apiextensionsv1.CustomResourceDefinition, chance *chanceError) []Change {
	found := ofVersions(j.runner.Run(old, next).ServedVersionValidation)
	required := func(c Change) bool { return c.Check == "required" }
	if len(old.Spec.Versions) == 0 {
		return found
	}
	none := *old
	none.Spec.Versions = nil
	all := slices.DeleteFunc(ofVersions(j.runner.Run(&none, next).ServedVersionValidation), func(c Change) bool { return !required(c) })
	if len(all) == 0 {
		return found
	}
	before := ofVersions(j.runner.Run(&none, old).ServedVersionValidation)
	for _, c := range all {
		if slices.Contains(before, c) {
			chance.add(c)
		}
	}
	return slices.DeleteFunc(found, func(c Change) bool { return required(c) && slices.Contains(before, c) })
}

// maxChanges limits the changes between served versions.
const maxChanges = 10_000

func ofVersions(results []version.VersionedPropertyComparisonResult) (out []Change) {
	for _, v := range results {
		for _, p := range v.PropertyComparisons {
			out = append(out, ofComparisons(v.Version, p.Property, p.ComparisonResults)...)
		}
	}
	return out
}

func ofComparisons(version, property string, results []validations.ComparisonResult) (out []Change) {
	for _, r := range results {
		for _, text := range r.Errors {
			out = append(out, Change{Version: version, Property: property, Check: r.Name,
				Message: message(r.Name, text)})
		}
	}
	return out
}

// Message returns the message of operator-controller about refusals.
func Message(refused []*Refusal) string {
	lines := make([]string, len(refused))
	for i, r := range refused {
		lines[i] = r.Error()
	}
	return strings.Join(lines, "\n")
}
