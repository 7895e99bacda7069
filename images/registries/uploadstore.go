package registries

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

const (
	// maxUploads bounds the uploads in a store, and maxUploadText the size of one in bytes.
	maxUploads    = 4096
	maxUploadText = 16 << 10
	// uploadLife is how long an upload is kept: registries purge those that do not go on, most within a week.
	uploadLife = 7 * 24 * time.Hour
)

// UploadStore is an [Uploads] in a directory that only the user can read, since the locations may have secrets of the
// registries. It has a file for each upload, which appears whole. Nothing depends on it: a file that cannot be read or
// written only means that an upload begins again. It is safe for concurrent use, also by several processes.
type UploadStore struct {
	dir string

	mu    sync.Mutex
	count int
}

var _ Uploads = (*UploadStore)(nil)

// storedUpload is the text of a file.
type storedUpload struct {
	Repository string        `json:"repository"`
	Digest     digest.Digest `json:"digest"`
	Location   string        `json:"location"`
}

// NewUploadStore opens a store in a directory, which is made if it is not there. Uploads of more than a week ago are
// removed.
func NewUploadStore(dir string) (*UploadStore, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	s := &UploadStore{dir: dir}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if filepath.Ext(e.Name()) == ".json" && e.Type().IsRegular() && time.Since(info.ModTime()) > uploadLife {
			_ = os.Remove(filepath.Join(dir, e.Name()))
			continue
		}
		s.count++
	}
	return s, nil
}

// file returns the name of the file of an upload.
func (s *UploadStore) file(repository string, d digest.Digest) string {
	sum := sha256.Sum256([]byte(repository + "@" + d.String()))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:])+".json")
}

// Load returns the location of an upload.
func (s *UploadStore) Load(repository string, d digest.Digest) (location string, ok bool) {
	text, err := regularfile.Read(s.file(repository, d), maxUploadText)
	if err != nil {
		return "", false
	}
	var u storedUpload
	if json.Unmarshal(text, &u) != nil || u.Repository != repository || u.Digest != d || u.Location == "" {
		return "", false
	}
	return u.Location, true
}

// Save keeps the location of an upload.
func (s *UploadStore) Save(repository string, d digest.Digest, location string) {
	text, err := json.Marshal(storedUpload{repository, d, location})
	if err != nil || len(text) > maxUploadText {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= maxUploads {
		return
	}
	if atomicfs.WriteFile(s.file(repository, d), text, 0o600) == nil {
		s.count++
	}
}

// Forget removes an upload.
func (s *UploadStore) Forget(repository string, d digest.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if os.Remove(s.file(repository, d)) == nil {
		s.count = max(s.count-1, 0)
	}
}
