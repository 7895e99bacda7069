package bundlecheck

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"path"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// Limits of Kubernetes, in bytes.
const (
	// maxConfigMap is the maximum content of a ConfigMap, and so of a bundle that OLM unpacks to one.
	maxConfigMap = 1 << 20
	// maxObject is the maximum size of one object: etcd's request limit.
	maxObject = 3 << 19
	// maxAnnotations is the maximum total size of one object's annotations, keys and values.
	maxAnnotations = 256 << 10
)

// Size is the size of a bundle's manifests in the ConfigMap that OLM unpacks it to, in bytes.
type Size struct {
	// Plain is the total size of the files, Encoded that of their compressed and base64-encoded forms, which OLM stores
	// since version 0.19.
	Plain   int64 `json:"plain"`
	Encoded int64 `json:"encoded"`
	// Limit is the maximum of Encoded.
	Limit int64 `json:"limit"`
}

// sizes checks the bundle as a whole and each object against the limits of Kubernetes.
func (r *run) sizes() {
	r.size.Limit = maxConfigMap
	var n counter
	z := gzip.NewWriter(&n)
	// Only the manifests count. Of the metadata OLM copies the annotations alone, as annotations of the ConfigMap.
	for _, e := range r.list(r.b.ManifestsDir) {
		if e.IsDir() {
			continue
		}
		name := path.Join(r.b.ManifestsDir, e.Name())
		data, err := bundlefs.ReadFile(r.fsys, name)
		if err != nil {
			r.fail(bundle.RuleFile, inFile(name), "%v", err)
			continue
		}
		r.size.Plain += int64(len(data))
		if r.o.SDK && r.size.Plain < maxConfigMap/2 {
			continue // they fit, however they are compressed, and the size is not reported
		}
		n = 0
		z.Reset(&n)
		_, _ = z.Write(data) // writing to a counter cannot fail
		_ = z.Close()        // nor can closing it
		r.size.Encoded += int64(base64.StdEncoding.EncodedLen(int(n)))
		if r.ctx.Err() != nil {
			return
		}
	}
	switch root := inFile(r.b.ManifestsDir); {
	case r.size.Encoded > maxConfigMap:
		r.fail("configmap-size", root,
			"bundle files exceeded %d bytes limit: OLM cannot unpack the bundle, whose files take %d bytes "+
				"compressed and %d plain",
			int64(maxConfigMap), r.size.Encoded, r.size.Plain)
	case r.size.Encoded > maxConfigMap*85/100:
		r.warn("configmap-size", root,
			"the bundle's files take %d bytes compressed, and OLM cannot unpack more than %d", r.size.Encoded,
			int64(maxConfigMap))
	}
	for _, o := range r.b.Objects {
		r.objectSize(o)
	}
}

func (r *run) objectSize(o bundle.Object) {
	if n := len(o.JSON); n > maxObject {
		r.fail("object-size", placeIn(o), "%s %q takes %d bytes, and no cluster takes an object of more than %d", o.Kind,
			o.Name, n, int64(maxObject))
	}
	if len(o.JSON) <= maxAnnotations {
		return // its annotations are smaller than the object
	}
	var v struct {
		Metadata struct{ Annotations map[string]string }
	}
	if json.Unmarshal(o.JSON, &v) != nil {
		return // reported elsewhere
	}
	sum := 0
	for key, value := range v.Metadata.Annotations {
		sum += len(key) + len(value)
	}
	if sum > maxAnnotations {
		r.fail("annotations-size", placeIn(o, "metadata", "annotations"),
			"the annotations of %s %q take %d bytes, and no cluster takes more than %d", o.Kind, o.Name, sum,
			int64(maxAnnotations))
	}
}

// counter counts the bytes written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
