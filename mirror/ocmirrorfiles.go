package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/version"
)

// addOCMirrorFiles adds what oc-mirror looks for: the configuration, its version, and each catalog as it would have
// filtered it.
func (r *run) addOCMirrorFiles(ctx context.Context) error {
	for _, c := range r.found.catalogs {
		if c.digest == "" {
			continue
		}
		if err := r.addFilteredCatalog(ctx, c); err != nil {
			return err
		}
	}
	about, err := json.MarshalIndent(map[string]string{"gitVersion": version.Program(), "gitCommit": ""}, "", "  ")
	if err != nil {
		return err
	}
	if err := r.addFile(ctx, "working-dir/internal/oc-mirror-version.json", append(about, '\n')); err != nil {
		return err
	}
	return r.addFile(ctx, "isc_"+fileTime(r.o.Now), r.o.Set.PublicText())
}

// addFilteredCatalog adds the result of a filter where oc-mirror looks for that of an earlier run: the catalog, and the
// digest of the image with the hash of the filter as its tag. It filters nothing again then. A catalog that is copied as
// it is has them too: oc-mirror asks the source's registry for one without them, and does not reach it behind an air gap.
func (r *run) addFilteredCatalog(ctx context.Context, c *catalog) (err error) {
	if c.asIs {
		same := r.sourceItem(c)
		same.destination.Tag, same.destination.Digest = c.account.FilterHash, ""
		if err := r.copyItem(ctx, same); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp(r.work.Dir(), "filtered-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := declcfg.WriteFS(ctx, dir, declcfg.FormatJSON, c.index.Blobs); err != nil {
		return err
	}
	at := path.Join(workingDir, "operator-catalogs", path.Base(c.op.Catalog.Path), c.digest.Encoded(), "filtered-catalogs",
		c.account.FilterHash)
	if err := r.addFile(ctx, path.Join(at, "digest"), []byte(c.account.DestinationDigest.Encoded())); err != nil {
		return err
	}
	from := os.DirFS(dir)
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f, err := from.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return r.places.output.AddFile(ctx, path.Join(at, "catalog-config", name), info.Size(), f)
	})
}
