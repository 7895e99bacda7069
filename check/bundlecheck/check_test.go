package bundlecheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/rules"
)

// etcd returns a valid bundle as files that a test may change.
func etcd(t testing.TB) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	root := os.DirFS("../../testdata/bundles/etcd/0.9.4")
	if err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		out[name] = &fstest.MapFile{Data: data}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	csvFile   = "manifests/etcdoperator.v0.9.4.clusterserviceversion.yaml"
	crdFile   = "manifests/etcdclusters.etcd.database.coreos.com.crd.yaml"
	notesFile = "metadata/annotations.yaml"
	depsFile  = "metadata/dependencies.yaml"
)

// replace replaces the only occurrence of a text in a file.
func replace(t testing.TB, fsys fstest.MapFS, name, old, with string) {
	t.Helper()
	data := string(fsys[name].Data)
	if n := strings.Count(data, old); n != 1 {
		t.Fatalf("%q is in %s %d times", old, name, n)
	}
	fsys[name] = &fstest.MapFile{Data: []byte(strings.Replace(data, old, with, 1))}
}

func write(fsys fstest.MapFS, name, text string) { fsys[name] = &fstest.MapFile{Data: []byte(text)} }

// check checks a bundle.
func check(t testing.TB, fsys fs.FS, o Options) *Report {
	t.Helper()
	report, err := Run(context.Background(), fsys, load(t, fsys), o)
	if err != nil {
		t.Fatal(err)
	}
	// The rules of a check have what Run finds: what is not among them would be lost.
	for _, p := range report.Problems {
		id := ownPrefix + ruleOf(p.Rule)
		if strings.HasPrefix(p.Rule, olmv1Prefix) {
			id = p.Rule
		}
		if !slices.ContainsFunc(BundleRules(), func(r rules.Rule) bool { return r.ID == id }) &&
			!slices.ContainsFunc(Validators(), func(v Validator) bool { return ruleOf(v.Name) == ruleOf(p.Rule) }) {
			t.Errorf("there is no rule %s", id)
		}
	}
	return report
}

// lines formats the problems, one per line.
func lines(problems []bundle.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		p.Column = 0 // TestColumns has those
		fmt.Fprintf(&b, "%s %s %s\n", p.Severity, p.Rule, p)
	}
	return b.String()
}

func TestABundleWithoutErrors(t *testing.T) {
	report := check(t, etcd(t), Options{})
	if report.Failed() {
		t.Errorf("problems\n%s", lines(report.Problems))
	}
	var plain int64
	for name, file := range etcd(t) {
		if strings.HasPrefix(name, "manifests/") {
			plain += int64(len(file.Data))
		}
	}
	if s := report.Size; s.Plain != plain || s.Encoded <= 0 || s.Encoded >= s.Plain || s.Limit != 1<<20 {
		t.Errorf("size %+v, the files have %d bytes", s, plain)
	}
}

// A label that differs from its annotation misleads readers of the label.
func TestLabelsThatDiffer(t *testing.T) {
	labels := map[string]string{bundle.AnnotationPackage: "other", bundle.AnnotationMetadata: "metadata/",
		"maintainer": "x"}
	b, err := read(etcd(t), bundle.ReadOptions{Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), etcd(t), b, Options{Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	text := lines(report.Problems)
	if want := `warning label metadata/annotations.yaml:7: annotations[` + bundle.AnnotationPackage +
		`]: the label of the image is "other" and the annotation "etcd", which counts`; !strings.Contains(text, want) ||
		strings.Count(text, "warning label") != 1 {
		t.Errorf("got\n%s\nwant %s", text, want)
	}
}

// Each change breaks one rule, which is reported with its position.
func TestBrokenRules(t *testing.T) {
	const prefix = "operators.operatorframework.io.bundle."
	for _, c := range []struct {
		name   string
		change func(t *testing.T, f fstest.MapFS)
		want   string // a part of a line
	}{
		{"missing annotation", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, "  "+prefix+"package.v1: etcd\n", "")
		}, `error annotation-missing metadata/annotations.yaml:2: annotations[` + prefix +
			`package.v1]: Missing annotation "` + prefix + `package.v1"`},
		{"empty annotation", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, "package.v1: etcd", `package.v1: ""`)
		}, `error annotation-empty metadata/annotations.yaml:7: annotations[` + prefix +
			`package.v1]: Expecting annotation "` + prefix + `package.v1" to have non-empty value`},
		{"another media type", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, "registry+v1", "plain")
		},
			`error media-type metadata/annotations.yaml:5: annotations[` + prefix +
				`mediatype.v1]: Expecting annotation "` + prefix +
				`mediatype.v1" to have value "registry+v1" instead of "plain"`},
		{"package name that version 1 refuses", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, "package.v1: etcd", "package.v1: Etcd")
		}, `warning name metadata/annotations.yaml:7: annotations[` + prefix +
			`package.v1]: OLM v1 refuses: the package name "Etcd": a lowercase RFC 1123`},
		{"empty channel", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, "channels.v1: ", "channels.v1: a,,")
		}, `error channel-empty`},
		{"channel with a space", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, "channels.v1: ", "channels.v1: a, ")
		}, `warning channel-space`},
		{"default channel of others", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, "channels.v1: ", "channels.v1: x-")
		}, `warning default-channel`},

		{"directory that is not there", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, ": manifests/", ": bundle/manifests/")
		},
			`error directory metadata/annotations.yaml:4: annotations[` + prefix +
				`manifests.v1]: Expecting annotation "` + prefix +
				`manifests.v1" to have value "manifests/" instead of "bundle/manifests/"`},
		{"directory outside", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, ": manifests/", ": ../manifests/")
		},
			`error directory metadata/annotations.yaml:4: annotations[` + prefix +
				`manifests.v1]: Expecting annotation "` + prefix +
				`manifests.v1" to have value "manifests/" instead of "../manifests/"`},
		{"unknown media type", func(t *testing.T, f fstest.MapFS) {
			replace(t, f, notesFile, "registry+v1", "registry+v2")
		},
			`error media-type metadata/annotations.yaml:5: annotations[` + prefix +
				`mediatype.v1]: Expecting annotation "` + prefix +
				`mediatype.v1" to have value "registry+v1" instead of "registry+v2"`},
		{"no annotations", func(t *testing.T, f fstest.MapFS) { delete(f, notesFile) },
			`error directory metadata: the metadata directory is missing`},
		{"annotations under another name", func(t *testing.T, f fstest.MapFS) {
			f["metadata/notes.yaml"] = f[notesFile]
			delete(f, notesFile)
		},
			`warning olmv1.unreadable metadata/annotations.yaml: OLM v1 refuses the bundle: open metadata/annotations.yaml: `},
		{"annotations twice", func(t *testing.T, f fstest.MapFS) { f["metadata/b.yaml"] = f[notesFile] },
			`error annotations-two metadata/b.yaml: a second file with annotations is passed over`},
		{"no manifests", func(t *testing.T, f fstest.MapFS) {
			for name := range f {
				if name != notesFile {
					delete(f, name)
				}
			}
		}, `error directory manifests: the manifests directory is missing`},
		{"undecodable manifest", func(t *testing.T, f fstest.MapFS) { write(f, "manifests/a.yaml", "a: [\n") },
			`error syntax manifests/a.yaml`},

		{"dependency without a type", func(t *testing.T, f fstest.MapFS) {
			write(f, depsFile, "dependencies:\n- value: {}\n")
		}, `error dependency-invalid metadata/dependencies.yaml:2: dependencies[0].value: type must be set`},
		{"dependency", func(t *testing.T, f fstest.MapFS) {
			write(f, depsFile, "dependencies:\n- type: olm.package\n  value:\n    packageName: a\n    version: x\n")
		},
			`error dependency-invalid metadata/dependencies.yaml:5: dependencies[0].value.version: Invalid semver format version`},
		{"constraint", func(t *testing.T, f fstest.MapFS) {
			write(f, depsFile,
				"dependencies:\n- type: olm.constraint\n  value:\n    all:\n      constraints:\n      - "+
					"cel:\n          rule: properties.exsts(p, true)\n")
		},
			`error constraint-invalid metadata/dependencies.yaml:7: dependencies[0].value.all.constraints[0].cel.rule: Invalid CEL expression: 1:17: undeclared reference to 'exsts'`},

		{"no CSV", func(t *testing.T, f fstest.MapFS) { delete(f, csvFile) },
			`error csv-missing manifests: no csv in bundle`},
		{"two CSVs", func(t *testing.T, f fstest.MapFS) { f["manifests/x.yaml"] = f[csvFile] },
			`error csv-second manifests/x.yaml:1: two csvs found in one bundle: "etcdoperator.v0.9.4"`},
		{"kind", func(t *testing.T, f fstest.MapFS) {
			write(f, "manifests/quota.yaml", "# a comment\napiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: q\n")
		}, `error kind manifests/quota.yaml:3: kind: ResourceQuota is not supported type for registryV1 bundle`},
		{"second document", func(t *testing.T, f fstest.MapFS) {
			write(f, "manifests/two.yaml",
				"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: "+
					"Pod\nmetadata:\n  name: b\n")
		}, `warning olmv1.validator:13 manifests/two.yaml:6: OLM v1 refuses the bundle: `},
		{"owned CRD is missing", func(t *testing.T, f fstest.MapFS) { delete(f, crdFile) },
			`: owned CRD etcdclusters.etcd.database.coreos.com/v1beta2 not found in bundle "etcdoperator.v0.9.4"`},
		{"owned CRD of another version", func(t *testing.T, f fstest.MapFS) {
			text := strings.ReplaceAll(string(f[crdFile].Data), "v1beta2", "v1beta3")
			write(f, crdFile, text)
		}, `: there is a definition etcdclusters.etcd.database.coreos.com of versions ["v1beta3"]`},
		{"CRD that nobody owns", func(t *testing.T, f fstest.MapFS) {
			write(f, "manifests/foo.yaml",
				strings.ReplaceAll(strings.ReplaceAll(string(f[crdFile].Data), "etcdcluster", "foo"), "EtcdCluster",
					"Foo"))
		},
			`: CRD foos.etcd.database.coreos.com/v1beta2 is present in bundle "etcdoperator.v0.9.4" but not defined in CSV`},
		{"no install modes", func(t *testing.T, f fstest.MapFS) {
			write(f, csvFile, strings.Replace(string(f[csvFile].Data), "installModes:", "otherModes:", 1))
		}, `: (etcdoperator.v0.9.4) install modes not found`},
		{"wrong type in an object", func(t *testing.T, f fstest.MapFS) {
			write(f, "manifests/sa.yaml",
				"apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: a\n  namespace: 1\n")
		}, `error object-invalid manifests/sa.yaml:5: metadata.namespace: ServiceAccount "a" cannot be read: is a number, expected a string (write it in quotes: "1")`},
		{"annotation names", func(t *testing.T, f fstest.MapFS) {
			write(f, "manifests/sa.yaml",
				"apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: a\n  annotations:\n    a/b/c: d\n")
		},
			`error object-metadata manifests/sa.yaml:6: metadata.annotations: error validating object metadata: Invalid value: "a/b/c"`},
		{"directory within the manifests",
			func(t *testing.T, f fstest.MapFS) { write(f, "manifests/more/a.yaml", "a: b\n") },
			`error sub-directory manifests/more: a directory within manifests/: OLM cannot unpack the bundle`},
		{"image of an environment variable", func(t *testing.T, f fstest.MapFS) {
			text := string(f[csvFile].Data)
			at := strings.Index(text, "- name: MY_POD_NAMESPACE")
			if at < 0 {
				t.Fatal("no environment")
			}
			indent := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
			write(f, csvFile, text[:at]+"- name: RELATED_IMAGE_X\n"+indent+"  value: quay.io/a/b:1\n"+indent+text[at:])
		},
			`: the image "quay.io/a/b:1", which the environment variable RELATED_IMAGE_X of the container "etcd-operator" names, is not in spec.relatedImages: a mirrored catalog will lack it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := etcd(t)
			c.change(t, fsys)
			report := check(t, fsys, Options{OLMv1: true})
			text := lines(report.Problems)
			if !strings.Contains(text, c.want) {
				t.Errorf("got\n%s\nwithout\n%s", text, c.want)
			}
			if strings.HasPrefix(c.want, "error") != report.Failed() && !strings.HasPrefix(c.want,
				":") && !strings.HasPrefix(c.want, "cannot") {
				t.Errorf("failed: %v\n%s", report.Failed(), text)
			}
		})
	}
}

// All problems are reported together, in a fixed order.
func TestAllProblemsAtOnce(t *testing.T) {
	fsys := etcd(t)
	replace(t, fsys, notesFile, "registry+v1", "plain")
	write(fsys, depsFile, "dependencies:\n- type: olm.label\n  value: {}\n")
	write(fsys, "manifests/quota.yaml", "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: q\n")
	delete(fsys, crdFile)
	first := lines(check(t, fsys, Options{Jobs: 4}).Problems)
	for _, rule := range []string{"media-type", "dependency-invalid", "kind", "crd-missing"} {
		if !strings.Contains(first, " "+rule+" ") {
			t.Errorf("%s is not in\n%s", rule, first)
		}
	}
	for range 5 {
		if again := lines(check(t, fsys, Options{Jobs: 4}).Problems); again != first {
			t.Fatalf("got\n%s\nand\n%s", first, again)
		}
	}
}

// Files that were not read are not reported as missing.
func TestABundleThatIsReadInPart(t *testing.T) {
	fsys := etcd(t)
	write(fsys, "manifests/a.yaml", strings.Repeat("a", 4<<20+1))
	report := check(t, fsys, Options{})
	if text := lines(report.Problems); text != "error limit manifests/a.yaml: 4194305 bytes (limit 4194304)\n" {
		t.Errorf("got\n%s", text)
	}
}

func TestStrictMakesErrorsOfWarnings(t *testing.T) {
	fsys := etcd(t)
	replace(t, fsys, notesFile, "package.v1: etcd", "package.v1: Etcd")
	if report := check(t, fsys, Options{}); report.Failed() {
		t.Errorf("failed\n%s", lines(report.Problems))
	}
	report := check(t, fsys, Options{Strict: true})
	if text := lines(report.Problems); !report.Failed() || strings.Contains(text, "warning") {
		t.Errorf("problems\n%s", text)
	}
}

func TestSelectedValidators(t *testing.T) {
	for name, want := range map[string]string{
		"alpha-deprecated-apis": "warning alpha-deprecated-apis/validation-failed",
		"bundle-objects": "error bundle-objects/object-failed-validation manifests/pc.yaml:1: PriorityClass " +
			"\"p\": globalDefault field cannot be set to true",
		"good-practices":     "warning good-practices/",
		"operatorhub":        "error operatorhub/csv-file-not-valid",
		"standardcategories": `error standardcategories/csv-file-not-valid ` + csvFile,
		"image-digests": `warning image-digests ` + csvFile +
			`:208: spec.install.spec.deployments[0].spec.template.spec.containers[0].image: the image "quay.io/coreos/etcd-operator:v0.9.4" is not named by its digest`,
		"multiarch": "warning multiarch",
	} {
		t.Run(name, func(t *testing.T) {
			fsys := etcd(t)
			write(fsys, "manifests/pc.yaml",
				"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata:\n  name: p\nglobalDefault: "+
					"true\nvalue: 1\n")
			text := string(fsys[csvFile].Data)
			text = strings.Replace(text,
				"image: quay.io/coreos/etcd-operator@sha256:66a37fd61a06a43969854ee6d3e21087a98b93838e284a6086b13917f96b0d9b", "image: quay.io/coreos/etcd-operator:v0.9.4", 1)
			write(fsys, csvFile, strings.Replace(text, "categories: ", "categories: Nonsense, ", 1))
			write(fsys, "manifests/pdb.yaml",
				"apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: p\n")
			if text := lines(check(t, fsys, Options{}).Problems); strings.Contains(text, want) {
				t.Errorf("unasked:\n%s", text)
			}
			if text := lines(check(t, fsys, Options{Select: []string{name}}).Problems); !strings.Contains(text, want) {
				t.Errorf("got\n%s\nwithout\n%s", text, want)
			}
		})
	}
	_, err := Run(context.Background(), etcd(t), load(t, etcd(t)), Options{Select: []string{"nonsense"}})
	if !errors.Is(err, ErrUnknownValidator) {
		t.Errorf("got %v", err)
	}
}

// A rule of RBAC names no version: one about a resource that is served in a stable version is not one about a removed API.
func TestRulesOfRBACAboutServedResources(t *testing.T) {
	const group = "        - apiGroups:\n          - apps\n          resources:\n          - deployments\n"
	for rule, removed := range map[string]bool{
		"batch cronjobs": false, "policy poddisruptionbudgets": false, "autoscaling horizontalpodautoscalers": false,
		"discovery.k8s.io endpointslices": false, "events.k8s.io events": false, "node.k8s.io runtimeclasses": false,
		"policy podsecuritypolicies": true,
	} {
		fsys := etcd(t)
		api, resource, _ := strings.Cut(rule, " ")
		replace(t, fsys, csvFile, group, "        - apiGroups:\n          - "+api+"\n          resources:\n          - "+resource+"\n")
		for _, name := range []string{"alpha-deprecated-apis", "operatorhub", "operatorhub/v2"} {
			text := lines(check(t, fsys, Options{Select: []string{name}, KubernetesVersion: "1.25"}).Problems)
			if name == "alpha-deprecated-apis" && removed != strings.Contains(text, resource) || !removed && strings.Contains(text, resource) {
				t.Errorf("%s, %s:\n%s", rule, name, text)
			}
		}
	}
}

// The lists in messages of the library have the same order in each run.
func TestListsInMessagesAreSorted(t *testing.T) {
	fsys := etcd(t)
	replace(t, fsys, "metadata/annotations.yaml", "channels.v1: singlenamespace-alpha", "channels.v1: g,a,b,f,e,d,c,singlenamespace-alpha")
	for kind, version := range map[string]string{"Ingress": "extensions/v1beta1", "Lease": "coordination.k8s.io/v1beta1",
		"StorageClass": "storage.k8s.io/v1beta1", "RoleBinding": "rbac.authorization.k8s.io/v1beta1",
		"APIService": "apiregistration.k8s.io/v1beta1", "PriorityClass": "scheduling.k8s.io/v1beta1"} {
		write(fsys, "manifests/"+kind+".yaml", "apiVersion: "+version+"\nkind: "+kind+"\nmetadata: {name: 'two\\words'}\n")
		write(fsys, "manifests/"+kind+"2.yaml", "apiVersion: "+version+"\nkind: "+kind+"\nmetadata: {name: another}\n")
	}
	text := lines(check(t, fsys, Options{Select: []string{"alpha-deprecated-apis", "good-practices"},
		KubernetesVersion: "1.22"}).Problems)
	const objects = `: (["two\\words" "another"]),`
	for _, want := range []string{`channel(s) ["a" "b" "c" "d" "e" "f" "g" "singlenamespace-alpha"] are not`,
		"Migrate the API(s) for APIService" + objects + "Ingress" + objects + "Lease" + objects + "PriorityClass" + objects +
			"RoleBinding" + objects + "StorageClass" + objects} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s\n%s", want, text)
		}
	}
}

// No validator crashes on a damaged bundle.
func TestAllValidatorsOnDamagedBundles(t *testing.T) {
	var all []string
	for _, v := range Validators() {
		all = append(all, v.Name)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		fsys := etcd(t)
		for _, name := range []string{csvFile, crdFile} {
			text := bytes.Split(fsys[name].Data, []byte("\n"))
			for range 1 + random.IntN(3) {
				i := random.IntN(len(text))
				if key, _, ok := bytes.Cut(text[i], []byte(":")); ok && !bytes.HasPrefix(key, []byte("kind")) {
					text[i] = append(bytes.Clone(key),
						[]byte([]string{": null", ": []", ": {}", ": 7"}[random.IntN(4)])...)
				}
			}
			fsys[name] = &fstest.MapFile{Data: bytes.Join(text, []byte("\n"))}
		}
		b, err := read(fsys, bundle.ReadOptions{})
		if b == nil {
			continue
		}
		_ = err
		report, err := Run(context.Background(), fsys, b, Options{Select: all})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Problems {
			if p.Rule == "validator-failed" {
				t.Error(p)
			}
		}
	}
}

// A bundle that takes too long is refused at the time limit; a cancelled check is a different error.
func TestTime(t *testing.T) {
	fsys := etcd(t)
	var rules strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&rules, "          - rule: self.a.all(x, x == 'a') || %d == %d\n", i, i)
	}
	write(fsys, "manifests/foo.yaml",
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: "+
			"foos.example.com\nspec:\n  group: example.com\n  scope: Namespaced\n"+
			"  names: {kind: Foo, plural: foos, singular: foo, listKind: FooList}\n  versions:\n  - name: "+
			"v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n"+
			"        properties: {a: {type: array, items: {type: string}}}\n        x-kubernetes-validations:\n"+
			rules.String())
	b := load(t, fsys)
	report, err := Run(context.Background(), fsys, b, Options{Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if text := lines(report.Problems); !report.Failed() || !strings.Contains(text,
		"the bundle was not checked to the end: that takes longer than 200ms") {
		t.Errorf("got\n%s", text)
	}
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { cancel(cause) })
	if _, err := Run(ctx, fsys, b, Options{}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}
