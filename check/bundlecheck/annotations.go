package bundlecheck

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/nearest"
)

// detect derives the media type from the manifests: with a chart it is helm, with a ClusterServiceVersion or a
// CustomResourceDefinition registry+v1, otherwise plain.
func (r *run) detect() bundle.MediaType {
	if r.chart() != "" {
		return bundle.Helm
	}
	for _, o := range r.b.Objects {
		if o.Kind == kindCSV || o.Kind == kindCRD {
			return bundle.RegistryV1
		}
	}
	// An empty bundle has the media type that it declares.
	if len(r.b.Objects) == 0 && r.b.Annotations[bundle.AnnotationMediaType] == string(bundle.RegistryV1) {
		return bundle.RegistryV1
	}
	return bundle.Plain
}

// annotations compares annotations.yaml with the content.
func (r *run) annotations(detected bundle.MediaType) {
	file := r.b.AnnotationsFile
	own := map[string]string{}
	if file == "" {
		// Reading the bundle has reported what a registry+v1 bundle lacks. A bundle of manifests alone is taken for plain+v0.
		if detected != bundle.RegistryV1 && detected != bundle.PlainV0 {
			r.fail(bundle.RuleAnnotations, inFile(r.b.MetadataDir), "Could not find annotations file")
		}
		return
	}
	if text, err := bundlefs.ReadFile(r.fsys, file); err == nil {
		if own, err = bundlefs.Annotations(text); err != nil {
			own = r.b.Annotations
		}
	}
	a := annotationCheck{r: r, file: file, values: own}
	a.mediaType(detected)
	a.directory(bundle.AnnotationManifests, r.b.ManifestsDir)
	a.directory(bundle.AnnotationMetadata, r.b.MetadataDir)
	// A plain+v0 bundle can be installed alone: it need not be in a package.
	must := detected != bundle.PlainV0 && (detected != bundle.Plain ||
		own[bundle.AnnotationMediaType] != string(bundle.PlainV0))
	if name, ok := a.lookUp(bundle.AnnotationPackage, must); ok {
		a.name(bundle.AnnotationPackage, "package", name)
	}
	if _, named := own[bundle.AnnotationChannels]; must || named {
		a.channels()
	}
	for key, label := range r.o.Labels {
		if v, ok := own[key]; ok && v != label && strings.HasPrefix(key, labelPrefix) {
			r.warn("label", a.place(key), "the label of the image is %q and the annotation %q, which counts", label, v)
		}
	}
}

// labelPrefix is the prefix of annotations that are also image labels.
const labelPrefix = "operators.operatorframework.io.bundle."

type annotationCheck struct {
	r      *run
	file   string
	values map[string]string
}

func (a annotationCheck) place(key string) place {
	p := inFile(a.file)
	p.Path = []any{"annotations", key}
	return p
}

// lookUp returns the value of an annotation. ok is false if it is missing or empty, which is an error if must is set.
func (a annotationCheck) lookUp(key string, must bool) (string, bool) {
	v, ok := a.values[key]
	switch {
	case !ok && must && a.r.b.Annotations[key] != "":
		a.r.fail("annotation-missing", a.place(key), "Missing annotation %q: only the image has a label %q", key, key)
	case !ok && must:
		a.r.fail("annotation-missing", a.place(key), "Missing annotation %q", key)
	case ok && strings.TrimSpace(v) == "":
		a.r.fail("annotation-empty", a.place(key), "Expecting annotation %q to have non-empty value", key)
	default:
		return v, ok
	}
	return "", false
}

func (a annotationCheck) mediaType(detected bundle.MediaType) {
	v, ok := a.lookUp(bundle.AnnotationMediaType, true)
	if !ok || v == string(detected) || detected == bundle.Plain && v == string(bundle.PlainV0) {
		return
	}
	a.r.fail("media-type", a.place(bundle.AnnotationMediaType),
		"Expecting annotation %q to have value %q instead of %q", bundle.AnnotationMediaType, detected, v)
}

// directory checks the annotation that names a directory. found is the actual directory.
func (a annotationCheck) directory(key, found string) {
	v, ok := a.lookUp(key, true)
	if !ok {
		return
	}
	if clean := path.Clean("./" + strings.TrimPrefix(v, "/")); clean != path.Clean("./"+found) {
		a.r.fail("directory", a.place(key), "Expecting annotation %q to have value %q instead of %q", key, found+"/", v)
	} else if strings.HasPrefix(v, "/") || !strings.HasSuffix(v, "/") {
		a.r.warn("directory", a.place(key), "the value %q is to be written %q, relative and with a slash at its end", v,
			found+"/")
	}
}

// name checks a name that OLM v1 accepts only if it is valid in Kubernetes.
func (a annotationCheck) name(key, what, name string) {
	for _, text := range validation.IsDNS1123Subdomain(name) {
		a.r.warn("name", a.place(key), "OLM v1 refuses: the %s name %q: %s", what, name, text)
	}
}

func (a annotationCheck) channels() {
	v, ok := a.lookUp(bundle.AnnotationChannels, true)
	preferred, _ := a.lookUp(bundle.AnnotationDefaultChannel, false)
	if !ok {
		return
	}
	here := a.place(bundle.AnnotationChannels)
	channels := strings.Split(v, ",")
	for i, name := range channels {
		trimmed := strings.TrimSpace(name)
		switch {
		case trimmed == "":
			a.r.fail("channel-empty", here,
				"Expecting annotation %q to have non-empty value: channel %d of %q is empty", bundle.AnnotationChannels,
				i+1, v)
		case trimmed != name:
			a.r.warn("channel-space", here, "the channel name %q has spaces around it, which are a part of the name",
				name)
		case slices.Contains(channels[:i], name):
			a.r.warn("channel-twice", here, "the channel %q is named twice", name)
		default:
			a.name(bundle.AnnotationChannels, "channel", name)
		}
	}
	if preferred == "" && len(channels) > 1 {
		a.r.warn("default-channel-unset", here,
			"no default channel is named: one of %s must become it by another bundle of the package", quoted(channels))
	}
	if text := DefaultChannel(preferred, channels); text != "" {
		a.r.warn("default-channel", a.place(bundle.AnnotationDefaultChannel), "%s", text)
	}
}

// DefaultChannel says what is wrong with a default channel that is none of the bundle's channels; empty if it is one of
// them, or if there is none.
func DefaultChannel(name string, channels []string) string {
	if name == "" || slices.Contains(channels, name) {
		return ""
	}
	text := fmt.Sprintf("the default channel %q is none of the bundle's channels %s", name, quoted(channels))
	if near, ok := nearest.Name(name, channels); ok {
		return text + fmt.Sprintf(", did you mean %q?", near)
	}
	return text + ": another bundle of the package must bring it"
}

// quoted formats a few names.
func quoted(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%q and %d more", names[:most], len(names)-most)
	}
	return fmt.Sprintf("%q", names)
}
