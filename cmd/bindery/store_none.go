//go:build !linux || nobuildah

package main

// storeHelper is false: there are no stores of images here.
func storeHelper() bool { return false }

// enterStore does nothing: there are no stores of images here.
func enterStore(args, environ []string) (status int, entered bool) { return 0, false }

// logLibraries does nothing: the libraries that are here return errors.
func (p *program) logLibraries() {}

// startForStore does nothing: there are no stores of images here.
func startForStore([]byte) (status int, entered bool) { return 0, false }
