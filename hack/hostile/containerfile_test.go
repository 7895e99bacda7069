//go:build hostile

package hostile

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// builds are the arguments of a build of a Containerfile in the directory "ctx".
var builds = []string{"build", "containerfile", "ctx", "-t", "example.com/x:v1", "--output", "oci:out:v1"}

// each repeats a text for each number below n; "#" is replaced by the number and "@" by the previous one.
func each(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.NewReplacer("#", fmt.Sprint(i), "@", fmt.Sprint(i-1)).Replace(text))
	}
	return b.String()
}

func TestContainerfiles(t *testing.T) {
	t.Parallel()
	const scratch = "FROM scratch\n"
	for _, c := range []struct {
		name, text string
		class      int
		message    string
	}{
		{"long", scratch + strings.Repeat("#", 1<<20), limit, "longer than"},
		{"continued", scratch + "LABEL a=b" + strings.Repeat("\\\nx", 100_000), limit, "longer than|lines"},
		{"heredoc without an end", scratch + "COPY <<E /x\n" + strings.Repeat("x\n", 9_000), input, "heredoc|EOF|E"},
		{"stages", each(10_000, scratch), limit, "stages"},
		{"arguments", "ARG A-1=0123456789\nARG B=0123456789\n" + strings.ReplaceAll(
			each(12, "ARG B#="+strings.Repeat("${B@}", 10)+"\n"), "B-1", "B") + scratch, limit, "variables"},
		{"environment", scratch + "ENV B=0123456789\n" + strings.ReplaceAll(
			each(12, "ENV B#="+strings.Repeat("${B@}", 10)+"\n"), "B-1", "B"), limit, "variables"},
		{"replacing", "ARG A=" + strings.Repeat("a", 4000) + "\nFROM x:${A//*a*a/$A}\n", limit, "variables"},
		{"doubling",
			"FROM scratch AS s0\nCOPY a /a\n" + strings.ReplaceAll(
				each(40, "FROM scratch AS t#\nCOPY --from=t@ / /1/\nCOPY --from=t@ / /2/\n"), "t-1", "s0"), limit,
			"files and directories"},
		{"deep", scratch + "WORKDIR /" + strings.Repeat("a/", 1000), input, "directories deep"},
		{"ONBUILD of ONBUILD", scratch + "ONBUILD ONBUILD LABEL a=b\n", input, "ONBUILD"},
		{"out of the context", scratch + "COPY ../canary/secret /\nCOPY out /x\nCOPY loop /y\nADD far/* /z/\n", input,
			"outside of the context"},
		{"names with escapes", scratch + "COPY \x1b[2J /\nUSER \x1b[2J\nSTOPSIGNAL \x1b[2J\nCOPY --chown=\x1b[2J a /\n",
			input, "syntax error in pattern"},
		{"file of the machine", scratch + "ADD file:///etc/passwd /\n", input, "does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			b.write("ctx/a", "A")
			for name, to := range map[string]string{"out": filepath.Join(b.canary, "secret"), "loop": "loop",
				"far": "../.."} {
				check(t, os.Symlink(to, filepath.Join(b.dir, "ctx", name)))
			}
			b.write("ctx/Containerfile", c.text)
			b.refused(c.class, c.message, builds...)
		})
	}
}

func TestContextsOfContainerfiles(t *testing.T) {
	t.Parallel()
	fifo := func(name string) func(*box) {
		return func(b *box) { check(b.t, syscall.Mkfifo(filepath.Join(b.dir, "ctx", name), 0o644)) }
	}
	archive := func(write func(*tar.Writer) error) func(*box) {
		return func(b *box) {
			var out bytes.Buffer
			z := gzip.NewWriter(&out)
			w := tar.NewWriter(z)
			check(b.t, write(w))
			check(b.t, errors.Join(w.Close(), z.Close()))
			b.write("ctx/a.tgz", out.String())
		}
	}
	entries := func(headers ...tar.Header) func(*box) {
		return archive(func(w *tar.Writer) error {
			for i := range headers {
				if err := w.WriteHeader(&headers[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, c := range []struct {
		name, text string
		prepare    func(*box)
		class      int
		message    string
	}{
		{"FIFO as ignore file", "COPY a.tgz /", fifo(".containerignore"), input, "not a regular file"},
		{"FIFO as ignore file beside", "COPY a.tgz /", fifo("Containerfile.dockerignore"), input, "not a regular file"},
		{"FIFO as a source", "COPY f /", fifo("f"), input, "neither a file nor a directory"},
		{"patterns", "COPY . /", func(b *box) { b.write("ctx/.containerignore", each(20_000, "*a#*\n")) }, limit,
			"patterns"},
		{"a pattern", "COPY . /", func(b *box) {
			b.write("ctx/a", "")
			b.write("ctx/.containerignore", strings.Repeat("**/", 10_000))
		}, limit, "pattern"},
		{"entry that leads out", "ADD a.tgz /", entries(tar.Header{Typeflag: tar.TypeReg, Name: "../../canary/x"}),
			input, "leads out"},
		{"device", "ADD a.tgz /", entries(tar.Header{Typeflag: tar.TypeChar, Name: "zero", Devmajor: 1, Devminor: 5}),
			input, "neither a file"},
		{"hard link out", "ADD a.tgz /",
			entries(tar.Header{Typeflag: tar.TypeLink, Name: "x", Linkname: "../../canary/secret"}), input,
			"link target"},
		{"behind a link", "ADD a.tgz /", entries(tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"},
			tar.Header{Typeflag: tar.TypeReg, Name: "l/x"}), input, "link in the same archive"},
		{"long name", "ADD a.tgz /", entries(tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("x", 900<<10)}),
			limit, "name of more than"},
		{"bomb", "ADD a.tgz /", archive(func(w *tar.Writer) error {
			err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "z", Size: 100 << 20})
			for i := 0; i < 100 && err == nil; i++ {
				_, err = w.Write(make([]byte, 1<<20))
			}
			return err
		}), limit, "times larger"},
		{"hard links", "ADD a.tgz /", archive(func(w *tar.Writer) error {
			err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "z", Size: 8 << 20})
			if err == nil {
				_, err = w.Write(make([]byte, 8<<20))
			}
			for i := 0; i < 2000 && err == nil; i++ {
				err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: fmt.Sprint(i), Linkname: "z"})
			}
			return err
		}), limit, "times larger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			b.write("ctx/Containerfile", "FROM scratch\n"+c.text+"\n")
			c.prepare(b)
			b.refused(c.class, c.message, builds...)
		})
	}
}

// ADD knows the digest of a download beforehand; a server gains nothing by sending something else.
func TestServersOfADD(t *testing.T) {
	t.Parallel()
	sum := "--checksum=sha256:" + strings.Repeat("0", 64) + " "
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/escape":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte("\x1b[2J"))
		default:
			_, _ = w.Write([]byte("something else"))
		}
	}))
	defer server.Close()
	for _, c := range []struct {
		name, source string
		class        int
		message      string
	}{
		{"unknown", server.URL + "/x", input, "a checksum is required"},
		{"something else", sum + server.URL + "/x", input, "digest"},
		{"loop", sum + server.URL + "/loop", network, "redirects"},
		{"file", sum + server.URL + "/file", network, "refusing file"},
		{"forbidden", sum + server.URL + "/escape", input, "403"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			b.write("ctx/Containerfile", "FROM scratch\nADD "+c.source+" /x\n")
			b.refused(c.class, c.message, builds...)
		})
	}
}
