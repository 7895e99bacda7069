//go:build !unix

package migrate_test

import "errors"

func limitFileSize(uint64) error { return errors.ErrUnsupported }
