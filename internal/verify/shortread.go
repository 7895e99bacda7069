package verify

import "io"

// ShortRead turns the end of a stream that is too short into io.ErrUnexpectedEOF.
func ShortRead(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
