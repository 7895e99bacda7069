//go:build !linux || nobuildah || (cgo && !exclude_graphdriver_btrfs)

package main

// storeHelper returns false: this build has no image stores.
func storeHelper() bool { return false }

// enterStore does nothing: this build has no image stores.
func enterStore(args, environ []string) (status int, entered bool) { return 0, false }

// logLibraries does nothing: the libraries in this build do not log.
func (p *program) logLibraries() {}

// startForStore does nothing: this build has no image stores.
func startForStore([]byte) (status int, entered bool) { return 0, false }
