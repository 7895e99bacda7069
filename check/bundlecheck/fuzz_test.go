package bundlecheck_test

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// ofServer are the rules of what the API server refuses of the manifests that OLM v1 makes.
var ofServer = []string{"olmv1.api-invalid", "olmv1.api-version", "olmv1.crd-v1beta1"}

// No bundle makes the rules panic; what is installable has manifests, and what OLM v1 itself refuses has none.
func FuzzRules(f *testing.F) {
	f.Add([]byte(goodCSV), []byte(goodCRD), []byte(goodAnnotations), []byte("properties: [{type: a, value: 1}]"))
	f.Add([]byte("kind: ClusterServiceVersion\nspec: {install: {spec: {deployments: [null]}}, relatedImages: [1]}"),
		[]byte("kind: List\nitems: [{kind: A}]"), []byte("annotations: {a: 1}"), []byte("properties: 5"))
	f.Add([]byte("{\"apiVersion\":\"operators.coreos.com/v1alpha1\",\"kind\":\"ClusterServiceVersion\",\"metadata\":{\"annotations\":{\"a\":1}}}"), []byte("a: &a [*a]"), []byte("annotations: &a {b: *a}"), []byte("[]"))
	f.Fuzz(func(t *testing.T, csv, other, annotations, properties []byte) {
		fsys := fstest.MapFS{"manifests/acme.clusterserviceversion.yaml": {Data: csv},
			"manifests/other.yaml":      {Data: other},
			"metadata/annotations.yaml": {Data: annotations}, "metadata/properties.yaml": {Data: properties}}
		b, err := bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
		if !bundlecheck.IsRead(b, err) {
			return
		}
		o := rules.Options{Data: conformaData(t, ""),
			Profiles: []rules.Profile{rules.OPM, rules.OLMv1, rules.Conforma, rules.Community}}
		r, err := rules.NewRun(o, bundlecheck.BundleRules())
		if err != nil {
			t.Fatal(err)
		}
		s := bundlecheck.Subject{FS: fsys, Bundle: b, Image: &rules.Image{Name: "a/b:v1"},
			Settings: manifests.Settings{InstallNamespace: "install", Certs: manifests.CertManager}}
		if err := bundlecheck.CheckRules(t.Context(), r, s); err != nil {
			t.Fatal(err)
		}
		s.Images()
		report := r.Report("bundle", rules.OnBundle)
		if _, err := json.Marshal(report); err != nil {
			t.Error(err)
		}
		m, err := manifests.Read(fsys)
		if err == nil {
			_, err = m.Manifests(s.Settings)
		}
		// The rules of other profiles would report the same mistakes in place of these.
		o.Profiles = []rules.Profile{rules.OLMv1}
		alone, problem := rules.NewRun(o, bundlecheck.BundleRules())
		if problem != nil {
			t.Fatal(problem)
		}
		if err := bundlecheck.CheckRules(t.Context(), alone, s); err != nil {
			t.Fatal(err)
		}
		report = alone.Report("bundle", rules.OnBundle)
		refused := slices.ContainsFunc(report.Findings, func(found rules.Finding) bool {
			return found.Severity == rules.Error && found.Rule != rules.RuleDependency.ID &&
				!slices.Contains(ofServer, found.Rule)
		})
		if refused != (err != nil) {
			t.Errorf("refused: %v, error: %v\n%+v", refused, err, report.Findings)
		}
	})
}
