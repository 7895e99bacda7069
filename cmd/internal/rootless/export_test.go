//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

package rootless

// What tests of the package use from outside of it.
var NamesStore = namesStore
