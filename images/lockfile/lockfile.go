// Package lockfile has the digests of the images that a program used, in a file, so that it reads the same ones again.
package lockfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/filelock"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/verify"
)

const (
	lockVersion  = 1
	maxLockFile  = 64 << 20
	maxLockName  = 4 << 10
	lockSaveWait = time.Minute
)

// Lock is a file with the digest of each image that was used, so that a build can be repeated:
//
//	{"version":1,"images":{"quay.io/acme/a:v1":"sha256:..."}}
//
// The digest is that of the index or manifest. References are as given, without "docker://".
//
// A nil *Lock is empty and records nothing. Methods are safe for concurrent use.
type Lock struct {
	path string
	// fixed is set for what is read and never written: a link, a pipe.
	fixed bool

	mu     sync.Mutex
	images map[string]digest.Digest // from the file, and recorded
	fresh  map[string]digest.Digest // recorded, not saved
}

// lockContent is the content of the file.
type lockContent struct {
	// Schema is for editors, and kept when the file is written again.
	Schema  string                   `json:"$schema,omitempty"`
	Version int                      `json:"version"`
	Images  map[string]digest.Digest `json:"images"`
}

// Open reads a lock file, which need not exist. It fails with [fault.ErrInvalid] if the file is not one of version 1,
// and names the field. A link or a pipe is read as well, and not written: such a lock must have all images.
func Open(ctx context.Context, path string) (*Lock, error) {
	l := &Lock{path: filepath.Clean(path), fresh: map[string]digest.Digest{}}
	var read *lockContent
	info, err := os.Lstat(l.path)
	if l.fixed = err == nil && !info.Mode().IsRegular(); l.fixed {
		var text []byte
		if text, err = regularfile.ReadNamed(ctx, path, maxLockFile); err == nil {
			read, err = lockIn(l.path, text)
		}
	} else {
		read, err = readLock(l.path)
	}
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	l.images = read.Images
	return l, nil
}

// readLock reads a lock file. The images are never nil.
func readLock(path string) (*lockContent, error) {
	empty := &lockContent{Version: lockVersion, Images: map[string]digest.Digest{}}
	info, err := layouts.LstatOutput(path)
	if info == nil || err != nil {
		return empty, err
	}
	text, err := regularfile.Read(path, maxLockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return nil, err
	}
	return lockIn(path, text)
}

// lockIn reads the text of a lock file.
func lockIn(path string, text []byte) (*lockContent, error) {
	read, err := parseLock(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, fault.ErrInvalid, err)
	}
	return read, nil
}

func parseLock(text []byte) (*lockContent, error) {
	// The version is checked first, since other versions may have other fields.
	var head struct {
		Version *int `json:"version"`
	}
	// Names that stand twice are found below, where the first unknown one ends the reading: those of millions take memory.
	if err := jsonv2.Unmarshal(text, &head, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, lockError(text, err)
	}
	switch {
	case head.Version == nil:
		return nil, errors.New("version: missing")
	case *head.Version != lockVersion:
		return nil, fmt.Errorf("version: unknown version %d, expected %d", *head.Version, lockVersion)
	}
	var content lockContent
	if err := jsonv2.Unmarshal(text, &content, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, lockError(text, err)
	}
	for _, name := range slices.Sorted(maps.Keys(content.Images)) {
		if err := checkLocked(name, content.Images[name]); err != nil {
			return nil, fmt.Errorf("images[%.300q]: %w", name, err)
		}
	}
	if content.Images == nil {
		content.Images = map[string]digest.Digest{}
	}
	return &content, nil
}

// lockError returns an error that names the place in the file.
func lockError(text []byte, err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		line := 1 + bytes.Count(text[:min(int(syntax.ByteOffset), len(text))], []byte("\n"))
		if syntax.JSONPointer != "" {
			return fmt.Errorf("line %d: %s: %w", line, lockField(syntax.JSONPointer), syntax.Err)
		}
		return fmt.Errorf("line %d: not JSON: %w", line, syntax.Err)
	}
	var semantic *jsonv2.SemanticError
	if errors.As(err, &semantic) {
		what := "has the wrong type"
		switch {
		case errors.Is(semantic.Err, jsonv2.ErrUnknownName):
			what = "unknown field"
		case semantic.JSONKind != 0:
			what = fmt.Sprintf("is of the wrong type: %s", semantic.JSONKind)
		}
		return fmt.Errorf("%s: %s", lockField(semantic.JSONPointer), what)
	}
	return err
}

// lockField writes a place in the file as images["quay.io/acme/a:v1"].
func lockField(p jsontext.Pointer) string {
	var b strings.Builder
	for name := range p.Tokens() {
		if b.Len() == 0 {
			fmt.Fprintf(&b, "%.80s", name)
			continue
		}
		fmt.Fprintf(&b, "[%.300q]", name)
	}
	if b.Len() == 0 {
		return "the file"
	}
	return b.String()
}

func checkLocked(name string, d digest.Digest) error {
	if name == "" || len(name) > maxLockName {
		return fmt.Errorf("the reference has %d bytes (limit %d)", len(name), maxLockName)
	}
	return verify.Digest(d)
}

// Name returns the name of a reference in the file.
func Name(name string) string { return strings.TrimPrefix(name, string(transport.Docker)+"://") }

// Digest returns the digest of a reference, if the lock has it.
func (l *Lock) Digest(name string) (digest.Digest, bool) {
	if l == nil {
		return "", false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.images[Name(name)]
	return d, ok
}

// Record adds the digest of a reference. It fails with [fault.ErrIntegrity] if the file or this run has another digest for
// it.
func (l *Lock) Record(name string, d digest.Digest) error {
	if l == nil {
		return nil
	}
	name = Name(name)
	if err := checkLocked(name, d); err != nil {
		return fmt.Errorf("lock file %s: %.300q: %w", l.path, name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.images[name]; ok {
		if before != d {
			return l.conflict(name, before, d)
		}
		return nil
	}
	if l.fixed {
		return fmt.Errorf("lock file %s: %w: %.300q is not in it, and a link or a pipe is not written: name the file itself",
			l.path, fault.ErrInvalid, name)
	}
	l.images[name] = d
	l.fresh[name] = d
	return nil
}

func (l *Lock) conflict(name string, before, now digest.Digest) error {
	return fmt.Errorf("lock file %s: %w: %.300q is locked to %s and now is %s", l.path, fault.ErrIntegrity, name,
		before, now)
}

// Save writes the file if there is something new, merged with what other processes have written since it was read. If
// another process has recorded another digest for a reference, the file is unchanged and the error is
// [fault.ErrIntegrity]. The file is replaced by a rename, and its text is a function of the content.
func (l *Lock) Save() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.fresh) == 0 {
		layouts.SweepBeside(l.path) // a run that was killed after the rename has left its stage
		return nil
	}
	if err := l.save(); err != nil {
		return fmt.Errorf("write the lock file: %w", err)
	}
	clear(l.fresh)
	return nil
}

func (l *Lock) save() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockSaveWait)
	defer cancel()
	dir := filepath.Dir(l.path)
	made, err := layouts.Parents(dir)
	defer func() {
		if err != nil {
			layouts.RemoveEmpty(made)
		}
	}()
	defer guard.Recover(&err)
	if err != nil {
		return err
	}
	stage, err := layouts.NewStage(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	lock, err := filelock.LockDir(ctx, dir)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	all, err := readLock(l.path)
	if err != nil {
		return err
	}
	for name, d := range l.fresh {
		if before, ok := all.Images[name]; ok && before != d {
			return l.conflict(name, before, d)
		}
		all.Images[name] = d
	}
	text, err := encodeLock(all)
	if err != nil {
		return err
	}
	if len(text) > maxLockFile {
		return fmt.Errorf("%s: %w: %d images take %d bytes (limit %d): begin another lock file", l.path, fault.ErrLimit,
			len(all.Images), len(text), maxLockFile)
	}
	staged := stage.Join(layouts.StagedFile)
	if err := layouts.WriteSync(staged, text); err != nil {
		return err
	}
	if _, err := layouts.ReplaceFile(staged, l.path, stage.Join("old")); err != nil {
		return err
	}
	for _, d := range made {
		if err := atomicfs.SyncDir(filepath.Dir(d)); err != nil {
			return err
		}
	}
	maps.Copy(l.images, all.Images)
	return nil
}

// encodeLock returns the text of a lock file: sorted, one line for each image, for readable diffs.
func encodeLock(content *lockContent) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(content); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
