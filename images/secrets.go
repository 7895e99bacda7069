package images

import "regexp"

// withoutSecrets is the error with a text in which no user information of a URL and no value of an Authorization header
// is left. The errors below it can still be told apart with errors.Is and errors.As.
func withoutSecrets(err error) error {
	if err == nil {
		return nil
	}
	if _, done := err.(*redacted); done {
		return err
	}
	text := err.Error()
	clean := redact(text)
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

// WithoutCredentials replaces what looks like credentials in a name or a message.
func WithoutCredentials(text string) string { return redact(text) }

// What redact looks for.
var (
	inURL = regexp.MustCompile(`://[^/@\s"']*@`)
	// A name without a scheme: USER:PASSWORD@HOST/..., and not TAG@DIGEST.
	inName      = regexp.MustCompile(`(^|[\s"'])[^/@:\s"']+:[^/@\s"']+@([^/@\s"']+/)`)
	inHeader    = regexp.MustCompile(`(?i)\b(basic|bearer)\s+[A-Za-z0-9+/=._~-]{8,}`)
	inParameter = regexp.MustCompile(`(?i)\b(password|identitytoken|refresh_token|access_token|token)=[^&\s"']+`)
)

// NamesWithoutCredentials is text without the users and passwords of names of images in it. Everything else stays.
func NamesWithoutCredentials(text string) string {
	return inName.ReplaceAllString(inURL.ReplaceAllString(text, "://***@"), "${1}***@$2")
}

func redact(text string) string {
	text = NamesWithoutCredentials(text)
	text = inHeader.ReplaceAllString(text, "$1 ***")
	return inParameter.ReplaceAllString(text, "$1=***")
}
