// Package redact removes credentials from printed and logged texts.
package redact

import "regexp"

// Error returns the error with user information of URLs and values of Authorization headers removed from its text.
// errors.Is and errors.As still find the errors that it wraps.
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

// Patterns of credentials.
var (
	inURL = regexp.MustCompile(`://[^/@\s"']*@`)
	// Image names without a scheme: USER:PASSWORD@HOST/..., and not TAG@DIGEST.
	inName      = regexp.MustCompile(`(^|[\s"'])[^/@:\s"']+:[^/@\s"']+@([^/@\s"']+/)`)
	inHeader    = regexp.MustCompile(`(?i)\b(basic|bearer)\s+[A-Za-z0-9+/=._~-]{8,}`)
	inParameter = regexp.MustCompile(`(?i)\b(password|identitytoken|refresh_token|access_token|token)=[^&\s"']+`)
)

// Names removes users and passwords from image names in a text and changes nothing else.
func Names(text string) string {
	return inName.ReplaceAllString(inURL.ReplaceAllString(text, "://***@"), "${1}***@$2")
}

// Text removes everything that looks like credentials from a name or a message.
func Text(text string) string {
	text = Names(text)
	text = inHeader.ReplaceAllString(text, "$1 ***")
	return inParameter.ReplaceAllString(text, "$1=***")
}
