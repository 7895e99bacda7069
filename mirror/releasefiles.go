package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/nolink"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
	"github.com/operator-bindery/bindery/mirror/releases"
	"github.com/operator-bindery/bindery/mirror/releases/signed"
)

// The directories of a workspace with what is known of releases, as oc-mirror has them: graphs, files of release images,
// signatures. resolvedFile has what tags of releases stood for.
const (
	graphsDir     = "hold-release/cincinnati-graph-data"
	signaturesDir = "signatures"
	resolvedFile  = "hold-release/resolved.json"
)

// unsignedFile has the digests of the releases that were asked for without a signature, a line each. It is never read out
// of an archive.
const unsignedFile = "hold-release/.unsigned"

// releaseFiles are the files about releases: those that an archive and the workspace have, and those of this run. It is
// safe for concurrent use.
type releaseFiles struct {
	workspace workdir.Dir // empty in a dry run: nothing is written
	packing   bool        // an archive gets the files
	stored    layered     // what is read
	own       layered     // what is read of the workspace

	mu      sync.Mutex
	written map[string][]byte // for the archive, by the path below the workspace
	kept    map[string]bool   // the files of charts for the archive, which are read in the workspace
}

// newReleaseFiles returns the files of a run; input is the archive that is read, nil if there is none.
func newReleaseFiles(o *Options, input *archive) *releaseFiles {
	f := &releaseFiles{packing: o.Mode == ToDisk, written: map[string][]byte{}}
	if !o.DryRun {
		f.workspace = o.Workspace.files()
	}
	if input != nil {
		if archived, err := fs.Sub(input.reader.Files(), workingDir); err == nil {
			f.stored = append(f.stored, archived)
		}
	}
	if dir := o.Workspace.files(); dir != "" {
		f.own = layered{nolink.FS(dir)}
	}
	f.stored = append(f.stored, f.own)
	return f
}

// layered are file systems of which the first one counts that has a file.
type layered []fs.FS

// Open opens a file.
func (l layered) Open(name string) (fs.File, error) {
	for _, of := range l {
		if f, err := of.Open(name); !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// ReadDir lists a directory of all file systems.
func (l layered) ReadDir(name string) (out []fs.DirEntry, err error) {
	seen := map[string]bool{}
	for _, of := range l {
		entries, err := fs.ReadDir(of, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if !seen[e.Name()] {
				seen[e.Name()] = true
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// put keeps a file of this run, and writes it to the workspace.
func (f *releaseFiles) put(name string, text []byte) error {
	if f.packing {
		f.mu.Lock()
		f.written[name] = text
		f.mu.Unlock()
	}
	if f.workspace == "" {
		return nil
	}
	_, err := f.workspace.Write(text, strings.Split(name, "/")...)
	return err
}

// keep is like put, and does not keep the file in memory. In a dry run it does nothing.
func (f *releaseFiles) keep(name string, text []byte) error {
	if f.workspace == "" {
		return nil
	}
	if f.packing {
		f.mu.Lock()
		if f.kept == nil {
			f.kept = map[string]bool{}
		}
		f.kept[name] = true
		f.mu.Unlock()
	}
	_, err := f.workspace.Write(text, strings.Split(name, "/")...)
	return err
}

// resolved returns the digest that a tag stood for when it was resolved; empty if that is not known.
func (f *releaseFiles) resolved(ref imageset.Ref) digest.Digest {
	d := digest.Digest(readResolved(f.stored)[ref.Name()])
	if d.Validate() != nil {
		return ""
	}
	return d
}

// maxResolved is the limit of the file in bytes.
const maxResolved = 1 << 20

// readResolved reads what tags stood for. A file that cannot be read resolves nothing.
func readResolved(files fs.FS) map[string]string {
	var all map[string]string
	if file, err := files.Open(resolvedFile); err == nil {
		defer file.Close()
		if text, err := io.ReadAll(io.LimitReader(file, maxResolved)); err == nil && json.Unmarshal(text, &all) != nil {
			all = nil
		}
	}
	if all == nil {
		all = map[string]string{}
	}
	return all
}

// resolve remembers what a tag stands for.
func (f *releaseFiles) resolve(ref imageset.Ref, d digest.Digest) error {
	all := readResolved(f.own) // the tags of others are of no matter
	all[ref.Name()] = d.String()
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return f.put(resolvedFile, append(text, '\n'))
}

// acceptUnsigned remembers that a release is wanted without a signature, or tells whether a run has remembered it. The
// workspace on a medium that images come from is not asked: others have written it.
func (f *releaseFiles) acceptUnsigned(o *Options, d digest.Digest) (bool, error) {
	w := o.Workspace.files()
	if w == "" || o.Mode == FromDisk && isBelow(string(w), o.Archive) {
		return o.Releases.Unsigned, nil
	}
	text, err := w.Read(strings.Split(unsignedFile, "/")...)
	if err != nil || !o.Releases.Unsigned {
		return slices.Contains(strings.Split(string(text), "\n"), d.String()), err
	}
	if f.workspace == "" || slices.Contains(strings.Split(string(text), "\n"), d.String()) {
		return true, nil
	}
	_, err = w.Write(append(text, d.String()+"\n"...), strings.Split(unsignedFile, "/")...)
	return true, err
}

// isBelow tells whether a directory is below another one; also if that cannot be found out.
func isBelow(dir, above string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return true
	}
	if above, err = filepath.Abs(above); err != nil {
		return true
	}
	rel, err := filepath.Rel(above, dir)
	return err != nil || filepath.IsLocal(rel)
}

// sub returns a directory of what is stored, which may not exist.
func (f *releaseFiles) sub(dir string) fs.FS {
	out, err := fs.Sub(f.stored, dir)
	if err != nil {
		return layered{} // the name is valid
	}
	return out
}

// graphs are the graphs that releases are chosen by: of servers, or those in an archive. They are kept for later runs.
func (r *run) graphs() releases.Graphs {
	save := func(architecture, channel string, text []byte) error {
		return r.found.files.put(path.Join(graphsDir, releases.FileName(architecture, channel)), text)
	}
	if r.places.input != nil {
		return releases.Stored{Files: r.found.files.sub(graphsDir), Save: save}
	}
	return &releases.Server{Client: r.o.Releases.Client, OCP: r.o.Releases.UpdateURL, Save: save}
}

// verifyRelease finds the signature of a release: in the archive or the workspace, else at the server.
func (r *run) verifyRelease(ctx context.Context, ref imageset.Ref) (*signed.Signature, error) {
	o := r.o.Releases.Signatures
	o.Stored, o.Client = r.found.files.sub(signaturesDir), r.o.Releases.Client
	if r.places.input != nil {
		o.Client = nil
	}
	if o.Keys == nil {
		var err error
		if o.Keys, err = signed.VendorKeys(); err != nil {
			return nil, err
		}
	}
	s, err := o.Find(ctx, ref)
	if err == nil {
		for _, why := range s.Passed {
			r.report.problem(filter.Warning, ref.Name(), "", "a signature is not used, as another one is good: %v", why)
		}
		err = r.found.files.put(path.Join(signaturesDir, s.FileName()), s.Text)
	}
	return s, err
}
