package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// watched stands for the namespaces that an operator watches, whose names depend on how it is installed.
const watched = "\x00watched"

const rbacGroup = "rbac.authorization.k8s.io"

// maxInstalled is how many objects a bundle may install for these to be decoded.
const maxInstalled = 10_000

var errInstalls = fmt.Errorf("%w: a bundle installs more than %d objects", fault.ErrLimit, maxInstalled)

// installs returns what the manifests of a bundle install: these, and in place of the ClusterServiceVersion the roles and
// the deployments of that.
func installs(all []manifest) (out []upgrade.Manifest, err error) {
	for i := range all {
		m := &all[i]
		if len(out) > maxInstalled || len(all) > maxInstalled {
			return nil, errInstalls
		}
		if m.kind == "ClusterServiceVersion" {
			if out, err = appendStrategy(out, m.text); err != nil {
				return nil, err
			}
		} else {
			out = append(out, upgrade.Manifest{Object: upgrade.Object{Group: strings.TrimSuffix(path.Dir(m.version), "."), Kind: m.kind,
				Namespace: m.namespace, Name: m.name}, JSON: m.text})
		}
	}
	return out, nil
}

// appendStrategy adds what the install strategy of a ClusterServiceVersion has: each permission as a role that is bound
// to its account, and the deployments.
func appendStrategy(out []upgrade.Manifest, csv []byte) ([]upgrade.Manifest, error) {
	type permission struct {
		Account string          `json:"serviceAccountName"`
		Rules   json.RawMessage `json:"rules"`
	}
	var of struct {
		Spec struct {
			Install struct {
				Spec struct {
					Permissions        []permission `json:"permissions"`
					ClusterPermissions []permission `json:"clusterPermissions"`
					Deployments        []struct {
						Name string          `json:"name"`
						Spec json.RawMessage `json:"spec"`
					} `json:"deployments"`
				} `json:"spec"`
			} `json:"install"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(csv, &of); err != nil {
		return nil, fmt.Errorf("the ClusterServiceVersion cannot be read: %w", err)
	}
	var failed error
	add := func(kind, namespace, name string, content map[string]any) {
		o := upgrade.Object{Group: rbacGroup, Kind: kind, Namespace: namespace, Name: name}
		if kind == "Deployment" {
			o.Group = "apps"
		}
		text, err := json.Marshal(content)
		failed = errors.Join(failed, err)
		out = append(out, upgrade.Manifest{Object: o, JSON: text})
	}
	strategy := of.Spec.Install.Spec
	if len(strategy.Permissions)+len(strategy.ClusterPermissions)+len(strategy.Deployments) > maxInstalled/2 {
		return nil, errInstalls
	}
	addRoles := func(kind, namespace string, permissions []permission) {
		for i, p := range permissions {
			if len(p.Rules) == 0 {
				continue
			}
			name := p.Account + " " + strconv.Itoa(i) // no role in the manifests has such a name
			add(kind, namespace, name, map[string]any{"rules": p.Rules})
			add(kind+"Binding", namespace, name, map[string]any{"roleRef": map[string]any{"kind": kind, "name": name},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": p.Account}}})
		}
	}
	addRoles("Role", watched, strategy.Permissions)
	addRoles("ClusterRole", "", strategy.ClusterPermissions)
	for _, d := range strategy.Deployments {
		if len(d.Spec) > 0 {
			add("Deployment", "", d.Name, map[string]any{"spec": d.Spec})
		}
	}
	return out, failed
}
