package registry

import "errors"

// ErrPlainHTTP is the error for a registry without TLS if plain HTTP is not allowed.
var ErrPlainHTTP = errors.New("does not speak TLS, and plain HTTP was not asked for")
