//go:build !nobuildah

package evaluator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/webclient"
	"github.com/operator-bindery/bindery/layers"
)

// maxDownload is the maximum size of a file that ADD downloads, in bytes.
const maxDownload = 1 << 30

const downloadTime = 10 * time.Minute

func isURL(src string) bool {
	return strings.HasPrefix(src, "http://") || strings.HasPrefix(src, "https://")
}

func isGit(src string) bool {
	return strings.HasPrefix(src, "git://") || strings.HasPrefix(src, "git@") || strings.HasPrefix(src, "ssh://")
}

// download fetches a file. --checksum is required: without it the server decides what is in the image.
func (e *Evaluator) download(ctx context.Context, src, checksum string) (_ *node, name string, err error) {
	u, err := url.Parse(src)
	if err != nil {
		return nil, "", errors.New("invalid URL")
	}
	shown := u.Redacted()
	if strings.HasSuffix(u.Path, ".git") {
		return nil, "", newMendError("check it out first and copy the directory",
			"%.200q: fetching repositories is not supported", shown)
	}
	want, err := digest.Parse(checksum)
	if checksum == "" || err != nil || want.Algorithm() != digest.SHA256 {
		return nil, "", newMendError("add --checksum=sha256:... , or put the file into the context",
			"%.200q: a checksum is required", shown)
	}
	if name = path.Base(u.Path); name == "/" || name == "." || name == ".." {
		name = "index.html"
	}
	client, err := webclient.NewClient(ctx, webclient.Options{Time: downloadTime})
	if err != nil {
		return nil, "", err
	}
	body, answer, err := client.Open(ctx, src, "")
	if err != nil {
		return nil, "", err // it names the URL
	}
	defer body.Close()
	if answer.Status != http.StatusOK {
		return nil, "", fmt.Errorf("%.200q: %d %s", shown, answer.Status, http.StatusText(answer.Status))
	}
	h := sha256.New()
	c, size, err := e.spool.addAll(ctx, io.TeeReader(body, h), maxDownload)
	if err != nil {
		return nil, "", fmt.Errorf("%.200q: %w", shown, err)
	}
	if got := digest.NewDigest(digest.SHA256, h); got != want {
		return nil, "", fmt.Errorf("%.200q: digest mismatch: %s instead of %s", shown, got, want)
	}
	return &node{kind: layers.KindFile, mode: 0o600, size: size, data: c}, name, nil
}
