package helmtemplate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"path"
	"time"

	"helm.sh/helm/v3/pkg/chart"
)

// Pack returns an archive of the chart as it was read, the same bytes each time: [Parse] reads it.
func (c *Chart) Pack() ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	err := c.tree.pack(w, c.meta.Name)
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = zipped.Close()
	}
	return out.Bytes(), err
}

func (t *tree) pack(w *tar.Writer, dir string) error {
	for _, f := range t.files {
		if err := writeFile(w, path.Join(dir, f.Name), f); err != nil {
			return err
		}
	}
	for i := range t.subs {
		if err := t.subs[i].pack(w, path.Join(dir, "charts", fmt.Sprintf("%05d", i))); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(w *tar.Writer, name string, f *chart.File) error {
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(f.Data)), ModTime: time.Unix(0, 0)})
	if err == nil {
		_, err = w.Write(f.Data)
	}
	return err
}
