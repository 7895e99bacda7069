package charts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/keyed"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// Getter gets charts. It is safe for concurrent use if its functions are.
type Getter struct {
	// Client asks repositories, and Registry registries. Without Client nothing is asked: charts are those of Stored.
	Client   *webclient.Client
	Registry Registry
	// Stored has the files of earlier runs, by their paths below the working directory; nil if there are none.
	Stored fs.FS
	// Save, unless nil, keeps a file for later runs.
	Save func(name string, text []byte) error
	// Pack makes an archive of a directory with a chart.
	Pack func(ctx context.Context, dir string) ([]byte, error)
	// SaveLocal also keeps local charts, for another machine.
	SaveLocal bool

	indexes keyed.Memo[string, indexOrError]

	mu     sync.Mutex
	chosen resolutions
	taken  map[string]digest.Digest // the files of this run

	settings     map[digest.Digest]Settings // of this run
	readSettings sync.Once
	kept         map[digest.Digest]Settings
	keptError    error
}

// Wanted is one version of a chart that a repository is asked for.
type Wanted struct {
	Name string
	Rule Rule

	repository string
	entry      *Entry // nil if it is not known yet
}

// Version is the version as far as it is known: else the rule.
func (w *Wanted) Version() string {
	if w.entry != nil {
		return w.entry.Version
	}
	return w.Rule.text
}

// Archive is a chart that was got.
type Archive struct {
	Name, Version string
	// Source is where it is from: a URL without password, or a path.
	Source string
	Digest digest.Digest
	Data   []byte
}

// errServer is the class of errors about answers of repositories.
var errServer = fault.New(fault.Network, "the repository of charts")

// baseURL returns the address of a repository without "index.yaml" and without a slash at its end.
func baseURL(text string) (*url.URL, error) {
	if strings.HasPrefix(text, ociPrefix) {
		u, err := url.Parse(strings.TrimSuffix(text, "/"))
		if err != nil || u.Host == "" {
			err = fmt.Errorf("%w: %s is no path at a registry, expected oci://HOST/PATH", fault.ErrInvalid, fault.Quote(redact.Text(text)))
		}
		return u, err
	}
	u, err := webclient.ParseURL(text)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "index.yaml"), "/")
	u.RawPath = ""
	return u, nil
}

// RepositoryName returns what a repository is called in records and messages: its URL without user, password and query, and
// without "index.yaml" or a slash at its end.
func RepositoryName(address string) string {
	u, err := baseURL(address)
	if err != nil {
		return redact.Text(address)
	}
	return plain(u)
}

// WithoutSecrets returns the address of a repository without user, password and query; it is as it was written if it has none.
func WithoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return redact.Text(address)
	}
	if u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		return address
	}
	return plain(u)
}

// plain is a URL without what may be secret.
func plain(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// All lists every version of every chart of a repository but libraries, and what is odd about its index.
func (g *Getter) All(ctx context.Context, repository string) (list []Wanted, odd []string, err error) {
	x, err := g.index(ctx, repository, true)
	if err != nil {
		return nil, nil, err
	}
	odd = x.Odd
	for _, e := range x.All() {
		rule, err := ParseRule(e.Version)
		if err != nil {
			odd = append(odd, "the version "+fault.Quote(e.Version)+" of "+e.Name)
			continue
		}
		list = append(list, Wanted{Name: e.Name, Rule: rule, repository: repository, entry: &e})
	}
	return list, odd, nil
}

// Find finds the version of a chart that a rule asks for.
func (g *Getter) Find(ctx context.Context, repository, name string, rule Rule) (Wanted, error) {
	w := Wanted{Name: name, Rule: rule, repository: repository}
	if g.Client == nil || strings.HasPrefix(repository, ociPrefix) {
		return w, nil // Get finds it
	}
	x, err := g.index(ctx, repository, false)
	if err != nil {
		return w, err
	}
	e, err := x.Find(name, rule)
	if err == nil {
		w.entry = &e
	}
	return w, err
}

// index reads the index of a repository, once.
func (g *Getter) index(ctx context.Context, repository string, keep bool) (*Index, error) {
	u, err := baseURL(repository)
	if err != nil {
		return nil, err
	}
	key := u.String()
	if keep {
		key += " kept"
	}
	out, err := g.indexes.Get(ctx, key, func(ctx context.Context) (out indexOrError, err error) {
		out.index, out.err = g.readIndex(ctx, u, keep)
		return out, context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	return out.index, out.err
}

// indexOrError keeps errors, too: a server that does not answer is not asked for each chart.
type indexOrError struct {
	index *Index
	err   error
}

// readIndex reads the index of a repository.
func (g *Getter) readIndex(ctx context.Context, u *url.URL, keep bool) (*Index, error) {
	if g.Client == nil {
		text, err := readStored(g.Stored, indexFile(u), MaxIndex)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, absent("there is no index of " + plain(u) + ": it was not mirrored to disk whole")
		}
		if err != nil {
			return nil, err
		}
		if keep && g.Save != nil {
			err = g.Save(indexFile(u), text)
		}
		if err != nil {
			return nil, err
		}
		return ParseIndex(text)
	}
	at := *u
	at.Path += "/index.yaml"
	answer, err := g.Client.Get(ctx, at.String(), "", MaxIndex)
	if err != nil {
		return nil, err
	}
	if answer.Status != http.StatusOK {
		return nil, fmt.Errorf("%w %s answers with %s", errServer, plain(&at), answer)
	}
	x, err := ParseIndex(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%s answers with %s: %w", plain(&at), answer, err)
	}
	if keep && g.Save != nil {
		err = g.Save(indexFile(u), answer.Body)
	}
	return x, err
}

// Get gets the archive of a chart.
func (g *Getter) Get(ctx context.Context, w Wanted) (*Archive, error) {
	u, err := baseURL(w.repository)
	if err != nil {
		return nil, err
	}
	a := &Archive{Name: w.Name, Version: w.Version(), Source: plain(u)}
	switch {
	case g.Client == nil:
		err = g.getStored(w, plain(u), a)
	case u.Scheme == ociScheme:
		err = g.getOCI(ctx, w, u, a)
	default:
		err = g.download(ctx, w.entry, u, a)
	}
	if err == nil {
		err = g.keep(w, plain(u), a)
	}
	return a, err
}

// getStored reads what an earlier run has kept.
func (g *Getter) getStored(w Wanted, repository string, a *Archive) error {
	version, file, err := storedArchive(g.Stored, repository, w.Name, w.Rule)
	if err != nil {
		return err
	}
	a.Version, a.Source = version, file
	if a.Data, err = readStored(g.Stored, file, MaxArchive); err != nil {
		return err
	}
	a.Digest = digest.FromBytes(a.Data)
	if of := readResolved(g.Stored)[repository][ruleKey(w.Name, w.Rule)]; of.File == file && of.Digest != a.Digest {
		return fmt.Errorf("%w: %s has the digest %s, and %s was kept", fault.ErrIntegrity, file, a.Digest, of.Digest)
	}
	return nil
}

// download gets an archive that an index names, unless an earlier run has kept it.
func (g *Getter) download(ctx context.Context, e *Entry, repository *url.URL, a *Archive) error {
	if e == nil {
		return fmt.Errorf("%w: a chart without an entry", fault.ErrInvalid)
	}
	if e.Digest != "" {
		for _, file := range []string{archiveFile(e.Name, e.Version, ""), archiveFile(e.Name, e.Version, e.Digest)} {
			if data, err := readStored(g.Stored, file, MaxArchive); err == nil && digest.FromBytes(data) == e.Digest {
				a.Data, a.Digest = data, e.Digest
				return nil
			}
		}
	}
	var errs []error
	for _, written := range e.URLs {
		at, err := address(repository, written)
		if err == nil && e.Digest == "" && at.Scheme == "http" && repository.Scheme == "https" {
			err = fmt.Errorf("%w: %s is not got without TLS, as the index has no digest of it", fault.ErrInvalid, plain(at))
		}
		if err == nil {
			err = g.downloadFrom(ctx, at, at.Host == repository.Host, a)
		}
		if err == nil && e.Digest != "" && a.Digest != e.Digest {
			err = fmt.Errorf("%w: %s has the digest %s, and the index says %s", fault.ErrIntegrity, plain(at), a.Digest, e.Digest)
		}
		if err == nil {
			a.Source = plain(at)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// downloadFrom gets an archive. Errors have what the repository answers, own; not what other hosts do, which may be for others.
func (g *Getter) downloadFrom(ctx context.Context, at *url.URL, own bool, a *Archive) error {
	answer, err := g.Client.Get(ctx, at.String(), "application/gzip,application/octet-stream", MaxArchive)
	if err != nil {
		return err
	}
	if answer.Status != http.StatusOK {
		if !own {
			answer.Body = nil
		}
		return fmt.Errorf("%w: %s answers with %s", errServer, plain(at), answer)
	}
	a.Data, a.Digest = answer.Body, digest.FromBytes(answer.Body)
	return nil
}

// archiveFile returns where an archive is kept; with a digest where one is kept beside another one of the same name.
func archiveFile(name, version string, of digest.Digest) string {
	if of == "" {
		return path.Join(archivesDir, FileName(name, version))
	}
	return path.Join(archivesDir, of.Encoded()[:12], FileName(name, version))
}

// keep keeps an archive, and which one the rule has chosen. Charts of several repositories, of this run or of an earlier one for
// another image set, may have one name: the second one is kept beside the first.
func (g *Getter) keep(w Wanted, repository string, a *Archive) error {
	if g.Save == nil {
		return nil
	}
	file := archiveFile(a.Name, a.Version, "")
	before, err := readStored(g.Stored, file, MaxArchive)
	other := err == nil && digest.FromBytes(before) != a.Digest
	g.mu.Lock()
	if g.taken == nil {
		g.taken, g.chosen = map[string]digest.Digest{}, resolutions{}
	}
	if was, taken := g.taken[file]; other || taken && was != a.Digest {
		file = archiveFile(a.Name, a.Version, a.Digest)
	}
	_, written := g.taken[file]
	g.taken[file] = a.Digest
	if g.chosen[repository] == nil {
		g.chosen[repository] = map[string]resolved{}
	}
	g.chosen[repository][ruleKey(w.Name, w.Rule)] = resolved{a.Version, file, a.Digest}
	g.chosen[repository][strings.TrimSuffix(w.Name+" "+a.Version, " ")] = resolved{a.Version, file, a.Digest} // pinned image sets ask so
	g.mu.Unlock()
	if written {
		return nil
	}
	return g.Save(file, a.Data)
}

// Finish keeps which versions the rules have chosen, and what charts were rendered with. own has what is kept already.
func (g *Getter) Finish(own fs.FS) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.finishSettings(own); err != nil || g.Save == nil || len(g.chosen) == 0 {
		return err
	}
	all := readResolved(own)
	for repository, of := range g.chosen {
		if all[repository] == nil {
			all[repository] = map[string]resolved{}
		}
		for key, one := range of {
			all[repository][key] = one
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return g.Save(resolvedFile, append(text, '\n'))
}

// sortVersions sorts versions, the newest first.
func sortVersions(list []string) { slices.SortFunc(list, compareVersions) }
