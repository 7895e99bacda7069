// Package grouping decides which packages of a catalog share a layer, if there are more packages than layers: by a rule
// on names and sizes, or as an earlier image has them. docs/explain/layers.md explains the rules and has the
// measurements.
package grouping
