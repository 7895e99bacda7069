package registry

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/opencontainers/go-digest"
)

// Uploads keeps where the uploads of blobs continue. It is safe for concurrent use. A location may have a secret of
// the registry, which allows to write to the upload.
type Uploads interface {
	// Load returns the location of the upload of a blob to a repository, HOST/PATH.
	Load(repository string, d digest.Digest) (location string, ok bool)
	// Save keeps a location in place of an earlier one.
	Save(repository string, d digest.Digest, location string)
	// Forget removes a location.
	Forget(repository string, d digest.Digest)
}

// keptUpload is the size in bytes from which the upload of a blob is kept.
const keptUpload = 8 << 20

// keeps returns the store of uploads if the blob is one of those that are kept; nil if not.
func (u *blobUpload) keeps() Uploads {
	if u.blob.Size < keptUpload {
		return nil
	}
	return u.repo.host.r.o.Uploads
}

// restore takes the upload session of an earlier process. Whether it is still there is asked by the first attempt. What
// is stored may come from elsewhere: only an upload to this repository of this registry goes on.
func (u *blobUpload) restore() {
	kept := u.keeps()
	if kept == nil || u.at != nil {
		return
	}
	text, ok := kept.Load(u.repo.name.Name(), u.blob.Digest)
	if !ok {
		return
	}
	at := &url.URL{Scheme: "https", Host: u.repo.host.address}
	if u.repo.host.plain {
		if stored, err := url.Parse(text); err == nil && stored.Scheme == "http" {
			at.Scheme = "http"
		}
	}
	answer := &http.Response{Header: http.Header{"Location": {text}}, Request: &http.Request{URL: at}}
	var err error
	if u.at, u.foreign, err = u.repo.location(answer); err != nil || !u.own() {
		u.at = nil
		kept.Forget(u.repo.name.Name(), u.blob.Digest)
		return
	}
	u.restored = true
}

// own tells whether the upload session is one of this repository, at this registry.
func (u *blobUpload) own() bool {
	return !u.foreign && strings.HasPrefix(path.Clean(u.at.Path), "/v2/"+u.repo.path+"/blobs/uploads/")
}

// keep stores where the upload continues.
func (u *blobUpload) keep() {
	if kept := u.keeps(); kept != nil && u.at != nil && u.own() {
		kept.Save(u.repo.name.Name(), u.blob.Digest, u.at.String())
	}
}

// forget removes what was stored.
func (u *blobUpload) forget() {
	if kept := u.keeps(); kept != nil {
		kept.Forget(u.repo.name.Name(), u.blob.Digest)
	}
}
