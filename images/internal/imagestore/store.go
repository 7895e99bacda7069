//go:build linux && !nobuildah && (!cgo || exclude_graphdriver_btrfs)

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
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/userns"
)

// Store is an open store of images that podman, buildah and CRI-O share (containers-storage(7)). It must be released:
// the overlay driver has a mount while it is open.
type Store struct {
	storage.Store
	once sync.Once
}

// heldStores counts the users of each store: the library has one object for all, which Shutdown ends.
var heldStores = struct {
	sync.Mutex
	count map[storage.Store]int
}{count: map[storage.Store]int{}}

// Open opens the store at a place, or the user's own store if it is empty. It waits for locks of other processes until
// the context ends.
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
	// The library cannot cancel waiting for a lock.
	go func() {
		var o opened
		o.err = guard.Call(func() (err error) { o.store, err = s.open(); return err })
		done <- o
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
		o = storage.StoreOptions{GraphDriverName: s.driver, GraphRoot: s.root, RunRoot: s.runRoot,
			GraphDriverOptions: s.options}
	}
	if o.GraphDriverName == "" && len(o.GraphDriverPriority) == 0 {
		o.GraphDriverName = priorDriver(o.GraphRoot)
	}
	if userns.SingleID() {
		// The user namespace has one ID: files with other owners belong to the user.
		o.GraphDriverOptions = append(slices.Clone(o.GraphDriverOptions), "overlay.ignore_chown_errors=true",
			"vfs.ignore_chown_errors=true")
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

// checkFiles returns an error for lists of a store that would block the library or fill the memory.
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

// priorDriver returns "vfs" for a store that has been used only with that driver, which older releases of podman choose
// for unprivileged users; else it returns nothing. The library would ignore the images there and begin a second store
// in that place.
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

// Release closes the store after its last user. It may be called again.
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
			err = nil // a container is running
		}
	})
	return err
}

// storeAllowed returns a clear error if the user lacks the rights for a store.
func storeAllowed() error {
	if !userns.Needed() {
		return nil
	}
	err := userns.Err()
	switch {
	case err == nil && !userns.Started():
		err = errors.New(
			"only root can use it without a user namespace, which is made where the command line names " +
				"containers-storage: or --load; otherwise start the program with \"podman unshare\"")
	case err == nil:
		err = errors.New("the user namespace gives no rights" + restricted())
	case os.Geteuid() == 0:
		return nil // root without the right to mount can use some stores
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

func restricted() string {
	if reason := userns.Restricted(); reason != "" {
		return ": " + reason
	}
	return ""
}

// storeError adds the cause to an error of opening a store.
func storeError(err error) error {
	if errors.Is(err, os.ErrPermission) && userns.Started() {
		return fmt.Errorf("%w: %w%s", ErrStore, err, restricted())
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}
