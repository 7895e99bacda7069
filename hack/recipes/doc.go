// Package recipes checks the recipes for CI systems with the rules of these systems: the tasks and pipelines of Tekton
// with Tekton's own types and validation, the workflows and the action of GitHub with actionlint and the schemas of
// action-validator, the components of GitLab with the schema of gitlab-ci-local. hack/ci/recipes.sh runs it.
//
// It is a module of its own, so that these dependencies are none of bindery's.
package recipes
