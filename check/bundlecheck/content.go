package bundlecheck

import (
	"fmt"
	"path"
	"slices"

	"github.com/operator-bindery/bindery/bundle"
)

// supportedKinds are the kinds that OLM installs from a registry+v1 bundle.
var supportedKinds = []string{
	kindCSV, kindCRD, "Secret", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "ServiceAccount", "Service", "Role",
	"RoleBinding",
	"PrometheusRule", "ServiceMonitor", "PodMonitor", "PodDisruptionBudget", "PriorityClass", "VerticalPodAutoscaler",
	"ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin", "NetworkPolicy",
}

// files checks the files in the two directories.
func (r *run) files() {
	for _, dir := range []string{r.b.ManifestsDir, r.b.MetadataDir} {
		for _, e := range r.list(dir) {
			if e.IsDir() {
				r.fail("sub-directory", inFile(path.Join(dir, e.Name())),
					"a directory within %s/: OLM cannot unpack the bundle", dir)
			}
		}
	}
}

// content checks which objects exist.
func (r *run) content(objects []object) {
	for _, o := range r.b.Objects {
		if o.Kind == "" || slices.Contains(supportedKinds, o.Kind) {
			continue
		}
		if o.First() { // OLM v0 reads no other
			r.fail("kind", placeIn(o, "kind"), "%s is not supported type for registryV1 bundle", o.Kind)
		}
	}
	for _, o := range objects {
		if o.crdBeta != nil {
			r.warn("crd-v1beta1", placeIn(o.Object, "apiVersion"),
				"GroupVersionKind %s, Kind=%s was deprecated in Kubernetes 1.16+, removed in 1.22: clusters since "+
					"then refuse it; use %s", crdVersionV1beta1, kindCRD, crdVersion)
		}
	}
	if r.b.MediaType != bundle.RegistryV1 && r.b.CSV == nil { // otherwise it was reported when the bundle was read
		r.fail(bundle.RuleCSVMissing, inFile(r.b.ManifestsDir), "no csv in bundle: there is no ClusterServiceVersion")
	}
	r.ownedCRDs(objects)
}

// crdKey is a version of a custom resource, as a ClusterServiceVersion names it.
type crdKey struct{ name, version, kind string }

func (k crdKey) String() string { return k.name + "/" + k.version }

// ownedCRDs compares the definitions in the manifests with those that the ClusterServiceVersion owns.
func (r *run) ownedCRDs(objects []object) {
	present := map[crdKey]bundle.Object{}
	versions := map[string][]string{} // by name
	var order []crdKey
	for _, o := range objects {
		for _, key := range crdKeys(o) {
			if other, ok := present[key]; ok {
				r.fail("crd-twice", placeIn(o.Object), "duplicate CRD %q in bundle: it is in %s too", key, other.File)
				continue
			}
			present[key] = o.Object
			order = append(order, key)
			versions[key.name] = append(versions[key.name], key.version)
		}
	}
	i := slices.IndexFunc(objects, func(o object) bool { return o.csv != nil })
	if i < 0 {
		return
	}
	csv := objects[i].csv
	owned := map[string]bool{} // by name
	for n, d := range csv.Spec.CustomResourceDefinitions.Owned {
		key := crdKey{d.Name, d.Version, d.Kind}
		if _, ok := present[key]; ok {
			owned[key.name] = true
			continue
		}
		more := ""
		if v := versions[key.name]; len(v) > 0 {
			more = fmt.Sprintf(": there is a definition %s of versions %s", d.Name, quoted(v))
			if slices.Contains(v, d.Version) {
				more += ", whose kind is not " + d.Kind
			}
		} else if file := r.laterDocument(d.Name); file != "" {
			more = ": it is not the first document of " + file
		}
		r.addFinding(finding{
			Problem: bundle.Problem{Severity: bundle.SeverityError, Rule: "crd-missing",
				Message: fmt.Sprintf("owned CRD %s not found in bundle %q%s", key, csv.Name, more)},
			opm:   fmt.Sprintf("Error: Value %s: owned CRD %s not found in bundle %q", key, key, csv.Name),
			place: placeIn(objects[i].Object, "spec", "customresourcedefinitions", "owned", n),
		})
	}
	for _, key := range order {
		if owned[key.name] { // other versions of a definition need no owner
			continue
		}
		f := finding{place: placeIn(present[key], "metadata", "name"), Problem: bundle.Problem{Severity: bundle.SeverityWarning,
			Rule: "crd-not-owned", Message: fmt.Sprintf("CRD %s is present in bundle %q but not defined in CSV", key, csv.Name)}}
		if r.o.SDK {
			f.Severity = bundle.SeverityError
		}
		r.addFinding(f)
	}
}

// laterDocument returns the file in which a definition is not the first document.
func (r *run) laterDocument(name string) string {
	for _, o := range r.b.Objects {
		if !o.First() && o.Kind == kindCRD && o.Name == name {
			return o.File
		}
	}
	return ""
}

// crdKeys returns the versions that a definition defines.
func crdKeys(o object) (keys []crdKey) {
	switch {
	case o.crd != nil:
		for _, v := range o.crd.Spec.Versions {
			keys = append(keys, crdKey{o.crd.Name, v.Name, o.crd.Spec.Names.Kind})
		}
	case o.crdBeta != nil:
		if len(o.crdBeta.Spec.Versions) == 0 {
			return []crdKey{{o.crdBeta.Name, o.crdBeta.Spec.Version, o.crdBeta.Spec.Names.Kind}}
		}
		for _, v := range o.crdBeta.Spec.Versions {
			keys = append(keys, crdKey{o.crdBeta.Name, v.Name, o.crdBeta.Spec.Names.Kind})
		}
	}
	return keys
}
