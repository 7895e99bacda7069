package hint

import (
	"fmt"

	"github.com/operator-bindery/bindery/images"
)

// policyHint explains how an image can be accepted that the signature policy refuses; empty if that is no matter of
// configuration.
func policyHint(e *images.PolicyError) string {
	switch {
	case e.Unverified && e.File == "":
		return "name a key with --trusted-key FILE, or a policy with --policy FILE whose requirement for the image " +
			"is sigstoreSigned or signedBy"
	case e.Unverified:
		return fmt.Sprintf("name a key with --trusted-key FILE, or give the image a requirement sigstoreSigned or "+
			"signedBy in %s or in another policy with --policy FILE", e.File)
	case e.SearchOffBy != "":
		return fmt.Sprintf("%s has \"use-sigstore-attachments: false\" for %s, so that signatures attached to images "+
			"are not looked for: set it to true, or name other files with --registries-d DIR", e.SearchOffBy,
			e.SearchOff)
	case e.SearchOff != "":
		return fmt.Sprintf("signatures attached to images are not looked for unless registries.d says so: "+
			"--registries-d DIR, with a file DIR/any.yaml that has the line\n"+
			"docker: {%q: {use-sigstore-attachments: true}}", e.SearchOff)
	}
	return ""
}
