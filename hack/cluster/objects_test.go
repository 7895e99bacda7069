package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// decode returns the objects of a stream of YAML or JSON documents; lists are their items.
func decode(text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		switch {
		case len(o.Object) == 0:
		case o.IsList():
			list, err := o.ToList()
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				out = append(out, &list.Items[i])
			}
		default:
			out = append(out, o)
		}
	}
}

// namespace makes a namespace of a test.
func namespace(t *testing.T, name string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(name)
	if _, err := apiserver.create(t.Context(), o, "", false); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// refusals asks the server for each object, which is in the namespace "default" if it names none; other namespaces are made.
func refusals(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	var out []string
	for _, o := range objects {
		if o.GetNamespace() != "" {
			namespace(t, o.GetNamespace())
		}
		_, err := apiserver.create(t.Context(), o, "default", true)
		if err != nil && !(o.GetKind() == "Namespace" && apierrors.IsAlreadyExists(err)) {
			out = append(out, fmt.Sprintf("%s %s %s: %v", o.GetAPIVersion(), o.GetKind(), o.GetName(), err))
		}
	}
	return out
}

// accepted fails the test if the server refuses an object, or there is none of the kinds.
func accepted(t *testing.T, text string, kinds ...string) {
	t.Helper()
	objects, err := decode([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, kind := range kinds {
		there := false
		for _, o := range objects {
			there = there || o.GetKind() == kind
		}
		if !there {
			t.Errorf("no %s is among the %d objects", kind, len(objects))
		}
	}
	for _, r := range refusals(t, objects) {
		t.Error(r)
	}
}

// result is what the program answered.
type result struct {
	out, err string
	status   int
}

// ran runs the program, without the settings of the user.
func ran(t *testing.T, env []string, args ...string) result {
	t.Helper()
	c := exec.Command(bindery, args...)
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	c.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "BINDERY_NO_PROGRESS=true"}, env...)
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

// output runs the program, which must succeed, and returns what it printed.
func output(t *testing.T, args ...string) string {
	t.Helper()
	r := ran(t, nil, args...)
	if r.status != 0 {
		t.Fatalf("bindery %s: status %d\n%s", strings.Join(args, " "), r.status, r.err)
	}
	return r.out
}
