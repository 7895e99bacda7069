package hint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/mirror/releases/graphimage"
)

// machineHint advises on errors that have no closer hint: of the machine, the network, damaged content and invalid
// catalogs. It is empty if there is nothing to advise, as for opm, which prints no hints.
func machineHint(p *program.Program, err error) string {
	var invalid *declcfg.ValidationError
	if hint := variableHint(err); hint != "" {
		return hint
	}
	switch class := cmdline.Classify(err); {
	case class == cmdline.ClassLocal:
		return localHint(err)
	case class == cmdline.ClassNetwork:
		return networkHint(err)
	case class == cmdline.ClassIntegrity:
		return "the content is damaged or was replaced: write it again at its source; \"cache prune --all\" removes " +
			"what was fetched before"
	case errors.Is(err, medium.ErrTooLarge):
		return "without --strict-archive such a blob gets a segment of its own, which is larger than the others"
	case class == cmdline.ClassLimit:
		return "the limit keeps hostile input from filling memory and disk; docs/explain/security.md lists all limits, docs/reference/charts.md those of charts"
	case errors.As(err, &invalid) && ofFiles(invalid) && p.Line.Leaf() != nil && p.Line.Leaf().Name != "validate":
		return "\"validate -o json\" prints every problem of a catalog directory with its file and line"
	}
	return ""
}

// ofFiles reports whether problems are those of a catalog directory, and not of a database.
func ofFiles(invalid *declcfg.ValidationError) bool {
	return slices.ContainsFunc(invalid.Problems, func(p declcfg.Problem) bool { return p.Position.File != "" })
}

// variableHint names the variable that names the file which an error is about.
func variableHint(err error) string {
	for _, name := range []string{"REGISTRY_AUTH_FILE", "CONTAINERS_REGISTRIES_CONF", "CONTAINERS_POLICY_JSON",
		"CONTAINERS_STORAGE_CONF"} {
		if file := os.Getenv(name); file != "" && strings.Contains(err.Error(), file) {
			return "the variable " + name + " names this file"
		}
	}
	var path *fs.PathError
	home := os.Getenv("HOME")
	if errors.Is(err, fs.ErrPermission) && errors.As(err, &path) && filepath.IsAbs(home) && within(home, path.Path) {
		if !errors.Is(readable(home), fs.ErrPermission) {
			return ""
		}
		return fmt.Sprintf("the variable HOME names %s, which is not of the user %d: set HOME to a directory of that user", home,
			os.Getuid())
	}
	return ""
}

// readable returns the error of reading a directory.
func readable(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return f.Close()
}

// localHint advises on errors of files, memory and ports.
func localHint(err error) string {
	var path *fs.PathError
	temporary := errors.As(err, &path) && within(os.TempDir(), path.Path)
	switch {
	case errors.Is(err, syscall.EROFS) && temporary:
		return "the file system is read-only: set TMPDIR to a directory that can be written"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only: choose an output on another one"
	case errors.Is(err, fs.ErrPermission) && temporary:
		return fmt.Sprintf("the user %d may not write there: set TMPDIR to a directory that can be written",
			os.Getuid())
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("the user %d lacks the permission: change the owner or the mode, or choose another path",
			os.Getuid())
	case errors.Is(err, syscall.ENOSPC) && temporary:
		return "set TMPDIR to a directory on a file system with more room"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on the file system; \"cache prune\" removes what was fetched before"
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program listens there: choose another port, or 0 for a free one"
	case errors.Is(err, syscall.EMFILE):
		return "raise the limit of open files with \"ulimit -n\", or lower --jobs"
	case errors.Is(err, fs.ErrNotExist) && temporary && !IsDir(os.TempDir()):
		return "TMPDIR must name a directory that exists"
	case errors.Is(err, fs.ErrNotExist) && path != nil && !filepath.IsAbs(path.Path):
		return "paths start at the working directory; check the name"
	}
	return ""
}

// IsDir reports whether a path is that of a directory.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// within reports whether a path is a directory or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// proxyHint names the variables of the proxy that cannot be reached.
func proxyHint() string {
	var names []string
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		if os.Getenv(name) != "" {
			names = append(names, "$"+name)
		}
	}
	return "the proxy of " + strings.Join(names, " and ") + " cannot be reached: correct the variable, or name the host in $NO_PROXY"
}

// networkHint advises on errors of the way to a registry, and on its answers.
func networkHint(err error) string {
	var name *net.DNSError
	var answer *registries.StatusError
	var pull *images.PullError
	var connection *net.OpError
	switch {
	case errors.As(err, &connection) && connection.Op == "proxyconnect":
		return proxyHint()
	case errors.Is(err, graphimage.ErrData):
		return "--graph-data names the graph data elsewhere: a URL, or a file that was downloaded before"
	case errors.As(err, &name) && errors.As(err, &pull):
		return "check the name of the host; a mirror of it is set in registries.conf, a proxy by HTTPS_PROXY"
	case errors.As(err, &name): // what is pushed goes to no mirror
		return "check the name of the host; a proxy is set by HTTPS_PROXY"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: check host and port, and that the server runs"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "raise --timeout or --retries"
	case !errors.As(err, &answer):
		return ""
	case answer.NoSpace:
		return "make room at the registry, then repeat the command"
	case answer.Status == http.StatusNotFound:
		return "check the repository and the tag; a private registry may also answer so to users without permission"
	case answer.Status == http.StatusForbidden:
		return "the registry denies it: ask for the permission, or log in as another user with --authfile FILE"
	case answer.Status == http.StatusTooManyRequests:
		return "the registry limits requests: log in, wait, or lower --jobs"
	case answer.Status >= 500:
		return "the registry failed: see its log, or try again with more --retries"
	}
	return ""
}
