package manifests

import (
	"cmp"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const rbacVersion = "rbac.authorization.k8s.io/v1"

// defaultAccount is the service account of permissions without one. Every namespace has it, so it is not generated.
const defaultAccount = "default"

func (b *Bundle) permissions() []v1alpha1.StrategyDeploymentPermissions {
	return b.csv.Spec.InstallStrategy.StrategySpec.Permissions
}

func (b *Bundle) clusterPermissions() []v1alpha1.StrategyDeploymentPermissions {
	return b.csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions
}

func account(p v1alpha1.StrategyDeploymentPermissions) string {
	return cmp.Or(p.ServiceAccountName, defaultAccount)
}

func (g *generation) addServiceAccounts() error {
	for _, name := range distinct(slices.Concat(g.permissions(), g.clusterPermissions()), account) {
		if name == defaultAccount {
			continue
		}
		err := g.add("v1", "ServiceAccount", g.namespace, name, corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: name},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addRoles adds a role and its binding for each permission in each target namespace. If all namespaces are the target,
// the permissions become cluster roles.
func (g *generation) addRoles() error {
	if g.allNamespaces() {
		return nil
	}
	for _, target := range g.targets {
		for _, p := range g.permissions() {
			if err := g.addRole(target, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// namespacesRule is added to the rules of permissions that become cluster roles because the operator watches all
// namespaces.
var namespacesRule = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"},
	Verbs: []string{"get", "list", "watch"}}

func (g *generation) addClusterRoles() error {
	all := slices.Clone(g.clusterPermissions())
	if g.allNamespaces() {
		for _, p := range g.permissions() {
			p.Rules = append(slices.Clip(p.Rules), namespacesRule)
			all = append(all, p)
		}
	}
	for _, p := range all {
		if err := g.addRole("", p); err != nil {
			return err
		}
	}
	return nil
}

// addRole adds a role with its binding, in a namespace, or for the cluster if that is empty.
func (g *generation) addRole(namespace string, p v1alpha1.StrategyDeploymentPermissions) error {
	name, err := uniqueName(g.csv.Name+"-"+account(p), p)
	if err != nil {
		return err
	}
	kind := "Role"
	if namespace == "" {
		kind = "ClusterRole"
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	role := metav1.TypeMeta{APIVersion: rbacVersion, Kind: kind}
	binding := metav1.TypeMeta{APIVersion: rbacVersion, Kind: kind + "Binding"}
	// A Role and a ClusterRole have the same fields, and so have the bindings.
	err = g.add(rbacVersion, role.Kind, namespace, name, rbacv1.Role{TypeMeta: role, ObjectMeta: meta, Rules: p.Rules})
	if err != nil {
		return err
	}
	return g.add(rbacVersion, binding.Kind, namespace, name, rbacv1.RoleBinding{
		TypeMeta: binding, ObjectMeta: meta,
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: g.namespace, Name: account(p)}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
	})
}
