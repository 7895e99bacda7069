package render

import (
	"context"
	"errors"
	"iter"
	"os"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render/internal/appregistry"
)

// hasManifests reports whether a directory holds package manifests.
func hasManifests(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	return appregistry.Is(root.FS())
}

// openManifests reads and validates a directory with package manifests.
func openManifests(ctx context.Context, dir string, o *Options) (*appregistry.Tree, error) {
	fsys, err := declcfg.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	return appregistry.Open(ctx, fsys, appregistry.Options{
		KeepGoing: o.KeepGoing, Quarantined: o.account.leaveOut, Warn: o.Warn, Jobs: o.Jobs,
		Image: func(b *bundle.Bundle) (string, error) {
			f, err := o.named(FetchedBundle{Bundle: b})
			return f.Image, err
		},
	})
}

// RenderManifests renders the catalog of a directory with package manifests, without determining its kind first.
// Everything is validated before the first blob.
func (o Options) RenderManifests(ctx context.Context, dir string) iter.Seq2[declcfg.Blob, error] {
	if o.account = o.Account; o.account == nil {
		o.account = &Account{}
	}
	return func(yield func(declcfg.Blob, error) bool) {
		for b, err := range manifests(ctx, dir, &o) {
			if err == nil {
				err = finish(b, o.Level)
			}
			if err != nil {
				yield(nil, &ReferenceError{dir, err})
				return
			}
			if !yield(b, nil) {
				return
			}
		}
	}
}

func manifests(ctx context.Context, dir string, o *Options) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		tree, err := openManifests(ctx, dir, o)
		if err != nil {
			yield(nil, err)
			return
		}
		for b, err := range tree.Blobs(ctx) {
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// manifestBundles calls use for each bundle of a directory with package manifests. With [Options.KeepGoing] the error
// reports the packages that were left out.
func manifestBundles(ctx context.Context, dir string, o *Options, use func(FetchedBundle) error) error {
	var broken []error
	also := *o
	also.account = &Account{}
	tree, err := openManifests(ctx, dir, &also)
	for _, left := range also.account.LeftOut {
		broken = append(broken, left.Reason)
	}
	if err != nil {
		return errors.Join(append(broken, err)...)
	}
	for b, err := range tree.Bundles(ctx) {
		if err != nil {
			return err
		}
		f, err := o.named(FetchedBundle{Reference: dir, Bundle: b, PackageManifests: true})
		if err != nil {
			return err
		}
		if err := use(f); err != nil {
			return err
		}
	}
	return errors.Join(broken...)
}
