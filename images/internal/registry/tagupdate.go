package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/webclient"
)

const (
	// tagsAtOnce is how many tags are confirmed concurrently.
	tagsAtOnce = 5
	// maxTagWrites is how often a change of a tag is written, if other clients write the tag at the same time.
	maxTagWrites = 10
	// maxRefusedWrites is how often it is written if the registry refuses it since another client was faster.
	maxRefusedWrites = 50
	// maxUnseen is how often it is made again if the registry does not see the blobs.
	maxUnseen = 8
	// maxSettles is how often a tag is read until it stays as it is. Beyond it, the own change is enough.
	maxSettles = 30
	// minSettle and maxSettle bound the pause after which a tag is read again.
	minSettle, maxSettle = 15 * time.Millisecond, 3 * time.Second
)

// contendedSettle is the shortest pause if another client has written the tag meanwhile. Tests set it.
var contendedSettle = 250 * time.Millisecond

// ErrNotListed is the error of a change of a tag that other clients undo again and again.
var ErrNotListed = errors.New("pushed, but not listed: other clients write the tag at the same time")

// tagChange returns the new manifest of a tag for the present one.
type tagChange = func(old []byte) (text []byte, mediaType string, err error)

// madeChange is a change of a tag, and how often it was written.
type madeChange struct {
	change tagChange
	writes int
}

// pending returns the tags that were written and that [Repository.Settle] has not confirmed, sorted.
func (r *Repository) pending() (all []*tagUpdate) {
	for _, update := range r.tags.Range {
		u := update.(*tagUpdate)
		if !u.isSettled() {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b *tagUpdate) int { return strings.Compare(a.tag, b.tag) })
	return all
}

// tagUpdate is one tag, and what was changed in it.
type tagUpdate struct {
	tag string

	mu      sync.Mutex // is held while the tag is changed
	changes []*madeChange

	seen        digest.Digest // what the tag stood for at last
	took        time.Duration // from reading the tag until it was written
	at          time.Time     // when it was written at last
	writes      int           // of all changes
	contended   bool          // another client has written the tag too
	conditional bool          // the registry honours conditions
}

// UpdateTag replaces the manifest of a tag by what change returns for the present one, which is nil if there is none. A
// nil text leaves it. The request has the condition If-Match with the ETag of the manifest, or If-None-Match; if it is
// not met, change is called again with the new manifest.
//
// Few registries honour conditions. [Repository.Settle] must be called after the last change: it reads the tags again,
// and may call change until then.
func (r *Repository) UpdateTag(ctx context.Context, tag string, change tagChange) error {
	if err := checkTag(tag); err != nil {
		return err
	}
	update, _ := r.tags.LoadOrStore(tag, &tagUpdate{tag: tag})
	u := update.(*tagUpdate)
	u.mu.Lock()
	defer u.mu.Unlock()
	made := &madeChange{change: change}
	if err := r.update(ctx, u, made); err != nil {
		return err
	}
	if made.writes > 0 {
		u.changes = append(u.changes, made)
	}
	return nil
}

// update writes a tag until a change is in it, as far as the answers tell.
func (r *Repository) update(ctx context.Context, u *tagUpdate, made *madeChange) error {
	var before digest.Digest // of the text whose replacement was refused
	for refused := 0; ; refused++ {
		begun := time.Now()
		var old []byte
		var etag string
		if refused > 0 || !r.isFirst(u) {
			var err error
			if old, etag, err = r.tagged(ctx, u.tag); err != nil {
				return err
			}
		}
		text, mediaType, err := made.change(old)
		if err != nil {
			return err
		}
		if text == nil {
			u.seen = digest.FromBytes(old)
			return nil
		}
		if made.writes == maxTagWrites || refused == maxRefusedWrites {
			return remoteError(fmt.Errorf("tag %s: %w", u.tag, ErrNotListed))
		}
		only := condition(old, etag)
		if refused > 0 && before == digest.FromBytes(old) {
			only = nil // the tag was not written: the registry, or a proxy, refuses every condition
		}
		before = digest.FromBytes(old)
		_, err = r.putOnce(ctx, u.tag, text, mediaType, only)
		if unseenBlob(err) && refused < maxUnseen {
			// The change is made again for what the tag stands for then, and writes its blobs again.
			pause := rand.N(time.Duration(refused+1)*30*time.Millisecond) + 10*time.Millisecond
			if err := webclient.Sleep(ctx, pause); err != nil {
				return err
			}
			before = ""
			continue
		}
		// Without a condition it is the registry that does not let the tag be written.
		if only == nil || !hasStatus(err, http.StatusPreconditionFailed) {
			made.writes++
			u.writes++
			u.conditional = u.conditional && only != nil
			u.seen, u.took, u.at = digest.FromBytes(text), time.Since(begun), time.Now()
			return err
		}
		u.conditional = only != nil
		if err := webclient.Sleep(ctx, rand.N(time.Duration(min(refused+1, 10))*20*time.Millisecond)); err != nil {
			return err
		}
	}
}

// isFirst tells whether a tag need not be read before it is written: that of a signature or the like, in a repository of
// which the registry has said that it does not know it. What it is derived from comes after it, so that no other client
// has signed that; a condition and [Repository.Settle] find out about one that has. Lists of referrers are always read.
func (r *Repository) isFirst(u *tagUpdate) bool {
	return r.empty.Load() && u.writes == 0 && u.seen == "" && reflist.Belongs(u.tag) && strings.Contains(u.tag, ".")
}

// tagged reads the manifest of a tag, nil if there is none, and its ETag.
func (r *Repository) tagged(ctx context.Context, tag string) (text []byte, etag string, err error) {
	text, _, header, err := r.repo.manifest(ctx, tag, repositoryTypes, r.retries())
	if hasStatus(err, http.StatusNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", remoteError(fmt.Errorf("tag %s: %w", tag, err))
	}
	return text, header.Get("ETag"), nil
}

// condition returns the condition that a tag still has the manifest old. Weak ETags never match (RFC 9110, "If-Match").
func condition(old []byte, etag string) http.Header {
	switch {
	case old == nil:
		return http.Header{"If-None-Match": {"*"}}
	case etag == "" || strings.HasPrefix(etag, "W/"):
		return nil
	}
	return http.Header{"If-Match": {etag}}
}

// Settle makes sure that the changes of tags have lasted. A registry that does not honour conditions loses a change if
// another client reads the tag before it and writes the tag after it. So each tag is read again after a pause that is
// several times as long as the own change took, and the change is made again if it is missing. If another client has
// written the tag, this goes on, with longer random pauses, until the tag stays as it is.
//
// What remains: a client that takes longer than the pause between reading and writing.
func (r *Repository) Settle(ctx context.Context) error {
	all := r.pending()
	for round := 1; len(all) > 0; round++ {
		var wait time.Duration
		for _, u := range all {
			wait = max(wait, u.pause(round))
		}
		if err := webclient.Sleep(ctx, wait); err != nil {
			return err
		}
		err := guard.Each(ctx, tagsAtOnce, all, func(ctx context.Context, _ int, u *tagUpdate) error {
			return r.confirm(ctx, u, round)
		})
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, (*tagUpdate).isSettled) // what others have written since is theirs to settle
	}
	return nil
}

// isSettled tells whether no change of a tag is left to be confirmed.
func (u *tagUpdate) isSettled() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.changes) == 0
}

// pause returns how long to wait before a tag is read again, negative if the time has passed.
func (u *tagUpdate) pause(round int) time.Duration {
	u.mu.Lock() // images of one repository are settled beside one another
	defer u.mu.Unlock()
	shortest := minSettle
	if u.contended {
		shortest = contendedSettle + rand.N(contendedSettle*time.Duration(min(round, 4)))
	}
	pause := min(max(4*u.took+rand.N(2*u.took+1), shortest), maxSettle)
	if round == 1 {
		pause -= time.Since(u.at) // what was done meanwhile, such as writing the tag of the image, is part of it
	}
	return pause
}

// confirm reads a tag again and makes the changes again that are missing. The tag is settled if it is as it was, or if
// nothing is missing and the registry honours conditions. One that another image of the repository has settled meanwhile
// is not read.
func (r *Repository) confirm(ctx context.Context, u *tagUpdate, round int) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.changes) == 0 {
		return nil
	}
	text, _, err := r.tagged(ctx, u.tag)
	if err != nil {
		return err
	}
	before, same := u.writes, text != nil && digest.FromBytes(text) == u.seen
	for _, change := range u.changes {
		next, _, err := change.change(text)
		if err == nil && next != nil {
			err = r.update(ctx, u, change)
		}
		if err != nil {
			return err
		}
	}
	if !same && u.writes == before {
		u.seen = digest.FromBytes(text)
	}
	if (same || u.conditional) && u.writes == before || round == maxSettles {
		u.changes, u.contended = nil, false
	} else {
		u.contended = !u.conditional
	}
	return nil
}
