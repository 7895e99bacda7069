package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/reflist"
	"github.com/operator-bindery/bindery/internal/verify"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// maxPages is how many pages a list of referrers may have.
const maxPages = 100

// What is known of the referrers API of a repository. Lists are requested even if the API seems to be missing, unless
// the registry of a source has answered several times that it has none: see hostAPI.
const (
	apiUnknown int32 = iota
	apiThere
	apiMissing
)

// hostAPI counts what the answers about existing images say of the referrers API of a registry.
type hostAPI struct {
	there   atomic.Bool
	missing atomic.Int32
}

// missingAfter is after how many answers a registry counts as one without the referrers API: one that has it answers
// with an empty list where nothing is listed (distribution specification, "Listing Referrers").
const missingAfter = 4

func (h *hostAPI) isMissing() bool { return !h.there.Load() && h.missing.Load() >= missingAfter }

// errNoAPI is the error of a registry without the referrers API.
var errNoAPI = errors.New("the registry has no referrers API")

// Referrers returns the descriptors that the registry lists for a subject, in their order and unchecked: by the
// referrers API, else by the fallback tag (distribution specification, "Listing Referrers"). There may be none. A
// fallback tag that is no OCI index lists nothing.
func (r *Repository) Referrers(ctx context.Context, subject digest.Digest,
	has func(tag string) bool) (found []v1.Descriptor, err error) {
	if err := verify.Digest(subject); err != nil {
		return nil, err
	}
	// A repository to write to may not be there yet, so that its answers say nothing about the registry.
	host := &r.repo.host.referrersAPI
	if err = errNoAPI; !r.source || !host.isMissing() {
		found, err = r.listed(ctx, subject, maxPages)
	}
	switch {
	case err == nil:
		r.api.Store(apiThere)
		host.there.Store(true)
	case r.source && errors.Is(err, errNoAPI):
		host.missing.Add(1)
	}
	if !errors.Is(err, errNoAPI) {
		return found, err
	}
	r.api.CompareAndSwap(apiUnknown, apiMissing)
	if has != nil && !has(reflist.Tag(subject)) {
		return nil, nil
	}
	return store.WithTagged(nil, subject, func(tag string) ([]byte, string, error) {
		text, kind, err := r.Manifest(ctx, tag)
		if err != nil {
			err = fmt.Errorf("referrers of %s: %w", subject, err)
		}
		return text, kind, err
	})
}

// listed lists the referrers with the referrers API. More pages than most are an error. The error is errNoAPI if the
// registry does not have the API: it answers 404, or 400, 405 or 406 if it does not know the request.
func (r *Repository) listed(ctx context.Context, subject digest.Digest, most int) ([]v1.Descriptor, error) {
	base, err := r.repo.host.base(ctx)
	if err != nil {
		return nil, remoteError(err)
	}
	first := *base
	first.Path = "/v2/" + r.repo.path + "/referrers/" + subject.String()
	read := 0
	found, err := pages(ctx, r.repo, request{url: &first, accept: []string{v1.MediaTypeImageIndex}}, most,
		reflist.MaxReferrers, func(resp *http.Response) ([]v1.Descriptor, error) {
			kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
			if kind != v1.MediaTypeImageIndex {
				return nil, errNoAPI
			}
			text, err := readAtMost(resp, limit.MaxManifest, "page")
			if err != nil {
				return nil, err
			}
			page, err := reflist.Parse(bytes.TrimSpace(text))
			if errors.Is(err, reflist.ErrNotList) {
				err = fmt.Errorf("%w: a page that is %w", fault.ErrInvalid, err)
			}
			if err == nil {
				read++
			}
			return page, err
		})
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, errNoAPI), hasStatus(err, http.StatusNotFound, http.StatusBadRequest,
		http.StatusMethodNotAllowed, http.StatusNotAcceptable):
		if read == 0 {
			return nil, errNoAPI
		}
		err = fmt.Errorf("page %d: no list of referrers", read+1)
	}
	return nil, fmt.Errorf("referrers of %s: %w", subject, remoteError(err))
}

// nextPage returns the URL in a header Link with the relation "next" (RFC 8288); nil if there is none. Only another
// query of the same list is accepted.
func nextPage(at *url.URL, links []string) (*url.URL, error) {
	for _, text := range links {
		for _, link := range oneLink().FindAllStringSubmatch(text, -1) {
			if !isNext(link[2]) {
				continue
			}
			to, err := at.Parse(link[1])
			if err != nil || to.EscapedPath() != at.EscapedPath() || !sameOrigin(at, to) {
				return nil, Wrap(fmt.Errorf("refusing the next page %.200q: it is of another list",
					redact.Text(link[1])))
			}
			next := *at
			next.RawQuery = to.RawQuery
			return &next, nil
		}
	}
	return nil, nil
}

// oneLink is a target and its parameters.
var oneLink = lazyregexp.New(`<([^>]*)>([^<]*)`)

// isNext tells whether the parameters of a link have the relation "next".
func isNext(params string) bool {
	for _, p := range strings.FieldsFunc(params, func(c rune) bool { return c == ';' || c == ',' }) {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "rel") &&
			slices.Contains(strings.Fields(strings.ToLower(strings.Trim(strings.TrimSpace(value), `"`))), "next") {
			return true
		}
	}
	return false
}

// sameOrigin tells whether a URL is of the same server. A proxy before a registry may add or remove TLS, of which the
// registry does not know.
func sameOrigin(at, to *url.URL) bool {
	if to.Scheme != "http" && to.Scheme != "https" || to.User != nil {
		return false
	}
	return webclient.HostPort(at) == webclient.HostPort(to) || to.Scheme != at.Scheme && strings.EqualFold(at.Hostname(), to.Hostname())
}

// WriteManifest writes a manifest under its digest or under a tag. One with a subject is listed among the referrers of
// the subject: by the registry if it has the referrers API, else in the index of the fallback tag. The error is
// [reflist.ErrNotList] if the fallback tag is no OCI index: it is left as it is.
func (r *Repository) WriteManifest(ctx context.Context, text []byte, mediaType string, o store.WriteOptions) error {
	d, subject, err := reflist.Describe(text, mediaType)
	if err != nil {
		return err
	}
	if o.Tag != "" {
		if err := checkTag(o.Tag); err != nil {
			return err
		}
	}
	write, only := r.putManifest, http.Header(nil)
	if o.Sparse {
		write = r.putOnce // a registry that wants the missing manifests is asked once
	}
	switch o.If {
	case "":
	case store.IfNone:
		only = http.Header{"If-None-Match": {"*"}}
	default:
		only = http.Header{"If-Match": {`"` + o.If + `"`}}
	}
	header, err := write(ctx, cmp.Or(o.Tag, d.Digest.String()), text, mediaType, only)
	switch {
	case o.Sparse && hasStatus(err, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity):
		err = ofClass(store.ErrSparse, err) // registries have different codes for it, or none
		if errors.Is(err, store.ErrIncomplete) {
			r.repo.host.noSparse.Store(&err)
		}
		return err
	case only != nil && hasStatus(err, http.StatusPreconditionFailed):
		return ofClass(store.ErrChanged, err)
	case subject != nil && !unseenBlob(err) && hasStatus(err, http.StatusBadRequest, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity):
		return ofClass(store.ErrNoReferrers, err) // a registry without OCI 1.1, or without artifacts
	case subject == nil && noOCI(err, mediaType):
		return ofClass(store.ErrNoOCI, err)
	case err != nil || subject == nil:
		return err
	}
	if header.Get("OCI-Subject") == subject.Digest.String() {
		r.api.Store(apiThere)
		return nil
	}
	return r.list(ctx, d, subject.Digest, o.OverImage)
}

// noOCI tells whether a registry may have refused a manifest for its type: old ones know Docker's types only.
func noOCI(err error, mediaType string) bool {
	if mediaType != v1.MediaTypeImageManifest && mediaType != v1.MediaTypeImageIndex || unseenBlob(err) {
		return false
	}
	return hasStatus(err, http.StatusUnsupportedMediaType) || hasStatus(err, http.StatusBadRequest,
		http.StatusUnprocessableEntity) && hasCode(err, "MANIFEST_INVALID", "UNSUPPORTED")
}

// list lists a manifest that was pushed among the referrers of a subject, unless the registry does it.
func (r *Repository) list(ctx context.Context, d v1.Descriptor, subject digest.Digest, overImage bool) error {
	there, err := r.hasAPI(ctx, subject)
	if err != nil || there {
		return err
	}
	err = r.UpdateTag(ctx, reflist.Tag(subject), func(old []byte) ([]byte, string, error) {
		if overImage && digest.FromBytes(old) == subject {
			old = nil
		}
		list, err := reflist.AddTag(old, subject, d)
		return list, v1.MediaTypeImageIndex, err
	})
	if errors.Is(err, reflist.ErrNotList) {
		err = ofClass(store.ErrNoReferrers, err)
	}
	if err != nil {
		return fmt.Errorf("listing %s among the referrers of %s: %w", d.Digest, subject, err)
	}
	return nil
}

// takesReferrers tells whether a referrer of a subject can be listed: a registry without the referrers API lists it under
// the fallback tag, which may be another image, such as the subject under the tag that a mirror gives it.
func (r *Repository) takesReferrers(ctx context.Context, subject digest.Digest) error {
	if there, err := r.hasAPI(ctx, subject); there || err != nil {
		return err
	}
	text, _, err := r.Manifest(ctx, reflist.Tag(subject))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrHidden) {
		return nil
	}
	if err == nil {
		if _, err = reflist.ParseTag(text, subject); errors.Is(err, reflist.ErrNotList) {
			err = ofClass(store.ErrNoReferrers, Wrap(fmt.Errorf("%s has no referrers API, and the tag %s, under which referrers "+
				"are listed then, is an image", r.Name(), reflist.Tag(subject))))
		}
	}
	return err
}

// hasAPI finds out whether the registry has the referrers API. It asks once.
func (r *Repository) hasAPI(ctx context.Context, subject digest.Digest) (bool, error) {
	if known := r.api.Load(); known != apiUnknown {
		return known == apiThere, nil
	}
	switch _, err := r.listed(ctx, subject, 1); {
	case errors.Is(err, errNoAPI):
		r.api.Store(apiMissing)
		return false, nil
	case err != nil && !errors.Is(err, errMorePages):
		return false, err
	}
	r.api.Store(apiThere)
	return true, nil
}
