//go:build linux && !nobuildah

package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"go.podman.io/storage"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/userns"
)

// Store is an open store of images that podman, buildah and CRI-O share (containers-storage(7)). It must be released:
// the driver for overlays keeps a mount as long as it is open.
type Store struct {
	storage.Store
	once sync.Once
}

// heldStores counts who has a store open: the library has one object for a store, which ends for all when it is shut down.
var heldStores = struct {
	sync.Mutex
	count map[storage.Store]int
}{count: map[storage.Store]int{}}

// Open opens the store at a place; that of the user where the place is empty. It waits while another process has the
// store locked, until the context ends.
func Open(ctx context.Context, spec string) (*Store, error) {
	s, err := parseSpec(spec)
	if err != nil {
		return nil, err
	}
	if err := storeAllowed(); err != nil {
		return nil, err
	}
	type opened struct {
		store *Store
		err   error
	}
	done := make(chan opened, 1)
	// The library waits for locks whatever happens.
	go func() {
		store, err := s.open()
		done <- opened{store, err}
	}()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, storeError(o.err)
		}
		return o.store, nil
	case <-ctx.Done():
		go func() {
			if o := <-done; o.store != nil {
				o.store.Release()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// open opens the store and counts it.
func (s spec) open() (*Store, error) {
	heldStores.Lock()
	defer heldStores.Unlock()
	o, err := storage.DefaultStoreOptions()
	if err != nil {
		return nil, err
	}
	if s.root != "" {
		o = storage.StoreOptions{GraphDriverName: s.driver, GraphRoot: s.root, RunRoot: s.runRoot, GraphDriverOptions: s.options}
	}
	if o.GraphDriverName == "" && len(o.GraphDriverPriority) == 0 {
		o.GraphDriverName = priorDriver(o.GraphRoot)
	}
	if userns.SingleID() {
		// Nobody else has an identity in the namespace: files of layers with other owners belong to the user.
		o.GraphDriverOptions = append(slices.Clone(o.GraphDriverOptions), "overlay.ignore_chown_errors=true", "vfs.ignore_chown_errors=true")
	}
	if err := checkFiles(o.GraphRoot, o.RunRoot); err != nil {
		return nil, err
	}
	store, err := storage.GetStore(o)
	if err != nil {
		return nil, err
	}
	heldStores.count[store]++
	return &Store{Store: store}, nil
}

// maxStoreFile is the largest list of a store in bytes.
const maxStoreFile = 256 << 20

// checkFiles refuses lists of a store that would hold the library up or fill the memory.
func checkFiles(roots ...string) error {
	for _, root := range roots {
		for _, pattern := range []string{"*-images/images.json", "*-layers/*.json", "*-containers/*.json"} {
			names, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil {
				return err
			}
			for _, name := range names {
				switch info, err := os.Stat(name); {
				case errors.Is(err, fs.ErrNotExist):
				case err != nil:
					return err
				case !info.Mode().IsRegular():
					return fmt.Errorf("%w: %s is not a regular file", fault.ErrInvalid, name)
				case info.Size() > maxStoreFile:
					return fmt.Errorf("%w: %s has more than %d bytes", fault.ErrLimit, name, maxStoreFile)
				}
			}
		}
	}
	return nil
}

// priorDriver is "vfs" for a store that has been used with that driver alone, as older releases of podman choose it for ordinary
// users; else it is empty. The library would pass over what is in such a store and begin a second one in the same place.
func priorDriver(root string) string {
	const vfs = "vfs"
	if info, err := os.Stat(filepath.Join(root, vfs)); err != nil || !info.IsDir() {
		return ""
	}
	for _, other := range []string{"overlay", "btrfs", "zfs"} {
		if _, err := os.Lstat(filepath.Join(root, other)); err == nil {
			return ""
		}
	}
	return vfs
}

// Release closes the store when nobody has it any more. Releasing again does nothing.
func (h *Store) Release() (err error) {
	h.once.Do(func() {
		heldStores.Lock()
		defer heldStores.Unlock()
		heldStores.count[h.Store]--
		if heldStores.count[h.Store] > 0 {
			return
		}
		delete(heldStores.count, h.Store)
		_, err = h.Store.Shutdown(false)
		if errors.Is(err, storage.ErrLayerUsedByContainer) {
			err = nil // a container runs, and needs the mounts
		}
	})
	return err
}

// ErrStore is the class of errors about stores of images that cannot be used here.
var ErrStore = errors.New("the store of images cannot be used")

// storeAllowed tells at once what would become an error about some file in the store.
func storeAllowed() error {
	if !userns.Needed() {
		return nil
	}
	err := userns.Err()
	switch {
	case err == nil && !userns.Started():
		err = errors.New("only root can use it without a user namespace, which is made where the command line names containers-storage: or --load; otherwise start the program with \"podman unshare\"")
	case err == nil:
		err = errors.New("the user namespace gives no rights" + restricted())
	case os.Geteuid() == 0:
		return nil // root without the right to mount: there are stores that do without
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

func restricted() string {
	if reason := userns.Restricted(); reason != "" {
		return ": " + reason
	}
	return ""
}

// storeError explains an error of opening a store.
func storeError(err error) error {
	if errors.Is(err, os.ErrPermission) && userns.Started() {
		return fmt.Errorf("%w: %w%s", ErrStore, err, restricted())
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}
