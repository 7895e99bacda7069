package chartimages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/mirror/charts/helmtemplate"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// Options configure [Find].
type Options struct {
	// ImagePaths are JSONPath expressions, as kubectl has them, of places of images beside those that are known. Braces
	// can be left out.
	ImagePaths []string
	// Narrow takes images from the containers of pods and of what has a template of pods, and from ImagePaths, alone, as
	// oc-mirror does. What else would be found is in [Found].Others.
	Narrow bool
}

// Image is an image that a chart uses, where it was found first.
type Image struct {
	// Reference is the image as the chart has it, with the tag "latest" if it has neither tag nor digest.
	Reference string
	Ref       imageset.Ref
	// Source is the file of the template, Kind and Name are those of the object, Path is where the image is in it.
	Source, Kind, Name, Path string
	// Hooks are the events of Helm at which the object is made; without any it is a part of the release.
	Hooks []string
}

// Found has the images of a chart, in the order of its manifests.
type Found struct {
	Images []Image
	// Others are images that are left out because of [Options].Narrow.
	Others []Image
	// Warnings are about images without a tag, containers without an image, what is no image in other places, and paths at which nothing is. Of more than 1,000 the last one says how
	// many were left out.
	Warnings []string
}

// What a chart may have.
const (
	maxImages   = 10_000
	maxWords    = 100_000 // at the places of images
	maxObjects  = 100_000 // with the items of lists
	maxWarnings = 1000    // that are kept
)

// narrow are the places of images that oc-mirror knows.
var narrow = []string{
	"{.spec.template.spec.initContainers[*].image}",
	"{.spec.template.spec.containers[*].image}",
	"{.spec.initContainers[*].image}",
	"{.spec.containers[*].image}",
}

// wide returns further places: other containers, jobs that are made by the clock, templates of pods that stand alone, images that
// are volumes, operators.
func wide() []string {
	var out []string
	for _, pod := range []string{".spec.template.spec", ".spec", ".spec.jobTemplate.spec.template.spec", ".template.spec",
		".spec.install.spec.deployments[*].spec.template.spec"} {
		for _, rest := range []string{"initContainers[*].image", "containers[*].image", "ephemeralContainers[*].image",
			"volumes[*].image.reference", "initContainers[*].env[*]", "containers[*].env[*]"} {
			if text := "{" + pod + "." + rest + "}"; !slices.Contains(narrow, text) {
				out = append(out, text)
			}
		}
	}
	return append(out, "{.spec.relatedImages[*].image}")
}

// annotation is the annotation of Chart.yaml that lists the images of a chart.
const annotation = "artifacthub.io/images"

// place is a parsed path.
type place struct {
	text   string
	path   *jsonpath.JSONPath
	strict bool // what is there and is no reference is an error
	others bool // oc-mirror does not look there
	holder bool // it has the containers themselves, which must have an image
	named  bool // its last key is image: names without a registry are images, too
	found  bool
}

type finder struct {
	chart   *helmtemplate.Chart
	options Options
	places  []*place
	wanted  []*place // of ImagePaths
	seen    map[string]bool
	found   Found

	ctx            context.Context
	words, objects int
	warned         map[string]bool
}

// Find returns the images of the manifests of a chart. Errors name the chart, the file and the object, and that of ctx ends it.
func Find(ctx context.Context, c *helmtemplate.Chart, manifests []helmtemplate.Manifest, o Options) (*Found, error) {
	f := &finder{chart: c, options: o, seen: map[string]bool{}, ctx: ctx, warned: map[string]bool{}}
	for _, text := range narrow {
		if _, err := f.place(text, place{strict: true}); err != nil {
			return nil, err
		}
	}
	for _, text := range o.ImagePaths {
		p, err := f.place(text, place{})
		if err != nil {
			return nil, fmt.Errorf("%w: imagePaths of chart %s: %s: %w", fault.ErrInvalid, c.Name(), fault.Quote(text), err)
		}
		f.wanted = append(f.wanted, p)
	}
	for _, text := range wide() {
		if _, err := f.place(text, place{others: true}); err != nil {
			return nil, err
		}
	}
	for _, text := range slices.Concat(narrow, wide()) {
		if holder, ok := strings.CutSuffix(text, "ontainers[*].image}"); ok {
			if _, err := f.place(holder+"ontainers[*]}", place{holder: true}); err != nil {
				return nil, err
			}
		}
	}
	for i := range manifests {
		m := &manifests[i]
		var object any
		if err := helmtemplate.Unmarshal([]byte(m.Content), &object); err != nil {
			return nil, fmt.Errorf("%w: chart %s: %s is no YAML: %w", fault.ErrInvalid, c.Name(), m.Source, err)
		}
		if err := f.object(m, object, false); err != nil {
			return nil, err
		}
	}
	if err := f.annotated(); err != nil {
		return nil, err
	}
	for _, p := range f.wanted {
		if !p.found {
			f.warn("chart %s: nothing is at %s of imagePaths", c.Name(), fault.Quote(p.text))
		}
	}
	// What is both found by oc-mirror and elsewhere is not left out.
	f.found.Others = slices.DeleteFunc(f.found.Others, func(o Image) bool {
		return f.seen[mirrored+o.Reference]
	})
	if n := len(f.warned) - maxWarnings; n > 0 {
		f.found.Warnings = append(f.found.Warnings, fmt.Sprintf("chart %s: there are %d more warnings", c.Name(), n))
	}
	return &f.found, nil
}

func (f *finder) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if f.warned[text] {
		return
	}
	if f.warned[text] = true; len(f.warned) <= maxWarnings {
		f.found.Warnings = append(f.found.Warnings, text)
	}
}

// count counts what is looked at. It fails beyond most, and at the end of the context.
func (f *finder) count(n *int, most int, what string) error {
	if *n++; *n > most {
		return fmt.Errorf("%w: chart %s has more %s (limit %d)", fault.ErrLimit, f.chart.Name(), what, most)
	}
	if f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	return nil
}

// place parses a path and adds it to those that are looked at.
func (f *finder) place(text string, p place) (*place, error) {
	p.text = text
	if !strings.Contains(text, "{") {
		p.text = "{." + strings.TrimPrefix(strings.TrimPrefix(text, "$"), ".") + "}"
	}
	p.path = jsonpath.New("").AllowMissingKeys(true)
	if err := p.path.Parse(p.text); err != nil {
		return nil, err
	}
	p.named = strings.HasSuffix(p.text, ".image}")
	f.places = append(f.places, &p)
	return &p, nil
}

// object looks at an object; inList says that it is in a List.
func (f *finder) object(m *helmtemplate.Manifest, object any, inList bool) error {
	if err := f.count(&f.objects, maxObjects, "objects"); err != nil {
		return err
	}
	for _, p := range f.places {
		results, err := p.path.FindResults(object)
		if err != nil {
			// An index that is not there, a filter on what is no list: the path does not lead into this object.
			continue
		}
		for _, group := range results {
			for _, v := range group {
				if !v.IsValid() || !v.CanInterface() {
					continue
				}
				if err := f.value(m, object, p, v.Interface(), inList); err != nil {
					return err
				}
			}
		}
	}
	// The items of a list are objects, unless a list is in a list: no cluster accepts that.
	o, _ := object.(map[string]any)
	items, ok := o["items"].([]any)
	if kind, _ := o["kind"].(string); !ok || inList || !strings.HasSuffix(kind, "List") {
		return nil
	}
	for _, item := range items {
		if err := f.object(m, item, true); err != nil {
			return err
		}
	}
	return nil
}

// value takes what is at a path: text, a list of texts, or a variable of an environment that names an image of an operator.
// What lacks where an image must be is a warning.
func (f *finder) value(m *helmtemplate.Manifest, object any, p *place, v any, inList bool) error {
	must := p.named && (p.strict || p.others)
	switch v := v.(type) {
	case string:
		if must && strings.TrimSpace(v) == "" {
			f.warn("%s: the image is empty: a value of the chart may be missing", f.where(m, object, p))
		}
		return f.text(m, object, p, v, inList)
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok {
				if err := f.text(m, object, p, s, inList); err != nil {
					return err
				}
			}
		}
	case map[string]any:
		name, _ := v["name"].(string)
		value, _ := v["value"].(string)
		if _, has := v["image"]; p.holder && !has {
			// Other kinds have containers that change those of a controller.
			if kind, _ := describe(object); workloads[cmp.Or(kind, m.Kind)] {
				f.warn("%s: the container %s has no image", f.where(m, object, p), fault.Quote(name))
			}
		}
		if p.others && strings.HasPrefix(name, "RELATED_IMAGE_") {
			return f.text(m, object, p, value, inList)
		}
		return nil
	}
	if must {
		f.warn("%s: the image is no text: %s", f.where(m, object, p), fault.Short(fmt.Sprint(v)))
	}
	return nil
}

// workloads are the kinds of Kubernetes that have containers.
var workloads = map[string]bool{"Pod": true, "PodTemplate": true, "Deployment": true, "StatefulSet": true, "DaemonSet": true,
	"ReplicaSet": true, "ReplicationController": true, "Job": true, "CronJob": true}

// where names a path in an object for messages.
func (f *finder) where(m *helmtemplate.Manifest, object any, p *place) string {
	kind, name := describe(object)
	return fmt.Sprintf("chart %s: %s: %s %s: %s", f.chart.Name(), m.Source, cmp.Or(kind, m.Kind), cmp.Or(name, m.Name), p.text)
}

// text takes the images in a text, which blanks separate.
func (f *finder) text(m *helmtemplate.Manifest, object any, p *place, text string, inList bool) error {
	kind, name := describe(object)
	for word := range strings.FieldsSeq(text) {
		if err := f.count(&f.words, maxWords, "words at the places of images"); err != nil {
			return err
		}
		p.found = true
		if !p.strict && !p.others && !p.named && !hasHost(word) {
			continue // a word beside images
		}
		i := Image{Reference: word, Source: m.Source, Kind: cmp.Or(kind, m.Kind), Name: cmp.Or(name, m.Name), Path: p.text,
			Hooks: m.Hooks}
		where := f.where(m, object, p)
		if err := f.add(i, where, p.others || inList); err != nil {
			if p.strict && !inList {
				return fmt.Errorf("%w: %s: %s is no image: %w", fault.ErrInvalid, where, fault.Quote(word), err)
			}
			f.warn("%s: %s is no image and is left out", where, fault.Quote(word))
		}
		if len(f.seen) > maxImages {
			return fmt.Errorf("%w: chart %s has more images (limit %d)", fault.ErrLimit, f.chart.Name(), maxImages)
		}
	}
	return nil
}

// The keys of what is seen begin with these.
const mirrored, leftOut = "0", "1"

// add adds an image once. The error says why its reference is none.
func (f *finder) add(i Image, where string, others bool) error {
	ref, err := imageset.ParseRef(i.Reference)
	if err != nil {
		// What is a reference with a tag lacks nothing else.
		tagged, tagErr := imageset.ParseRef(i.Reference + ":latest")
		if tagErr != nil {
			return err
		}
		f.warn("%s: the image %s has no tag: latest is taken", where, fault.Quote(i.Reference))
		ref, i.Reference = tagged, i.Reference+":latest"
	}
	if !ref.InRegistry() {
		return errors.New("it is in no registry")
	}
	i.Ref = ref
	list, key := &f.found.Images, mirrored+i.Reference
	if others && f.options.Narrow {
		list, key = &f.found.Others, leftOut+i.Reference
	}
	if !f.seen[key] {
		f.seen[key] = true
		*list = append(*list, i)
	}
	return nil
}

// annotated takes the images of the chart's annotation.
func (f *finder) annotated() error {
	text := f.chart.Annotations()[annotation]
	if text == "" {
		return nil
	}
	var list []struct{ Image string }
	where := fmt.Sprintf("chart %s: Chart.yaml: annotation %s", f.chart.Name(), annotation)
	if err := helmtemplate.Unmarshal([]byte(text), &list); err != nil {
		f.warn("%s is no list of images: %s", where, fault.Short(err.Error()))
		return nil
	}
	for _, item := range list {
		if len(f.seen) > maxImages {
			return nil
		}
		if err := f.count(&f.words, maxWords, "words at the places of images"); err != nil {
			return err
		}
		i := Image{Reference: item.Image, Source: "Chart.yaml", Kind: "Chart", Name: f.chart.Name(), Path: annotation}
		if err := f.add(i, where, true); err != nil {
			f.warn("%s: %s is no image and is left out", where, fault.Quote(item.Image))
		}
	}
	return nil
}

// describe returns the kind and the name of an object.
func describe(object any) (kind, name string) {
	o, _ := object.(map[string]any)
	kind, _ = o["kind"].(string)
	meta, _ := o["metadata"].(map[string]any)
	name, _ = meta["name"].(string)
	return kind, name
}

var port = lazyregexp.New(`:[0-9]+$`)

// hasHost reports whether a reference begins with a registry.
func hasHost(reference string) bool {
	if _, rest, ok := strings.Cut(reference, "://"); ok {
		reference = rest
	}
	host, _, ok := strings.Cut(reference, "/")
	return ok && (strings.Contains(host, ".") || host == "localhost" || port().MatchString(host))
}
