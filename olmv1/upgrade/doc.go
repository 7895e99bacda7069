// Package upgrade compares the manifests of two versions of an operator: what applying the new ones in place of the old
// ones changes. Permissions come first, as sets of what each service account may do: names of roles change with their
// rules and say nothing. Of CustomResourceDefinitions the versions and their schemas are compared, with what OLM v1
// refuses of that, of other objects the fields.
package upgrade
