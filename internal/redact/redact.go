// Package redact removes credentials from texts that are printed or logged.
package redact

import "regexp"

// Error returns the error with a text without user information of URLs and values of Authorization headers. The errors
// below it can still be tested for with errors.Is and errors.As.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if _, done := err.(*redacted); done {
		return err
	}
	text := err.Error()
	clean := Text(text)
	if clean == text {
		return err
	}
	return &redacted{text: clean, err: err}
}

type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }

// What the functions look for.
var (
	inURL = regexp.MustCompile(`://[^/@\s"']*@`)
	// A name without a scheme: USER:PASSWORD@HOST/..., and not TAG@DIGEST.
	inName      = regexp.MustCompile(`(^|[\s"'])[^/@:\s"']+:[^/@\s"']+@([^/@\s"']+/)`)
	inHeader    = regexp.MustCompile(`(?i)\b(basic|bearer)\s+[A-Za-z0-9+/=._~-]{8,}`)
	inParameter = regexp.MustCompile(`(?i)\b(password|identitytoken|refresh_token|access_token|token)=[^&\s"']+`)
)

// Names removes users and passwords from names of images in a text. Everything else stays.
func Names(text string) string {
	return inName.ReplaceAllString(inURL.ReplaceAllString(text, "://***@"), "${1}***@$2")
}

// Text replaces what looks like credentials in a name or a message.
func Text(text string) string {
	text = Names(text)
	text = inHeader.ReplaceAllString(text, "$1 ***")
	return inParameter.ReplaceAllString(text, "$1=***")
}
