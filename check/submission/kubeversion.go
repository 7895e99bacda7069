package submission

import (
	"context"
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// shortVersion is the form of a version of one to three numbers. What follows them does not count.
var shortVersion = lazyregexp.New(`^(0|[1-9]\d{0,5})(?:\.(0|[1-9]\d{0,5})(?:\.(0|[1-9]\d{0,5}))?)?` +
	`(?:-` + preRelease + `(?:\.` + preRelease + `)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$`)

const preRelease = `(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)`

// numbers returns the numbers of a version of one to three.
func numbers(text string) (n [3]int, ok bool) {
	m := shortVersion().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return n, false
	}
	for i := range n {
		n[i] = number(m[i+1])
	}
	return n, true
}

func findKubeVersion(_ context.Context, c *bundleCheck, emit rules.Emit) {
	b := c.b
	here := []any{"spec", "minKubeVersion"}
	switch {
	case !c.inGraph(emit):
		return
	case b.annotationsFault != nil:
		c.fault(b.annotationsFault, emit)
		return
	case !isSet(b.minKube):
		return
	}
	text, ok := textOf(b.minKube)
	if !ok {
		emit(c.at(b.csv, "spec.minKubeVersion is "+kindOf(b.minKube)+": put it in quotes", here...))
		return
	}
	least, ok := numbers(text)
	if !ok {
		emit(c.at(b.csv, fmt.Sprintf("spec.minKubeVersion is %q, and it is to be a version such as 1.25.0", text), here...))
		return
	}
	selector, bad := b.openshift()
	switch {
	case bad != nil:
		c.fault(bad, emit)
		return
	case strings.TrimSpace(selector) == "":
		emit(c.at(b.csv, fmt.Sprintf("spec.minKubeVersion is %q, and the annotation %s, which says for which versions of OpenShift "+
			"the bundle is, is missing", text, openshift.Annotation), here...))
		return
	}
	at := func(message string) rules.Finding {
		return c.at(b.annotationsFile, message, "annotations", openshift.Annotation)
	}
	selected, odd, err := c.selected(selector)
	if err != nil {
		emit(at(err.Error()))
		return
	}
	if odd != "" {
		f := at(odd)
		f.Severity = rules.Warning
		emit(f)
	}
	var conflicts []string
	for _, v := range selected {
		k, _ := c.Versions.Kubernetes(v)
		if k := [3]int{1, int(k), 0}; below(k, least) {
			conflicts = append(conflicts, v.String())
		}
	}
	if len(conflicts) > 0 {
		emit(c.at(b.csv, fmt.Sprintf("spec.minKubeVersion is %q, and the Kubernetes of OpenShift %s, which the bundle is for by %s %q, "+
			"is below that", text, strings.Join(conflicts, ", "), openshift.Annotation, selector), here...))
	}
}

// below reports whether a version is below another one.
func below(v, than [3]int) bool {
	for i := range v {
		if v[i] != than[i] {
			return v[i] < than[i]
		}
	}
	return false
}

// selected returns the known versions that the annotation selects, as this rule of the pipeline reads it. odd says what is
// strange about it.
func (c *bundleCheck) selected(text string) (out []openshift.Version, odd string, err error) {
	parse := func(text string) (v openshift.Version, err error) {
		n, ok := numbers(strings.TrimPrefix(strings.TrimSpace(text), "v"))
		if !ok {
			return v, fmt.Errorf("%s is %q, and it is to be a version such as v4.12, =v4.12, or a range v4.12-v4.14",
				openshift.Annotation, text)
		}
		return openshift.Version{Major: n[0], Minor: n[1]}, nil
	}
	text = strings.TrimSpace(text)
	known := c.Versions.Versions()
	if from, to, ok := strings.Cut(text, "-"); ok {
		first, err := parse(from)
		last, lastErr := parse(to)
		if err != nil || lastErr != nil {
			return nil, "", fmt.Errorf("%s is %q, and it is to be a version such as v4.12, =v4.12, or a range v4.12-v4.14", openshift.Annotation, text)
		}
		for _, v := range known {
			if v.Compare(first) >= 0 && v.Compare(last) <= 0 {
				out = append(out, v)
			}
		}
		if first.Compare(last) > 0 {
			odd = fmt.Sprintf("%s is %q, which is for no version: the first is above the last", openshift.Annotation, text)
		}
		return out, odd, nil
	}
	exact, only := strings.CutPrefix(text, "=")
	if strings.Contains(text, ",") { // a list comes first
		exact, only = text, false
	}
	var lowest openshift.Version
	for i, part := range strings.Split(exact, ",") {
		v, err := parse(part)
		if err != nil {
			return nil, "", err
		}
		if i == 0 || v.Compare(lowest) < 0 {
			lowest = v
		}
	}
	if strings.Contains(text, ",") && !isOldList(text) {
		odd = fmt.Sprintf("%s is %q, and a list is for v4.5 and v4.6 alone: the bundle is for %s and later", openshift.Annotation, text,
			lowest)
	}
	for _, v := range known {
		switch {
		case only && v.Compare(lowest) <= 0:
			out = []openshift.Version{v} // the highest one that is not above
		case !only && v.Compare(lowest) >= 0:
			out = append(out, v)
		}
	}
	return out, odd, nil
}

// isOldList reports whether a list has only the versions for which lists are documented.
func isOldList(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if v := strings.TrimPrefix(strings.TrimSpace(part), "v"); v != "4.5" && v != "4.6" {
			return false
		}
	}
	return true
}
