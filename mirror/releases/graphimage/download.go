package graphimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// DefaultURL is where the vendor publishes the graph data.
const DefaultURL = "https://api.openshift.com/api/upgrades_info/graph-data"

// ErrData is the class of errors about graph data that a server does not give. It is of the class [fault.Network].
var ErrData = fault.New(fault.Network, "graph data")

// maxData is how many bytes of graph data are downloaded at most. That of the vendor has some millions.
const maxData = 256 << 20

// Download opens the graph data at a URL, or in a file that is named by its path or by file://PATH. What comes from a
// URL is written to a new file in a private directory, where it stays. The caller closes the file. Errors are those of
// [webclient.Client], or of the file system; an answer with another status than 200 is of the class [fault.Network].
func Download(ctx context.Context, client *webclient.Client, from, dir string) (*os.File, error) {
	if path, ok := strings.CutPrefix(from, "file://"); ok || !strings.Contains(from, "://") {
		return regularfile.OpenSeekable(path)
	}
	body, answer, err := client.Open(ctx, from, "")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrData, err)
	}
	defer body.Close()
	if answer.Status != http.StatusOK {
		answer.Body, _ = io.ReadAll(io.LimitReader(body, 1<<10)) // for the message
		return nil, fmt.Errorf("%w: %s: %s", ErrData, redact.Text(from), answer)
	}
	f, err := os.CreateTemp(dir, "graph-data-")
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(f, io.LimitReader(body, maxData+1))
	if err == nil && n > maxData {
		err = fmt.Errorf("%w: %s has more than %d bytes", fault.ErrLimit, redact.Text(from), maxData)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("graph data: %w", err), f.Close())
	}
	return f, nil
}
