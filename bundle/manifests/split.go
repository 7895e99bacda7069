package manifests

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/indented"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// File is a file of a directory of manifests. Its name is relative, with slashes.
type File struct {
	Name string
	Text []byte
}

// KustomizationFile is the name of the file that lists the others.
const KustomizationFile = "kustomization.yaml"

const maxFileName = 200 // bytes without the extension

// Files returns a file for each object, YAML or JSON, and a kustomization.yaml that lists them in order. byPhase puts
// them into a directory for each phase, numbered in the order of application. Names have small letters, digits,
// dots and dashes only, differ also where case does not count, and never leave the directory.
func (f Format) Files(phases []Phase, byPhase bool) ([]File, error) {
	var files []File
	var budget indented.Budget
	taken := map[string]bool{KustomizationFile: true}
	for i, p := range phases {
		dir := ""
		if byPhase {
			dir = fmt.Sprintf("%02d-%s/", i+1, p.Name)
		}
		for _, o := range p.Objects {
			name := freeName(dir+fileName(o), taken)
			text, err := fileText(o, f, &budget)
			if err != nil {
				return nil, err
			}
			files = append(files, File{name + extension(f), text})
		}
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.Name
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names,
		"sortOptions": map[string]string{"order": "fifo"},
	})
	if err != nil {
		return nil, err
	}
	return append(files, File{KustomizationFile, text}), nil
}

func extension(f Format) string {
	if f == JSON {
		return ".json"
	}
	return ".yaml"
}

func fileText(o Object, f Format, b *indented.Budget) (text []byte, err error) {
	if f == JSON {
		text, err = indented.EncodeWithin(o.JSON, "    ", b)
	} else {
		text, err = yamlout.AppendWithin(nil, o.JSON, b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	return text, nil
}

// fileName returns the name of an object's file, without the extension.
func fileName(o Object) string {
	safe := func(text string) string {
		text = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
				return r
			}
			return '-'
		}, strings.ToLower(text))
		return strings.Trim(text, ".-")
	}
	name := safe(o.Kind) + "_" + safe(o.Name)
	return name[:min(len(name), maxFileName)]
}

// freeName returns the name, with a number if it is taken, and takes it.
func freeName(name string, taken map[string]bool) string {
	free := name
	for i := 2; taken[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	taken[free] = true
	return free
}
