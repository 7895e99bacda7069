package olmv1

import (
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// CatalogImage refuses what spec.source.image.ref of a ClusterCatalog cannot be. All errors are reported. The rules look
// for a tag behind the first colon, which may be that of the registry's port.
func CatalogImage(ref string) error {
	const at = "spec.source.image.ref"
	if utf8.RuneCountInString(ref) > maxImage {
		return fmt.Errorf("%s: Too long: may not be more than %d bytes", at, maxImage)
	}
	digest, end := regexp.MustCompile(`@.*:`).FindString(ref), regexp.MustCompile(`:.*$`).FindString(ref)
	after := 0
	if end != "" {
		after = utf8.RuneCountInString(end[1:])
	}
	matches := func(expression, text string) bool { return regexp.MustCompile(expression).MatchString(text) }
	var errs []error
	for _, rule := range []struct {
		holds   bool
		message string
	}{
		{matches(`^([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])`+
			`((\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(:[0-9]+)?\b`, ref),
			`must start with a valid domain. valid domains must be alphanumeric characters (lowercase and uppercase) ` +
				`separated by the "." character.`},
		{matches(`/[a-z0-9]+`, ref), `a valid name is required. valid names must contain lowercase alphanumeric ` +
			`characters separated only by the ".", "_", "__", "-" characters.`},
		{digest != "" || end != "", "must end with a digest or a tag"},
		{digest != "" || after <= 127, "tag is invalid. the tag must not be more than 127 characters"},
		{digest != "" || end == "" || matches(`:[\w][\w.-]*$`, end), `tag is invalid. valid tags must begin with a word ` +
			`character (alphanumeric + "_") followed by word characters or ".", and "-" characters`},
		{digest == "" || matches(`@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*[:]`, digest),
			`digest algorithm is not valid. valid algorithms must start with an uppercase or lowercase alpha character ` +
				`followed by alphanumeric characters and may contain the "-", "_", "+", and "." characters.`},
		{digest == "" || after >= 32, "digest is not valid. the encoded string must be at least 32 characters"},
		{digest == "" || matches(`:[0-9A-Fa-f]*$`, end),
			"digest is not valid. the encoded string must only contain hex characters (A-F, a-f, 0-9)"},
	} {
		if !rule.holds {
			errs = append(errs, fmt.Errorf("%s: Invalid value: %q: %s", at, ref, rule.message))
		}
	}
	return errors.Join(errs...)
}
