package hint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/mirror/releases/graphimage"
	"github.com/operator-bindery/bindery/sqlite"
)

// Each class of errors of the machine, the network and the content has advice; what has none prints no hint.
func TestMachineHints(t *testing.T) {
	inFile := &declcfg.ValidationError{Problems: []declcfg.Problem{{Position: declcfg.Position{File: "a.yaml"}}}}
	file := func(path string, err error) error {
		return fmt.Errorf("write: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("https_proxy", "")
	t.Setenv("HTTP_PROXY", "")
	t.Setenv("http_proxy", "")
	temporary := filepath.Join(os.TempDir(), "x", "y")
	answer := func(status int) error {
		return fmt.Errorf("push: %w: %w", fault.ErrRegistry, &registries.StatusError{Status: status})
	}
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for name, c := range map[string]struct {
		err  error
		want string // empty: no hint
	}{
		"read-only":             {file("/out", syscall.EROFS), "choose an output on another one"},
		"read-only TMPDIR":      {file(temporary, syscall.EROFS), "set TMPDIR to a directory that can be written"},
		"no permission":         {file("/out", syscall.EACCES), "lacks the permission"},
		"no permission, TMPDIR": {file(temporary, syscall.EACCES), "set TMPDIR"},
		"a full disk":           {file("/out", syscall.ENOSPC), "make room on the file system"},
		"a full TMPDIR": {file(temporary, syscall.ENOSPC),
			"set TMPDIR to a directory on a file system with more room"},
		"a quota":        {file("/out", syscall.EDQUOT), "make room"},
		"too many files": {file("/out", syscall.EMFILE), "ulimit -n"},
		"a port in use": {&net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)},
			"choose another port"},
		"a file in TMPDIR":   {file(temporary, syscall.ENOENT), ""},
		"a relative path":    {file("catalgo", syscall.ENOENT), "paths start at the working directory"},
		"an absolute path":   {file("/nosuch", syscall.ENOENT), ""},
		"a directory beside": {file(os.TempDir()+"x", syscall.EROFS), "choose an output"},
		"no such host": {dial(&net.DNSError{Name: "registry.example.com", IsNotFound: true}),
			"check the name of the host; a proxy is set by HTTPS_PROXY"},
		"no such host to pull from": {&images.PullError{Name: "a", Err: dial(&net.DNSError{Name: "registry.example.com", IsNotFound: true})},
			"a mirror of it is set in registries.conf"},
		"a dead proxy": {&net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial(syscall.ECONNREFUSED)},
			"the proxy of $HTTPS_PROXY cannot be reached"},
		"a proxy without a name": {&net.OpError{Op: "proxyconnect", Net: "tcp", Err: dial(&net.DNSError{IsNotFound: true})},
			"the proxy of $HTTPS_PROXY cannot be reached"},
		"no graph data":       {fmt.Errorf("%w: %w", graphimage.ErrData, dial(&net.DNSError{IsNotFound: true})), "--graph-data names"},
		"a strict archive":    {fmt.Errorf("%w: %w", medium.ErrTooLarge, fault.ErrLimit), "without --strict-archive"},
		"nothing listens":     {dial(syscall.ECONNREFUSED), "check host and port"},
		"a timeout":           {dial(os.ErrDeadlineExceeded), "raise --timeout or --retries"},
		"not found":           {answer(http.StatusNotFound), "check the repository and the tag"},
		"denied":              {answer(http.StatusForbidden), "the registry denies it"},
		"too many requests":   {answer(http.StatusTooManyRequests), "log in, wait, or lower --jobs"},
		"the registry failed": {answer(http.StatusBadGateway), "the registry failed"},
		"the registry is full": {fmt.Errorf("push: %w: %w", fault.ErrRegistry,
			&registries.StatusError{Status: http.StatusInternalServerError, NoSpace: true}), "make room"},
		"another answer":           {answer(http.StatusTeapot), ""},
		"damaged":                  {fmt.Errorf("layer: %w", fault.ErrIntegrity), "\"cache prune --all\" removes"},
		"too large":                {fmt.Errorf("layer: %w", fault.ErrLimit), "docs/explain/security.md"},
		"an invalid catalog":       {inFile, "\"validate -o json\" prints every problem"},
		"an invalid database":      {&declcfg.ValidationError{Problems: []declcfg.Problem{{}}}, ""},
		"an error without a class": {errors.New("no"), ""},
		"an interruption":          {context.Canceled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &program.Program{Line: cmdline.Line{Path: []*cli.Command{{Name: "render"}}}}
			hint := machineHint(p, c.err)
			if c.want == "" && hint != "" || !strings.Contains(hint, c.want) || strings.Contains(hint, "\n") {
				t.Errorf("%q, want %q", hint, c.want)
			}
			var known *cmdline.Error
			if err := Add(p, c.err); errors.As(err, &known) != (c.want != "") {
				t.Errorf("got %#v", err)
			}
		})
	}
	p := &program.Program{Line: cmdline.Line{Path: []*cli.Command{{Name: "validate"}}}}
	if hint := machineHint(p, inFile); hint != "" {
		t.Errorf("validate refers to itself: %q", hint)
	}
}

// Where there is no directory for temporary files, that is the advice; not where another file in it is missing.
func TestHintOfMissingTMPDIR(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	got := localHint(&fs.PathError{Op: "open", Path: filepath.Join(os.TempDir(), "x"), Err: syscall.ENOENT})
	if got != "TMPDIR must name a directory that exists" {
		t.Error(got)
	}
}

// An error of a home directory that cannot be read has the name of the variable.
func TestHomeIsNamed(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	hint := variableHint(&fs.PathError{Op: "open", Path: filepath.Join(home, ".config"), Err: fs.ErrPermission})
	if readable(home) != nil && !strings.Contains(hint, "the variable HOME names "+home) || // root may read it
		readable(home) == nil && hint != "" || variableHint(errors.New("other")) != "" {
		t.Errorf("%q", hint)
	}
}

// A certificate for another host, or for none, is not mended by trusting an authority.
func TestHostHint(t *testing.T) {
	for want, names := range map[string][]string{"as a subject alternative name (SAN)": nil, "(other.example, b.example)": {"other.example", "b.example"}} {
		err := Add(&program.Program{}, fmt.Errorf("ping: %w", &tls.CertificateVerificationError{
			Err: x509.HostnameError{Host: "r.example", Certificate: &x509.Certificate{DNSNames: names}}}))
		var with *cmdline.Error
		if !errors.As(err, &with) || !strings.Contains(with.Hint, want) || strings.Contains(with.Hint, "--ca-file") {
			t.Errorf("%v: %+v", names, with)
		}
	}
}

// The hint of an error comes before that of its class.
func TestErrorsAdvise(t *testing.T) {
	var known *cmdline.Error
	if err := Add(&program.Program{}, fmt.Errorf("x: %w", sqlite.ErrDamaged)); !errors.As(err, &known) ||
		!strings.Contains(known.Hint, "copy the database again") || known.Class != cmdline.ClassIntegrity {
		t.Errorf("%#v", known)
	}
}

// Of several problems of an edit each says what to do, once.
func TestHintsOfSeveralProblems(t *testing.T) {
	advised := fault.Advise(edit.ErrInvalid, "write it so")
	err := edit.ErrorOf([]edit.Problem{
		{Package: "a", Channel: "x", Message: "one", Kind: advised},
		{Package: "a", Channel: "y", Message: "two", Kind: advised},
		{Package: "a", Channel: "z", Message: "three", Kind: edit.ErrNotFound},
	})
	if got, want := editHint(&program.Program{}, err), "write it so; \"list bundles\" shows the channels and their bundles"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
