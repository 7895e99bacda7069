package verify

import "io"

// ShortRead replaces io.EOF by io.ErrUnexpectedEOF, for streams that end too early.
func ShortRead(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
