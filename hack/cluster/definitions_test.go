package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/openshift/api/config"
	_ "github.com/operator-framework/api/crds"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// definitions are the CustomResourceDefinitions that clusters have whose users apply objects of the program, as they are
// published: files of Go modules, and for OLM v1 files of this directory.
var definitions = map[string][]string{
	"":                                  {"testdata/*.yaml"},
	"github.com/operator-framework/api": {"crds/*.yaml"},
	"github.com/openshift/api": {
		"payload-manifests/crds/*_imagedigestmirrorsets.crd.yaml",
		"payload-manifests/crds/*_imagetagmirrorsets.crd.yaml",
		"payload-manifests/crds/*_imagecontentsourcepolicies.crd.yaml",
		"console/v1/zz_generated.crd-manifests/*.crd.yaml",
	},
	"github.com/cert-manager/cert-manager": {"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml"},
	"github.com/prometheus-operator/prometheus-operator": {
		"example/prometheus-operator-crd/*_servicemonitors.yaml",
		"example/prometheus-operator-crd/*_podmonitors.yaml",
		"example/prometheus-operator-crd/*_prometheusrules.yaml",
	},
}

// define applies the definitions, and waits until the server knows their kinds.
func (s *server) define(ctx context.Context) error {
	var made []*unstructured.Unstructured
	for module, patterns := range definitions {
		dir := "."
		if module != "" {
			out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
			if err != nil {
				return fmt.Errorf("%s: %w", module, err)
			}
			dir = strings.TrimSpace(string(out))
		}
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(files) == 0 {
				return fmt.Errorf("%s has no %s: %w", dir, pattern, err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				objects, err := decode(text)
				if err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
				for _, o := range objects {
					if _, err := s.create(ctx, o, "", false); err != nil && !apierrors.IsAlreadyExists(err) {
						return fmt.Errorf("%s: %w", file, err)
					}
					made = append(made, o)
				}
			}
		}
	}
	return within(startTime, func(ctx context.Context) error {
		s.mapper.Reset()
		for _, o := range made {
			r, err := s.resource(o, "")
			if err != nil {
				return err
			}
			there, err := r.Get(ctx, o.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !established(there) {
				return errors.New(o.GetName() + " is not established")
			}
		}
		return s.known(ctx, made)
	})
}

// established tells whether the server serves the kind of a definition.
func established(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

// known lists the objects of each defined kind, which fails until the server serves it.
func (s *server) known(ctx context.Context, made []*unstructured.Unstructured) error {
	for _, o := range made {
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			v, ok := v.(map[string]any)
			if !ok || v["served"] != true {
				continue
			}
			one := &unstructured.Unstructured{}
			one.SetAPIVersion(group + "/" + v["name"].(string))
			one.SetKind(kind)
			r, err := s.resource(one, "default")
			if err != nil {
				return err
			}
			wait, cancel := context.WithTimeout(ctx, 10*time.Second)
			_, err = r.List(wait, metav1.ListOptions{Limit: 1})
			cancel()
			if err != nil {
				return fmt.Errorf("%s: %w", o.GetName(), err)
			}
		}
	}
	return nil
}
