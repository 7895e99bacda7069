// Package olmv1 has what an API server takes in the fields of ClusterExtensions and ClusterCatalogs: the limits,
// patterns and rules of the definitions that operator-controller's repository publishes. The errors have the text of the
// API server, "FIELD: Invalid value: ...". It imports nothing of the project.
package olmv1
