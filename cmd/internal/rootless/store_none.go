//go:build !linux || nobuildah || (cgo && !exclude_graphdriver_btrfs)

package rootless

// StoreHelper returns false: this build has no image stores.
func StoreHelper() bool { return false }

// EnterStore does nothing: this build has no image stores.
func EnterStore(args, environ []string) (status int, entered bool) { return 0, false }

// NamesStore is false: this build has no image stores.
func NamesStore(args, environ []string) bool { return false }

// LogLibraries does nothing: the libraries in this build do not log.
func LogLibraries(func(string)) (stop func()) { return func() {} }

// StartForStore does nothing: this build has no image stores.
func StartForStore([]byte) (status int, entered bool) { return 0, false }
