//go:build !linux || nobuildah || (cgo && !exclude_graphdriver_btrfs)

package imagestore

// PolicyNames returns nothing: this program has no stores.
func PolicyNames(Name) (identity string, namespaces []string) { return "", nil }
