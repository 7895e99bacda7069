package clitest

import (
	"strings"
)

// Set writes the image set: packages of acme/own:v1, each a line, beside what is in [MirrorImageSet]; more are lines of
// the additional images.
func (w *MirrorWorld) Set(packages string, more ...string) {
	w.Helper()
	own := "  - catalog: registry.example.com/acme/own:v1\n    packages:\n"
	for line := range strings.SplitSeq(packages, "\n") {
		own += "    - {" + line + "}\n"
	}
	text := strings.Replace(MirrorImageSet, "  operators:\n", "  operators:\n"+own, 1)
	for _, line := range more {
		text += "  - name: " + line + "\n"
	}
	w.Write("set.yaml", text)
}

// OwnSet writes an image set of the catalog acme/own:v1 alone, with a selection as it stands below the catalog.
func (w *MirrorWorld) OwnSet(name, selection string, images ...string) {
	w.Helper()
	text := "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n" +
		"  - catalog: registry.example.com/acme/own:v1\n    " + selection + "\n"
	if len(images) > 0 {
		text += "  additionalImages:\n"
	}
	for _, image := range images {
		text += "  - name: registry.example.com/" + image + "\n"
	}
	w.Write(name, text)
}
