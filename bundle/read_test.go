package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/bundle"
)

const (
	soundAnnotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: foo
  operators.operatorframework.io.bundle.channels.v1: beta, stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
`
	soundCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: foo.v1.2.3
spec:
  version: 1.2.3
`
	service = "apiVersion: v1\nkind: Service\nmetadata:\n  name: s\n"
)

// sound returns a valid bundle with some of its files replaced, or removed if their text is empty.
func sound(files map[string]string) fstest.MapFS {
	all := map[string]string{"metadata/annotations.yaml": soundAnnotations, "manifests/csv.yaml": soundCSV,
		"manifests/service.yaml": service}
	maps.Copy(all, files)
	out := fstest.MapFS{}
	for name, text := range all {
		if text != "" {
			out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		}
	}
	return out
}

// csvWith returns the valid ClusterServiceVersion with additional lines in its spec, and annotations.
func csvWith(spec string, annotations ...string) map[string]string {
	text := soundCSV
	if len(annotations) > 0 {
		text = strings.Replace(text, "spec:", "  annotations:\n    "+strings.Join(annotations, "\n    ")+"\nspec:", 1)
	}
	return map[string]string{"manifests/csv.yaml": text + spec}
}

func TestASoundBundle(t *testing.T) {
	b := read(t, sound(nil), bundle.ReadOptions{})
	if b.Package != "foo" || b.CSV.Name != "foo.v1.2.3" || b.CSV.Version != "1.2.3" ||
		b.MediaType != bundle.RegistryV1 {
		t.Errorf("read as %q %q %q %q", b.Package, b.CSV.Name, b.CSV.Version, b.MediaType)
	}
	if !slices.Equal(b.Channels, []string{"beta", " stable"}) || b.DefaultChannel != "stable" {
		t.Errorf("channels %q, default %q", b.Channels, b.DefaultChannel)
	}
	if b.AnnotationsFile != "metadata/annotations.yaml" || b.ManifestsDir != "manifests" ||
		b.MetadataDir != "metadata" {
		t.Errorf("places %q %q %q", b.AnnotationsFile, b.ManifestsDir, b.MetadataDir)
	}
	if len(b.Objects) != 2 || b.Objects[1].File != "manifests/service.yaml" || b.Objects[1].Kind != "Service" ||
		b.Objects[1].Size != int64(len(service)) {
		t.Errorf("objects %+v", b.Objects)
	}
	if len(b.Problems)+len(b.StrictProblems()) > 0 {
		t.Errorf("problems %v %v", b.Problems, b.StrictProblems())
	}
}

func TestFatalProblems(t *testing.T) {
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: " +
		"as.g.io\nspec:\n  group: g.io\n  names:\n    kind: A\n    plural: as\n  versions:\n  - name: v2\n"
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no manifests", map[string]string{"manifests/csv.yaml": "", "manifests/service.yaml": ""},
			"manifests: the manifests directory is missing"},
		{"no metadata", map[string]string{"metadata/annotations.yaml": ""},
			"metadata: the metadata directory is missing"},
		{"no annotations", map[string]string{"metadata/annotations.yaml": "", "metadata/x.yaml": "a: b"},
			"Could not find annotations file"},
		{"annotations of something else", map[string]string{"metadata/annotations.yaml": "annotations: {a: b}"},
			"Could not find annotations file"},
		{"annotations that are no map", map[string]string{"metadata/annotations.yaml": "annotations: [a]"},
			"Could not find annotations file"},
		{"a channel that is a number",
			map[string]string{"metadata/annotations.yaml": "annotations:\n  operators.operatorframework.io.bundle.package.v1: foo\n  operators.operatorframework.io.bundle.channels.v1: 4.2\n"}, "Could not find annotations file"},
		{"no package",
			map[string]string{"metadata/annotations.yaml": "annotations:\n  operators.operatorframework.io.bundle.channels.v1: a\n"}, `invalid name "" of the package`},
		{"only broken manifests", map[string]string{"manifests/csv.yaml": "{", "manifests/service.yaml": "a: b"},
			"no bundle objects found"},
		{"no ClusterServiceVersion", map[string]string{"manifests/csv.yaml": ""}, "no csv in bundle"},
		{"a ClusterServiceVersion in a second document",
			map[string]string{"manifests/csv.yaml": service + "---\n" + soundCSV}, "no csv in bundle"},
		{"names that differ by case", map[string]string{"manifests/CSV.yaml": service},
			`"CSV.yaml" and "csv.yaml" differ only by case`},
		{"a name with a newline", map[string]string{"manifests/a\nb.yaml": service},
			`invalid file name "a\nb.yaml": has a control character`},
		{"a name with an escape sequence", map[string]string{"manifests/a\x1b[31m": service},
			`invalid file name "a\x1b[31m"`},
		{"a long name", map[string]string{"manifests/" + strings.Repeat("a", 300): service}, "longer than 255 bytes"},
		{"a name that is not UTF-8", map[string]string{"metadata/bad\xff": service}, "not UTF-8"},
		{"a backslash in a name", map[string]string{`manifests/..\w`: service}, "has a backslash"},
		{"manifests above the bundle",
			map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations, "manifests/",
				"../manifests/", 1)}, `"../manifests/" leaves the bundle`},
		{"manifests in an absolute place",
			map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations, "manifests/", "/etc/", 1)},
			`"/etc/" is an absolute path`},
		{"a package with a slash",
			map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations, ": foo", ": ../foo", 1)},
			`invalid name "../foo" of the package`},
		{"a package of look-alikes",
			map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations, ": foo", ": fоo", 1)},
			"printable ASCII"},
		{"a channel with a newline",
			map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations, ": beta, stable",
				`: "a\nb"`, 1)}, `invalid name "a\nb" of a channel`},
		{"a bundle with a newline",
			map[string]string{"manifests/csv.yaml": strings.Replace(soundCSV, "foo.v1.2.3", `"a\nb"`, 1)},
			`invalid name "a\nb" of the bundle`},
		{"a bundle without a name",
			map[string]string{"manifests/csv.yaml": strings.Replace(soundCSV, "foo.v1.2.3", `""`, 1)},
			`invalid name "" of the bundle`},
		{"a bundle with a long name",
			map[string]string{"manifests/csv.yaml": strings.Replace(soundCSV, "foo.v1.2.3", strings.Repeat("a", 4096),
				1)}, "longer than 253 bytes"},
		{"an annotation that is a number", csvWith("", "olm.skipRange: 1"),
			`metadata.annotations[olm.skipRange]: is a number, expected a string (write it in quotes: "1")`},
		{"a version that is a number",
			map[string]string{"manifests/csv.yaml": strings.Replace(soundCSV, "1.2.3\n", "1.2\n", 2)},
			`spec.version: is a number, expected a string (write it in quotes: "1.2")`},
		{"dependencies that are no list", map[string]string{"metadata/x.yaml": "dependencies: {a: b}"},
			"dependencies: is an object, expected a list of types and values"},
		{"properties that are no list", map[string]string{"metadata/properties.yaml": "properties: {type: a, value: b}"},
			"properties: is an object, expected a list of types and values"},
		{"a release that is a list", csvWith("  release: [1]\n"), "spec.release: is a list, expected a string"},
		{"a spec that is a list",
			map[string]string{"manifests/csv.yaml": "apiVersion: a/v1\nkind: ClusterServiceVersion\nmetadata: {name: " +
				"a}\nspec: []\n"}, "spec: must be an object"},
		{"related images that are text", csvWith("  relatedImages: [a]\n"), "spec.relatedImages[0]: is a string, expected an object"},
		{"another install strategy", csvWith("  install:\n    strategy: helm\n"),
			`spec.install.strategy: must be "deployment", not "helm"`},
		{"an image that is a number",
			csvWith(
				"  install:\n    strategy: deployment\n    spec:\n      deployments:\n      - spec: {template: " +
					"{spec: {containers: [{image: 3}]}}}\n"), "an image is a number, expected a string"},
		{"owned CRDs that are text", csvWith("  customresourcedefinitions:\n    owned: [a]\n"),
			"spec.customresourcedefinitions.owned[0]: is a string, expected an object"},
		{"CRDs that are a list", csvWith("  customresourcedefinitions: [a]\n"),
			"expected an object with the lists owned and required"},
		{"a required CRD without a group", csvWith("  customresourcedefinitions:\n    required: [{name: a}]\n"),
			`required[0].name: couldn't parse plural.group from crd name: "a"`},
		{"an owned CRD that is not there",
			csvWith("  customresourcedefinitions:\n    owned: [{name: as.g.io, version: v1, kind: A}]\n"),
			"couldn't find as.g.io/v1 (A) in bundle. found: []"},
		{"an owned CRD of another version",
			with(csvWith("  customresourcedefinitions:\n    owned: [{name: as.g.io, version: v1, kind: A}]\n"),
				"manifests/crd.yaml", crd),
			"couldn't find as.g.io/v1 (A) in bundle. found: [as.g.io/v2 (A)]"},
		{"a CRD of an unknown version",
			with(csvWith("  customresourcedefinitions:\n    owned: [{name: as.g.io, version: v2, kind: A}]\n"),
				"manifests/crd.yaml", strings.Replace(crd, "io/v1\n", "io/v3\n", 1)),
			"couldn't find as.g.io/v2 (A) in bundle"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var told []bundle.Problem
			b, err := bundle.Read(t.Context(), sound(test.files),
				bundle.ReadOptions{Warn: func(p bundle.Problem) { told = append(told, p) }})
			if slices.ContainsFunc(told,
				func(p bundle.Problem) bool { return strings.Contains(p.String(), test.want) }) {
				t.Error("the problem was told twice")
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if !errors.Is(err, bundle.ErrInvalid) || errors.Is(err, bundle.ErrLimit) {
				t.Error("the error is not of the class of invalid bundles")
			}
			if b == nil || len(b.Problems) == 0 {
				t.Error("no bundle with the problems")
			}
			if strings.ContainsAny(err.Error(), "\x1b") {
				t.Error("the error has control characters")
			}
		})
	}
}

func with(files map[string]string, name, text string) map[string]string {
	files[name] = text
	return files
}

func TestNilFileSystem(t *testing.T) {
	if _, err := bundle.Read(t.Context(), nil, bundle.ReadOptions{}); err == nil || !strings.Contains(err.Error(),
		"filesystem is nil") {
		t.Errorf("error %v", err)
	}
}

func TestEveryFatalProblemIsTold(t *testing.T) {
	files := csvWith("  release: true\n  relatedImages: 3\n")
	files["metadata/annotations.yaml"] = "a: b"
	_, err := bundle.Read(t.Context(), sound(files), bundle.ReadOptions{})
	for _, want := range []string{"manifests/csv.yaml:7:12: spec.release: ", "spec.relatedImages: ",
		"Could not find annotations file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want also %q", err, want)
		}
	}
}

// What neither an API server nor a catalog takes is refused where the bundle is read, with its place.
func TestRelease(t *testing.T) {
	for value, want := range map[string]string{
		`"2"`: "", `"1.a-b"`: "", "null": "",
		"2":                       `7:12: spec.release: is a number, expected a string (write it in quotes: "2")`,
		"1.5":                     `7:12: spec.release: is a number, expected a string (write it in quotes: "1.5")`,
		"true":                    "7:12: spec.release: is a boolean, expected a string",
		`"07"`:                    `7:12: spec.release: invalid release "07": segment 0: Numeric PreRelease version must not contain leading zeroes "07"`,
		`""`:                      `7:12: spec.release: is empty: remove it, or write a release such as "1"`,
		`"a..b"`:                  `7:12: spec.release: invalid release "a..b": segment 1: Prerelease is empty`,
		`"a_b"`:                   `7:12: spec.release: invalid release "a_b": segment 0: Invalid character(s) found in prerelease "a_b"`,
		`"123456789012345678901"`: `7:12: spec.release: invalid release "123456789012345678901": exceeds maximum length of 20 characters`,
	} {
		_, err := bundle.Read(t.Context(), sound(csvWith("  release: "+value+"\n")), bundle.ReadOptions{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
}

func TestLimits(t *testing.T) {
	deep := strings.Repeat("[", 101) + strings.Repeat("]", 101)
	tests := []struct {
		name   string
		files  map[string]string
		limits bundle.Limits
		want   string
	}{
		{"a file", map[string]string{"manifests/big.yaml": "a: " + strings.Repeat("x", 4<<20)}, bundle.Limits{},
			"manifests/big.yaml: 4194307 bytes (limit 4194304)"},
		{"all files", nil, bundle.Limits{Total: 500}, "the files of the bundle have more than 500 bytes"},
		{"files", nil, bundle.Limits{Entries: 2}, "more than 2 files and directories"},
		{"documents", map[string]string{"manifests/x.yaml": strings.Repeat(service+"---\n", 10)},
			bundle.Limits{Documents: 5}, "more than 5 documents"},
		{"depth", map[string]string{"manifests/x.yaml": "a: " + deep}, bundle.Limits{},
			"depth exceeds the limit of 100"},
		{"depth in JSON", map[string]string{"manifests/x.json": `{"a":` + deep + "}"}, bundle.Limits{},
			"depth exceeds the limit of 100"},
		{"depth of metadata", map[string]string{"metadata/x.yaml": "a: " + deep}, bundle.Limits{},
			"depth exceeds the limit of 100"},
		{"aliases",
			map[string]string{"manifests/x.yaml": "a: &a [1,2,3,4,5,6,7,8,9]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: " +
				"&c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
				"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: " +
				"[*f,*f,*f,*f,*f,*f,*f,*f,*f]\n"}, bundle.Limits{}, "alias expansion exceeds the limit"},
		{"a constraint",
			map[string]string{"metadata/dependencies.yaml": "dependencies:\n- type: " +
				"olm.constraint\n  value:\n    cel:\n      rule: " + strings.Repeat("x", 131072)}, bundle.Limits{},
			"a constraint of 131091 bytes (limit 131072)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := bundle.Read(t.Context(), sound(test.files), bundle.ReadOptions{Limits: test.limits})
			if err == nil || !strings.Contains(err.Error(), test.want) || !errors.Is(err, bundle.ErrLimit) ||
				errors.Is(err, bundle.ErrInvalid) {
				t.Errorf("error %v, want the limit %q", err, test.want)
			}
			if err != nil && len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestProblems(t *testing.T) {
	tests := []struct {
		name     string
		files    map[string]string
		severity bundle.Severity
		rule     string
		want     string
	}{
		{"a directory", map[string]string{"manifests/d/x.yaml": service}, bundle.SeverityWarning, bundle.RuleDirectory,
			"manifests/d: a directory within the manifests is passed over"},
		{"a dot-file", map[string]string{"manifests/.x.yaml": service}, bundle.SeverityWarning, bundle.RuleFile,
			"manifests/.x.yaml: "},
		{"no YAML", map[string]string{"manifests/x.yaml": "a: b: c"}, bundle.SeverityWarning, bundle.RuleSyntax,
			"manifests/x.yaml:1: "},
		{"no kind", map[string]string{"manifests/x.yaml": "\n\na: b"}, bundle.SeverityWarning, bundle.RuleSyntax,
			"manifests/x.yaml:3: not a Kubernetes object: it has no kind; the file is passed over"},
		{"a list", map[string]string{"manifests/x.yaml": "- a"}, bundle.SeverityWarning, bundle.RuleSyntax,
			"not a Kubernetes object, but a list"},
		{"NUL", map[string]string{"manifests/x.yaml": "kind: a\x00"}, bundle.SeverityWarning, bundle.RuleSyntax,
			"NUL byte"},
		{"UTF-16", map[string]string{"manifests/x.yaml": "\xff\xfek\x00"}, bundle.SeverityWarning, bundle.RuleSyntax,
			"UTF-16"},
		{"not UTF-8", map[string]string{"manifests/x.yaml": "kind: \xff"}, bundle.SeverityWarning, bundle.RuleSyntax,
			"not valid UTF-8"},
		{"several documents", map[string]string{"manifests/x.yaml": service + "---\n" + service},
			bundle.SeverityWarning, bundle.RuleDocuments, `manifests/x.yaml:6: 2 documents in one file`},
		{"a document before the first", map[string]string{"manifests/x.yaml": "# who made this\n---\n" + service},
			bundle.SeverityWarning, bundle.RuleDocuments, "manifests/x.yaml:3: a document separator"},
		{"a broken second document", map[string]string{"manifests/x.yaml": service + "---\na: b: c\n"},
			bundle.SeverityWarning, bundle.RuleSyntax, "the rest of the file is passed over"},
		{"a key twice", map[string]string{"manifests/x.yaml": service + "kind: Secret\n"}, bundle.SeverityWarning,
			bundle.RuleDuplicateKey, `manifests/x.yaml:5: duplicate key "kind"`},
		{"two ClusterServiceVersions", map[string]string{"manifests/csv2.yaml": soundCSV}, bundle.SeverityError,
			bundle.RuleCSVSecond, "manifests/csv2.yaml:1: two csvs found in one bundle"},
		{"an unknown media type",
			map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations, "registry+v1",
				"registry+v2", 1)}, bundle.SeverityError, bundle.RuleMediaType, `unknown media type "registry+v2"`},
		{"two files of annotations", map[string]string{"metadata/b.yaml": soundAnnotations}, bundle.SeverityError,
			bundle.RuleAnnotationsTwo, "metadata/b.yaml: a second file"},
		{"an annotation that is a number",
			map[string]string{"metadata/annotations.yaml": soundAnnotations + "  com.redhat.openshift.versions: 4.9\n"},
			bundle.SeverityError, bundle.RuleAnnotations,
			`annotations[com.redhat.openshift.versions]: the value of an annotation is a number, expected a string`},
		{"manifests that are elsewhere",
			map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations, "manifests/", "deploy/",
				1)}, bundle.SeverityError, bundle.RuleDirectory,
			`"deploy/" is not a directory of the bundle; "manifests" is read`},
		{"manifests with a slash before",
			map[string]string{"metadata/annotations.yaml": strings.Replace(soundAnnotations, "manifests/",
				"/manifests/", 1)}, bundle.SeverityWarning, bundle.RuleDirectory, `"/manifests/" is absolute`},
		{"other metadata", map[string]string{"metadata/readme.yaml": "a: b"}, bundle.SeverityWarning, bundle.RuleFile,
			"neither annotations nor dependencies nor properties"},
		{"metadata that is no YAML", map[string]string{"metadata/x.yaml": "a: b: c"}, bundle.SeverityWarning,
			bundle.RuleSyntax, "metadata/x.yaml:1: "},
		{"a dependency without a type", map[string]string{"metadata/x.yaml": "dependencies: [{value: 1}]"},
			bundle.SeverityError, bundle.RuleDependency, "dependencies[0]: type must be set"},
		{"a dependency without a value", map[string]string{"metadata/x.yaml": "dependencies: [{type: olm.gvk}]"},
			bundle.SeverityError, bundle.RuleDependency, `value of the type "olm.gvk" must be set`},
		{"a dependency of an unknown type",
			map[string]string{"metadata/x.yaml": "dependencies: [{type: olm.crd, value: {}}]"}, bundle.SeverityError,
			bundle.RuleDependency, `unsupported dependency type "olm.crd"`},
		{"an API without a group",
			map[string]string{"metadata/x.yaml": "dependencies: [{type: olm.gvk, value: {version: v1, kind: A}}]"},
			bundle.SeverityError, bundle.RuleDependency, "API Group is empty"},
		{"an API without a version",
			map[string]string{"metadata/x.yaml": "dependencies: [{type: olm.gvk, value: {group: g, kind: A}}]"},
			bundle.SeverityError, bundle.RuleDependency, "API Version is empty"},
		{"an API without a kind",
			map[string]string{"metadata/x.yaml": "dependencies: [{type: olm.gvk, value: {group: g, version: v1}}]"},
			bundle.SeverityError, bundle.RuleDependency, "API Kind is empty"},
		{"a package without a name",
			map[string]string{"metadata/x.yaml": "dependencies: [{type: olm.package, value: {version: 1.0.0}}]"},
			bundle.SeverityError, bundle.RuleDependency, "Package name is empty"},
		{"a package without a version",
			map[string]string{"metadata/x.yaml": "dependencies: [{type: olm.package, value: {packageName: a}}]"},
			bundle.SeverityError, bundle.RuleDependency, "Package version is empty"},
		{"a label without text", map[string]string{"metadata/x.yaml": "dependencies: [{type: olm.label, value: {}}]"},
			bundle.SeverityError, bundle.RuleDependency, "Label information is missing"},
		{"a constraint of two things",
			map[string]string{"metadata/x.yaml": "dependencies: [{type: olm.constraint, value: {cel: {rule: a}, " +
				"gvk: {}}}]"}, bundle.SeverityError, bundle.RuleDependency, "exactly one of"},
		{"no version", map[string]string{"manifests/csv.yaml": strings.Replace(soundCSV, "version: 1.2.3", "a: b", 1)},
			bundle.SeverityError, bundle.RuleCSV, "Version string empty"},
		{"replaces that is a number", csvWith("  replaces: 3\n"), bundle.SeverityError, bundle.RuleCSV,
			"spec.replaces: is a number, expected a string"},
		{"skips that are text", csvWith("  skips: a\n"), bundle.SeverityError, bundle.RuleCSV,
			"spec.skips: is a string, expected a list"},
		{"olm.properties that are no JSON", csvWith("", "olm.properties: '[{'"), bundle.SeverityError, bundle.RuleCSV,
			"metadata.annotations[olm.properties]: no list of properties in JSON, it is ignored"},
		{"olm.properties without a type", csvWith("", `olm.properties: '[{"value":1}]'`), bundle.SeverityError,
			bundle.RuleCSV, "type and value must be set"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var told []bundle.Problem
			b := read(t, sound(test.files), bundle.ReadOptions{Warn: func(p bundle.Problem) { told = append(told, p) }})
			if !slices.Equal(told, b.Problems) {
				t.Error("the caller was told other problems than the bundle has")
			}
			if !slices.ContainsFunc(b.Problems, func(p bundle.Problem) bool {
				return p.Severity == test.severity && p.Rule == test.rule && strings.Contains(p.String(), test.want)
			}) {
				t.Errorf("problems %v, want %s %s %q", b.Problems, test.severity, test.rule, test.want)
			}
			if len(b.Problems) != 1 {
				t.Errorf("%d problems: %v", len(b.Problems), b.Problems)
			}
			// Warnings do not keep the bundle out of a catalog.
			blob(t, b, "")
		})
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := fmt.Errorf("%w: enough", context.Canceled)
	cancel(cause)
	if _, err := bundle.Read(ctx, sound(nil), bundle.ReadOptions{}); !errors.Is(err, cause) || errors.Is(err,
		bundle.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}
