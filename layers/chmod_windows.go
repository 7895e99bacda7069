package layers

import "os"

// chmodReadable does nothing: new files are readable on Windows, and open ones have no mode to set.
func chmodReadable(*os.File) error { return nil }
