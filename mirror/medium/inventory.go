package medium

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// InventoryVersion is the version of [Inventory] that is written. Readers refuse later ones.
const InventoryVersion = 1

// Inventory is what a registry has: the small file that goes back across the gap, so that the next archive holds only
// what is missing. It is JSON.
type Inventory struct {
	Version int `json:"version"`
	// Registry is the host and the path below which the repositories are, as in the destination docker://...
	Registry string `json:"registry"`
	// Taken is when it was made.
	Taken time.Time `json:"taken"`
	// Repositories are by their path below Registry, as archives name them.
	Repositories map[string]*InventoryRepository `json:"repositories"`

	keys []key // sorted
	// at are the repositories that have a key, two at most.
	at map[key][]string
}

// InventoryRepository is what one repository has.
type InventoryRepository struct {
	Tags map[string]digest.Digest `json:"tags,omitempty"`
	// Manifests and Blobs are sorted.
	Manifests []digest.Digest `json:"manifests,omitempty"`
	Blobs     []digest.Digest `json:"blobs,omitempty"`
}

// maxInventory is the limit of an inventory in bytes.
const maxInventory = 128 << 20

// Add records what a repository has. It must not be called concurrently, nor after Has.
func (v *Inventory) Add(path string, one *InventoryRepository) {
	if v.Repositories == nil {
		v.Repositories = map[string]*InventoryRepository{}
	}
	v.Repositories[path] = one
}

// index makes the digests quick to find and returns an error for what is none.
func (v *Inventory) index() error {
	v.keys, v.at = nil, map[key][]string{}
	for _, path := range slices.Sorted(maps.Keys(v.Repositories)) {
		one := v.Repositories[path]
		if err := checkPath(path); err != nil {
			return err
		}
		if one == nil {
			return fmt.Errorf("%w: %s is null", fault.ErrInvalid, path)
		}
		for _, d := range slices.Concat(one.Manifests, one.Blobs) {
			k, err := keyOf(d)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			v.keys = append(v.keys, k)
			if have := v.at[k]; len(have) < maxWhere && !slices.Contains(have, path) {
				v.at[k] = append(have, path)
			}
		}
		for tag, d := range one.Tags {
			if _, err := keyOf(d); err != nil || !tagName.MatchString(tag) {
				return fmt.Errorf("%s: %w: tag %.140q of %.140q", path, fault.ErrInvalid, tag, string(d))
			}
		}
	}
	slices.SortFunc(v.keys, compareKeys)
	v.keys = slices.Compact(v.keys)
	return nil
}

// Has tells whether any repository has a blob or manifest. Registries mount blobs from one repository to another; for
// one that does not, the copying reads the blob there. It is safe for concurrent use on an inventory that was read.
func (v *Inventory) Has(d digest.Digest) bool {
	k, err := keyOf(d)
	if err != nil {
		return false
	}
	_, has := slices.BinarySearchFunc(v.keys, k, compareKeys)
	return has
}

// maxWhere is how many repositories of a blob are told: registries are asked for it there one after the other.
const maxWhere = 2

// Where returns repositories that have a blob or manifest, two at most. It is safe for concurrent use on an inventory
// that was read.
func (v *Inventory) Where(d digest.Digest) []string {
	k, err := keyOf(d)
	if err != nil {
		return nil
	}
	return v.at[k]
}

// Write writes the inventory as JSON in one order.
func (v *Inventory) Write(to io.Writer) error {
	v.Version = InventoryVersion
	for _, one := range v.Repositories {
		slices.Sort(one.Manifests)
		one.Manifests = slices.Compact(one.Manifests)
		slices.Sort(one.Blobs)
		one.Blobs = slices.Compact(one.Blobs)
	}
	if err := v.index(); err != nil {
		return err
	}
	enc := json.NewEncoder(to)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}

// ReadInventory reads an inventory of at most 128 MiB.
func ReadInventory(from io.Reader) (*Inventory, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxInventory+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxInventory {
		return nil, fmt.Errorf("inventory: %w: more than %d bytes", fault.ErrLimit, maxInventory)
	}
	v := &Inventory{}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("inventory: %w: %v", fault.ErrInvalid, err)
	}
	if v.Version < 1 || v.Version > InventoryVersion {
		return nil, fmt.Errorf("inventory: %w: version %d, and this program reads 1 to %d", fault.ErrInvalid, v.Version,
			InventoryVersion)
	}
	if err := v.index(); err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	return v, nil
}
