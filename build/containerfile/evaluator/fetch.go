//go:build !nobuildah

package evaluator

import (
	"context"
	_ "crypto/sha256" // the algorithms of digests that are known
	_ "crypto/sha512"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/redact"
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

// repositoryError refuses a repository as a source. The checksum of one is that of a commit, and not of a file.
func repositoryError(src, checksum string) error {
	const mend = "check it out first and copy the directory: COPY DIR DESTINATION"
	if checksum != "" {
		return newMendError("check out that commit first and copy the directory: COPY DIR DESTINATION",
			"%.200q: neither fetching repositories nor --checksum=%.200s, which is a commit of one, is supported", redact.Text(src), checksum)
	}
	return newMendError(mend, "%.200q: fetching repositories is not supported", redact.Text(src))
}

// download fetches a file. --checksum is required: without it the server decides what is in the image.
func (e *Evaluator) download(ctx context.Context, src, checksum string) (_ *node, name string, err error) {
	u, err := url.Parse(src)
	if err != nil {
		return nil, "", errors.New("invalid URL")
	}
	shown := u.Redacted()
	if strings.HasSuffix(u.Path, ".git") {
		return nil, "", repositoryError(shown, checksum)
	}
	const mend = "add --checksum=sha256:... , or put the file into the context"
	want, err := digest.Parse(checksum)
	switch {
	case checksum == "":
		return nil, "", newMendError(mend, "%.200q: a checksum is required", shown)
	case err != nil:
		return nil, "", newMendError(mend, "%.200q: --checksum=%.200s is no digest of sha256, sha384 or sha512: %w", shown, checksum,
			err)
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
	h := want.Algorithm().Hash()
	c, size, err := e.spool.addAll(ctx, io.TeeReader(body, h), maxDownload)
	if err != nil {
		return nil, "", fmt.Errorf("%.200q: %w", shown, err)
	}
	if got := digest.NewDigest(want.Algorithm(), h); got != want {
		return nil, "", fmt.Errorf("%.200q: digest mismatch: %s instead of %s", shown, got, want)
	}
	return &node{kind: layers.KindFile, mode: 0o600, size: size, data: c}, name, nil
}
