package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/olmv1"
)

// namespace is that of CatalogSources.
const namespace = "openshift-marketplace"

// maxName bounds the names of objects: they become labels and parts of host names.
const maxName = 63

var (
	nameExpr  = lazyregexp.New(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)
	otherExpr = lazyregexp.New(`[^a-z0-9-]`)
)

func (m *maker) addCatalog(c *Copied) {
	image := c.Destination
	if (m.o.PinCatalogs || c.ByDigest) && c.Digest != "" {
		image.Tag, image.Digest = "", c.Digest
	}
	base := m.catalogName(c.Destination)
	name := "cs-" + base
	source := object{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
		"metadata": object{}, "spec": object{}}
	if c.Template != nil {
		source = c.Template.object()
	}
	meta, spec := source["metadata"].(object), source["spec"].(object)
	annotations, _ := meta["annotations"].(object)
	if annotations == nil {
		annotations = object{}
	}
	maps.Copy(annotations, m.annotations())
	meta["annotations"], meta["name"], meta["namespace"] = annotations, name, namespace
	spec["image"], spec["sourceType"] = image.Name(), "grpc"
	m.add(name+".yaml", m.text(source))

	name = "cc-" + base
	if err := olmv1.CatalogImage(image.Name()); err != nil {
		how := ""
		if strings.Contains(err.Error(), "tag is invalid") {
			how = "; by its digest the image has a name that is taken (--pin-catalogs)"
		}
		m.warn(fmt.Sprintf("%s.yaml: an API server refuses the ClusterCatalog: %v%s", name, err, how))
	}
	m.add(name+".yaml", m.text(object{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
		"metadata": object{"name": name, "annotations": m.annotations()},
		"spec":     object{"priority": 0, "source": object{"type": "Image", "image": object{"ref": image.Name()}}}}))
}

// catalogName returns the name of a catalog's objects without their prefix: the last part of the path and the beginning
// of the tag. A name that is too long, has other characters or is taken gets a hash of the destination.
func (m *maker) catalogName(destination imageset.Ref) string {
	const suffix, prefix = 12, "cs-"
	tag := destination.Tag
	switch {
	case tag == "" && destination.Digest != "":
		tag = destination.Digest.Encoded()
	case tag == "":
		tag = "0"
	}
	tag = otherExpr().ReplaceAllString(strings.ToLower(tag[:min(len(tag), suffix)]), "-")
	name := strings.ReplaceAll(path.Base(destination.Path)+"-"+tag, ".", "-")
	if taken := m.names[name]; taken || len(prefix+name) > maxName || !nameExpr().MatchString(prefix+name) {
		sum := sha256.Sum256([]byte(destination.Name()))
		hash := "-" + hex.EncodeToString(sum[:4])
		plain := otherExpr().ReplaceAllString(name, "-")
		plain = strings.Trim(plain[:min(len(plain), maxName-len(prefix)-len(hash))], "-")
		if taken {
			m.warn(fmt.Sprintf("two catalogs would have objects of the name cs-%s: those of %s are called cs-%s", name,
				destination.Name(), plain+hash))
		}
		name = plain + hash
	}
	m.names[name] = true
	return name
}
