package recipes

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pipeline "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
	"sigs.k8s.io/yaml"
)

const root = "../../"

// object is a task, a pipeline or a run.
type object interface {
	metav1.Object
	apis.Validatable
	apis.Defaultable
}

// tekton decodes an object, in which unknown fields are errors, and validates it as Tekton's webhook does.
func tekton(text []byte) (object, error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return nil, err
	}
	var o object
	switch kind.Kind {
	case "Task":
		o = &pipeline.Task{}
	case "Pipeline":
		o = &pipeline.Pipeline{}
	case "TaskRun":
		o = &pipeline.TaskRun{}
	case "PipelineRun":
		o = &pipeline.PipelineRun{}
	}
	if err := yaml.UnmarshalStrict(text, o); err != nil {
		return nil, err
	}
	ctx := apis.WithinCreate(context.Background())
	o.SetDefaults(ctx)
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + "abcde") // as the API server does
	}
	if err := o.Validate(ctx); err != nil {
		return nil, err
	}
	return o, nil
}

// tektonFiles lists the files of Tekton by their names below deploy/tekton.
func tektonFiles(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	dir := root + "deploy/tekton"
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		out[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every file is valid, and where Tekton's catalogs have it: KIND/NAME/VERSION/NAME.yaml with the labels, annotations
// and descriptions that hubs read, with a README and a sample beside it.
func TestTekton(t *testing.T) {
	files := tektonFiles(t)
	if len(files) < 26 {
		t.Fatalf("only %d files", len(files))
	}
	for name, text := range files {
		o, err := tekton(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		parts := strings.Split(name, "/")
		if len(parts) == 5 && parts[3] == "samples" {
			if o.GetGenerateName() == "" {
				t.Errorf("%s: a run of a fixed name can be created once", name)
			}
			continue
		}
		var description string
		var params pipeline.ParamSpecs
		workspaces := map[string]string{}
		kind := "task"
		switch o := o.(type) {
		case *pipeline.Task:
			description, params = o.Spec.Description, o.Spec.Params
			for _, w := range o.Spec.Workspaces {
				workspaces[w.Name] = w.Description
			}
		case *pipeline.Pipeline:
			kind, description, params = "pipeline", o.Spec.Description, o.Spec.Params
			for _, w := range o.Spec.Workspaces {
				workspaces[w.Name] = w.Description
			}
		default:
			t.Fatalf("%s is a %T", name, o)
		}
		if want := strings.Join([]string{kind, o.GetName(), o.GetLabels()["app.kubernetes.io/version"],
			o.GetName() + ".yaml"}, "/"); name != want {
			t.Errorf("%s should be %s", name, want)
		}
		for _, a := range []string{"pipelines.minVersion", "categories", "tags", "displayName", "platforms"} {
			if o.GetAnnotations()["tekton.dev/"+a] == "" {
				t.Errorf("%s has no annotation %s", name, a)
			}
		}
		dir := strings.Join(parts[:3], "/")
		readme, err := os.ReadFile(root + "deploy/tekton/" + dir + "/README.md")
		if err != nil {
			t.Fatal(err)
		}
		if description == "" || files[dir+"/samples/run.yaml"] == nil {
			t.Errorf("%s has no description or no sample", name)
		}
		for _, p := range params {
			workspaces[p.Name] = p.Description
		}
		for what, why := range workspaces {
			if why == "" || !strings.Contains(string(readme), "| `"+what+"` | "+why) {
				t.Errorf("%s: README.md does not describe %s", name, what)
			}
		}
	}
}

// The examples that sign, with a key and without, are valid in a run.
func TestTektonSigningExamples(t *testing.T) {
	readme, err := os.ReadFile(root + "deploy/tekton/task/bindery-build-catalog/0.1/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(readme), "```yaml\n")[1:]
	if len(blocks) != 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	for _, b := range blocks {
		b, _, _ = strings.Cut(b, "```")
		const head = "apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata: {generateName: build-}\nspec:\n" +
			"  taskRef: {name: bindery-build-catalog}\n"
		o, err := tekton([]byte(head + "  " + strings.ReplaceAll(strings.TrimSpace(b), "\n", "\n  ") + "\n"))
		if err != nil {
			t.Errorf("%v\n%s", err, b)
			continue
		}
		run := o.(*pipeline.TaskRun)
		w := run.Spec.Workspaces[0]
		if name := run.Spec.Params[0].Name; name != "sign-flags" || w.Name != "signing" {
			t.Errorf("the example is about %s and %s", name, w.Name)
		}
		if keyless := run.Spec.Params[0].Value.ArrayVal[0] == "--sign-keyless"; keyless != (w.Projected != nil) ||
			keyless == (w.Secret != nil) {
			t.Errorf("%v with %+v", run.Spec.Params[0].Value.ArrayVal, w)
		}
	}
}

// Faults are found: an unknown field, a reference to a parameter that is not there, a wrong type.
func TestTektonFaults(t *testing.T) {
	good := string(tektonFiles(t)["task/bindery-build-catalog/0.1/bindery-build-catalog.yaml"])
	if _, err := tekton([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for what, edit := range map[string][2]string{
		"a field":     {"  steps:\n", "  stepss: []\n  steps:\n"},
		"a parameter": {"$(params.image)", "$(params.imag)"},
		"a type":      {"optional: true", "optional: often"},
	} {
		bad := strings.Replace(good, edit[0], edit[1], 1)
		if bad == good {
			t.Fatalf("%s: %q is not there", what, edit[0])
		}
		if _, err := tekton([]byte(bad)); err == nil {
			t.Errorf("%s: the fault is not found", what)
		}
	}
}
