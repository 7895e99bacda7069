package helmtemplate

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// Manifest is one document that a chart renders to.
type Manifest struct {
	// Source is the file of the template, with the names of the charts it is in.
	Source string
	// Content is the document as it was rendered.
	Content string
	// APIVersion, Kind and Name are those of its object; what it has none of is empty.
	APIVersion, Kind, Name string
	// Hooks are the events at which the object is made; without any it is a part of the release.
	Hooks []string
	// CRD says that it is from the directory crds, which is not rendered.
	CRD bool
}

// Test reports whether a manifest is made for tests only.
func (m *Manifest) Test() bool {
	return len(m.Hooks) > 0 && !slices.ContainsFunc(m.Hooks, func(event string) bool { return event != "test" })
}

// separator is what splits documents, see library's releaseutil.SplitManifests.
var separator = lazyregexp.New(`(?:^|\s*\n)---\s*`)

// split returns the documents of a file.
func split(text string) []string {
	var docs []string
	for _, doc := range separator().Split(strings.TrimSpace(text), -1) {
		if doc != "" {
			docs = append(docs, strings.TrimSpace(doc))
		}
	}
	return docs
}

// head is what must be decodable of each document.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   *struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

var hookEvents = words("pre-install post-install pre-delete post-delete pre-upgrade post-upgrade pre-rollback post-rollback test")

// manifests returns the documents of rendered files in the order of installation.
func manifests(ctx context.Context, c *chart.Chart, rendered map[string]string, tests bool) ([]Manifest, error) {
	n := 0
	count := func() error {
		if n++; n > maxManifests {
			return tooMuch("it has more manifests", maxManifests)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	out, err := crds(c, count)
	if err != nil {
		return nil, err
	}
	var objects, hooks []Manifest
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, ".txt") || strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		for _, doc := range split(rendered[name]) {
			if err := count(); err != nil {
				return nil, err
			}
			var h head
			if err := Unmarshal([]byte(doc), &h); err != nil {
				return nil, fmt.Errorf("%w: template %s renders to what is no YAML of an object: %w", errInvalid, name, err)
			}
			m := Manifest{Source: name, Content: doc, APIVersion: h.APIVersion, Kind: h.Kind}
			var events string
			isHook := false
			if h.Metadata != nil {
				m.Name = h.Metadata.Name
				events, isHook = h.Metadata.Annotations["helm.sh/hook"]
			}
			if !isHook {
				objects = append(objects, m)
				continue
			}
			known := true
			for event := range strings.SplitSeq(events, ",") {
				event = strings.ToLower(strings.TrimSpace(event))
				if event == "test-success" {
					event = "test"
				}
				known = known && hookEvents[event]
				m.Hooks = append(m.Hooks, event)
			}
			if known && (tests || !m.Test()) { // Helm makes no object of an unknown hook
				hooks = append(hooks, m)
			}
		}
	}
	slices.SortStableFunc(objects, byKind)
	slices.SortStableFunc(hooks, byKind)
	return slices.Concat(out, objects, hooks), nil
}

// maxManifests is how many manifests a chart may have.
const maxManifests = 100_000

// crds returns the documents in the directories crds, and calls count before each.
func crds(c *chart.Chart, count func() error) ([]Manifest, error) {
	var out []Manifest
	for _, f := range c.Files {
		ext := strings.ToLower(path.Ext(f.Name))
		if !strings.HasPrefix(f.Name, "crds/") || ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}
		for _, doc := range split(string(f.Data)) {
			if err := count(); err != nil {
				return nil, err
			}
			m := Manifest{Source: path.Join(c.ChartFullPath(), f.Name), Content: doc, CRD: true}
			var h head
			if Unmarshal([]byte(doc), &h) == nil {
				m.APIVersion, m.Kind = h.APIVersion, h.Kind
				if h.Metadata != nil {
					m.Name = h.Metadata.Name
				}
			}
			out = append(out, m)
		}
	}
	for _, sub := range c.Dependencies() {
		below, err := crds(sub, count)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// installOrder returns the places of kinds in the order of installation.
var installOrder = sync.OnceValue(func() map[string]int {
	order := map[string]int{}
	for i, kind := range strings.Fields(`PriorityClass Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy
		PodDisruptionBudget ServiceAccount Secret SecretList ConfigMap StorageClass PersistentVolume
		PersistentVolumeClaim CustomResourceDefinition ClusterRole ClusterRoleList ClusterRoleBinding
		ClusterRoleBindingList Role RoleList RoleBinding RoleBindingList Service DaemonSet Pod ReplicationController
		ReplicaSet Deployment HorizontalPodAutoscaler StatefulSet Job CronJob IngressClass Ingress APIService`) {
		order[kind] = i + 1
	}
	return order
})

func byKind(a, b Manifest) int {
	i, j := installOrder()[a.Kind], installOrder()[b.Kind]
	switch {
	case i == 0 && j == 0:
		return strings.Compare(a.Kind, b.Kind)
	case i == 0:
		return 1
	case j == 0:
		return -1
	}
	return i - j
}
