package imageset

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// PullName returns the name by which images.Client opens the image: in a registry by its digest if it has one.
func (r Ref) PullName() string {
	switch {
	case r.Transport == OCI:
		return layoutName(r)
	case !r.InRegistry():
		return r.Transport + ":" + r.Path
	case r.Digest != "":
		r.Tag = ""
	}
	return r.String()
}

// layoutName returns the name by which the image of a layout is read: oci:DIR, or oci:DIR:@N for number N of several.
// The images of a layout with several are taken for those of one index: the one with the reference's digest is meant,
// else that for linux/amd64, else the first. What is wrong with a layout is found when it is read by its name.
func layoutName(r Ref) string {
	name := OCI + ":" + r.Path
	data, err := regularfile.Read(filepath.Join(r.Path, "index.json"), MaxConfig)
	if err != nil {
		return name
	}
	var index v1.Index
	if json.Unmarshal(data, &index) != nil || len(index.Manifests) < 2 {
		return name
	}
	at := slices.IndexFunc(index.Manifests,
		func(m v1.Descriptor) bool { return r.Digest != "" && m.Digest == r.Digest })
	if at < 0 {
		at = slices.IndexFunc(index.Manifests, func(m v1.Descriptor) bool {
			return m.Platform != nil && platform.Matches(*m.Platform, v1.Platform{OS: "linux", Architecture: "amd64"})
		})
	}
	return fmt.Sprintf("%s:@%d", name, max(at, 0))
}
