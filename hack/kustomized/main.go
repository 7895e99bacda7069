// Command kustomized reads a directory as kustomize does, for the acceptance run: it prints kind and name of the object
// in each file that kustomization.yaml lists, and fails if a file is not listed, or has another number of objects.
//
//	kustomized DIR
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: kustomized DIR")
	}
	dir := os.DirFS(args[0])
	var list struct {
		Kind      string   `yaml:"kind"`
		Resources []string `yaml:"resources"`
	}
	if err := read(dir, "kustomization.yaml", &list); err != nil {
		return err
	}
	if list.Kind != "Kustomization" {
		return fmt.Errorf("kustomization.yaml is a %q", list.Kind)
	}
	for _, name := range list.Resources {
		var object struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string `yaml:"kind"`
			Metadata   struct {
				Name string `yaml:"name"`
			} `yaml:"metadata"`
		}
		if err := read(dir, name, &object); err != nil {
			return err
		}
		if object.APIVersion == "" || object.Kind == "" || object.Metadata.Name == "" {
			return fmt.Errorf("%s: no object", name)
		}
		fmt.Fprintln(out, object.Kind, object.Metadata.Name)
	}
	return fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") || name == "kustomization.yaml" {
			return err
		}
		if !slices.Contains(list.Resources, name) {
			return fmt.Errorf("%s is not listed", name)
		}
		return nil
	})
}

// read decodes the only document of a file.
func read(dir fs.FS, name string, into any) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	dec := yaml.NewDecoder(f)
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: more than one document (%v)", name, err)
	}
	return nil
}
