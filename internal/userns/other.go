//go:build !linux

package userns

// Needed is false where there are no user namespaces.
func Needed() bool { return false }

// SingleID is false where there are no user namespaces.
func SingleID() bool { return false }

// Restricted is empty where there are no user namespaces.
func Restricted() string { return "" }

// Enter does nothing where there are no user namespaces.
func Enter([]byte) (status int, started bool) { return 0, false }
