package helmtemplate

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/mitchellh/copystructure"
	"helm.sh/helm/v3/pkg/chart"
	"sigs.k8s.io/yaml"
)

// Values are the values of a chart. Templates can call its methods: they are those of the library.
type Values map[string]any

const globals = "global"

// YAML returns the values as YAML.
func (v Values) YAML() (string, error) {
	if err := size(v, written); err != nil {
		return "", err
	}
	b, err := yaml.Marshal(v)
	return string(b), err
}

// AsMap returns the values, which are never nil.
func (v Values) AsMap() map[string]any {
	if len(v) == 0 {
		return map[string]any{}
	}
	return v
}

// Table returns the table at a path of keys with dots between them.
func (v Values) Table(name string) (Values, error) {
	for key := range strings.SplitSeq(name, ".") {
		switch t := v[key].(type) {
		case map[string]any:
			v = t
		case Values:
			v = t
		default:
			return Values{}, fmt.Errorf("%q is not a table", key)
		}
	}
	return v, nil
}

// PathValue returns the value at a path, which is no table.
func (v Values) PathValue(name string) (any, error) {
	key, table := name, v
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		var err error
		key = name[i+1:]
		if table, err = v.Table(name[:i]); err != nil {
			return nil, fmt.Errorf("%q is not a value", key)
		}
	}
	if found, ok := table[key]; ok && !isTable(found) {
		return found, nil
	}
	return nil, fmt.Errorf("%q is not a value", key)
}

func isTable(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// deepCopied returns a deep copy, which is never nil.
func deepCopied(v map[string]any) map[string]any {
	c, err := copystructure.Copy(v)
	if m, ok := c.(map[string]any); err == nil && ok && m != nil {
		return m
	}
	return map[string]any{}
}

// processDependencies drops subcharts that conditions and tags turn off, names those with aliases, and imports values.
func (t *tally) processDependencies(c *chart.Chart, v map[string]any) error {
	if err := t.enabledOnly(c, v, ""); err != nil {
		return err
	}
	return t.importValues(c)
}

func (t *tally) enabledOnly(c *chart.Chart, v map[string]any, at string) error {
	// Each name is compared with each subchart, so either number counts first.
	if err := t.add(&t.charts, max(len(c.Dependencies()), len(c.Metadata.Dependencies)), maxCharts, "subcharts"); err != nil {
		return err
	}
	if c.Metadata.Dependencies == nil {
		return nil
	}
	var subs []*chart.Chart
	for _, sub := range c.Dependencies() {
		if !listed(c, sub) {
			subs = append(subs, sub)
		}
	}
	for _, d := range c.Metadata.Dependencies {
		if sub := chosen(c.Dependencies(), d); sub != nil {
			subs = append(subs, sub)
		}
		if d.Alias != "" {
			d.Name = d.Alias
		}
		d.Enabled = true
	}
	c.SetDependencies(subs...)
	values, err := t.coalesceValues(c, v)
	if err != nil {
		return err
	}
	applyTags(c.Metadata.Dependencies, values)
	applyConditions(c.Metadata.Dependencies, values, at)
	off := map[string]bool{}
	var kept []*chart.Dependency
	for _, d := range c.Metadata.Dependencies {
		if !d.Enabled {
			off[d.Name] = true
		}
	}
	for _, d := range c.Metadata.Dependencies {
		if !off[d.Name] {
			kept = append(kept, d)
		}
	}
	subs = nil
	for _, sub := range c.Dependencies() {
		if !off[sub.Name()] {
			subs = append(subs, sub)
		}
	}
	for _, sub := range subs {
		if err := t.enabledOnly(sub, values, at+sub.Name()+"."); err != nil {
			return err
		}
	}
	c.Metadata.Dependencies = kept
	c.SetDependencies(subs...)
	return nil
}

func listed(c, sub *chart.Chart) bool {
	for _, d := range c.Metadata.Dependencies {
		if sub.Name() == d.Name && compatible(d.Version, sub.Metadata.Version) {
			return true
		}
	}
	return false
}

// chosen returns a copy of the chart that a dependency means, under its alias.
func chosen(charts []*chart.Chart, d *chart.Dependency) *chart.Chart {
	for _, c := range charts {
		if c.Name() == d.Name && compatible(d.Version, c.Metadata.Version) {
			out, meta := *c, *c.Metadata
			out.Metadata = &meta
			if d.Alias != "" {
				meta.Name = d.Alias
			}
			return &out
		}
	}
	return nil
}

func compatible(constraint, version string) bool {
	v, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	c, err := semver.NewConstraint(constraint)
	return err == nil && c.Check(v)
}

func applyTags(deps []*chart.Dependency, v Values) {
	tags, err := v.Table("tags")
	if err != nil {
		return
	}
	for _, d := range deps {
		var on, off bool
		for _, tag := range d.Tags {
			if b, ok := tags[tag].(bool); ok {
				on, off = on || b, off || !b
			}
		}
		d.Enabled = on || !off
	}
}

func applyConditions(deps []*chart.Dependency, v Values, at string) {
	for _, d := range deps {
		for condition := range strings.SplitSeq(strings.TrimSpace(d.Condition), ",") {
			if condition == "" {
				continue
			}
			if found, err := v.PathValue(at + condition); err == nil {
				if b, ok := found.(bool); ok {
					d.Enabled = b
					break
				}
			}
		}
	}
}

// importValues merges what charts import of their subcharts into their values, the innermost first.
func (t *tally) importValues(c *chart.Chart) error {
	for _, sub := range c.Dependencies() {
		if err := t.importValues(sub); err != nil {
			return err
		}
	}
	if c.Metadata.Dependencies == nil {
		return nil
	}
	values, err := t.coalesceValues(c, nil)
	if err != nil {
		return err
	}
	imported := map[string]any{}
	for _, d := range c.Metadata.Dependencies {
		var done []any
		for _, item := range d.ImportValues {
			var child, parent string
			switch item := item.(type) {
			case map[string]any:
				child, parent = fmt.Sprint(item["child"]), fmt.Sprint(item["parent"])
			case string:
				child, parent = "exports."+item, "."
			default:
				continue
			}
			done = append(done, map[string]string{"child": child, "parent": parent})
			table, err := values.Table(d.Name + "." + child)
			if err != nil {
				continue
			}
			m := table.AsMap()
			if parent != "." {
				keys := strings.Split(parent, ".")
				for i := len(keys) - 1; i >= 0; i-- {
					m = map[string]any{keys[i]: m}
				}
			}
			imported = coalesceTables(imported, m, false)
		}
		d.ImportValues = done
	}
	n, err := sized(map[string]any{"values": map[string]any(values), "imported": imported}, written)
	if err == nil {
		err = t.add(&t.values, n, maxValues, "bytes of values")
	}
	if err == nil {
		c.Values = coalesceTables(withoutNulls(deepCopied(values)), imported, false)
	}
	return err
}

func withoutNulls(v map[string]any) map[string]any {
	for key, value := range v {
		if value == nil {
			delete(v, key)
		} else if t, ok := value.(map[string]any); ok {
			v[key] = withoutNulls(t)
		}
	}
	return v
}

// coalesceValues returns v completed by the values of the chart and of its subcharts: v wins, and a null in it removes a
// key.
func (t *tally) coalesceValues(c *chart.Chart, v map[string]any) (Values, error) {
	t.merged = 0
	if err := t.addMerged(v); err != nil {
		return nil, err
	}
	return t.coalesce(c, deepCopied(v))
}

func (t *tally) coalesce(c *chart.Chart, dst map[string]any) (map[string]any, error) {
	if err := t.addMerged(c.Values); err != nil {
		return dst, err
	}
	coalesceChart(c, dst)
	shared, err := sized(dst[globals], written)
	if err != nil {
		return dst, err
	}
	for _, sub := range c.Dependencies() {
		if have, ok := dst[sub.Name()]; !ok {
			dst[sub.Name()] = map[string]any{}
		} else if !isTable(have) {
			return dst, fmt.Errorf("%w: the values at %s, the name of a subchart of %s, are not a table", errInvalid,
				sub.Name(), c.Name())
		}
		of := dst[sub.Name()].(map[string]any)
		if err := t.add(&t.merged, shared, maxValues, "bytes of values"); err != nil {
			return dst, err
		}
		coalesceGlobals(of, dst)
		done, err := t.coalesce(sub, of)
		dst[sub.Name()] = done
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func coalesceGlobals(dst, src map[string]any) {
	table := func(m map[string]any) (map[string]any, bool) {
		g, ok := m[globals]
		if !ok {
			return map[string]any{}, true
		}
		t, ok := g.(map[string]any)
		return t, ok
	}
	to, ok := table(dst)
	if !ok {
		return
	}
	from, ok := table(src)
	if !ok {
		return
	}
	for key, value := range from {
		have, ok := to[key]
		if !isTable(value) {
			if !isTable(have) {
				to[key] = value
			}
			continue
		}
		shallow := map[string]any{}
		for k, v := range value.(map[string]any) {
			shallow[k] = v
		}
		if !ok {
			to[key] = shallow
		} else if below, ok := have.(map[string]any); ok {
			coalesceTables(shallow, below, true)
			to[key] = shallow
		}
	}
	dst[globals] = to
}

// coalesceChart completes v by the values of the chart itself.
func coalesceChart(c *chart.Chart, v map[string]any) {
	for key, value := range deepCopied(c.Values) {
		have, ok := v[key]
		if !ok {
			v[key] = value
			continue
		}
		if have == nil {
			delete(v, key)
			continue
		}
		to, ok := have.(map[string]any)
		from, isFrom := value.(map[string]any)
		if !ok || !isFrom {
			continue
		}
		keepNulls := false
		for _, sub := range c.Dependencies() {
			keepNulls = keepNulls || sub.Name() == key
		}
		coalesceTables(to, from, keepNulls)
	}
}

// coalesceTables completes dst by src. A null in dst removes the key, unless nulls are kept for a subchart.
func coalesceTables(dst, src map[string]any, keepNulls bool) map[string]any {
	if src == nil {
		return dst
	}
	if dst == nil {
		return src
	}
	set := map[string]bool{}
	for key, value := range src {
		set[key] = value != nil
	}
	for key, value := range dst {
		if value == nil {
			src[key] = nil
		}
	}
	for key, value := range src {
		have, ok := dst[key]
		if ok && !keepNulls && have == nil && set[key] {
			delete(dst, key)
		} else if !ok {
			dst[key] = value
		} else if isTable(value) && isTable(have) {
			coalesceTables(have.(map[string]any), value.(map[string]any), keepNulls)
		}
	}
	return dst
}
