//go:build !nobuildah

package evaluator

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/dockerfile"
	"github.com/operator-bindery/bindery/layers"
)

// The rules of copying one by one. hack/containerfile.sh compares results with buildah's.
func TestCopying(t *testing.T) {
	files := map[string]string{
		"a": "A", "b": "B", "dir/x": "X", "dir/sub/y.md": "Y", "dir/up -> ../a": "", "many/1.conf": "1",
		"many/2.conf": "2", "linkdir -> dir": "",
		"out -> /etc/passwd": "", "etc/passwd": "the context's", "loop -> loop": "", "dir/sub/nonsense -> no": "",
	}
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"a file gets the name of the destination", "COPY a /x/y", []string{"755 0:0 x/", `644 0:0 x/y "A"`}},
		{"a destination with a slash is a directory", "COPY a /x/", []string{"755 0:0 x/", `644 0:0 x/a "A"`}},
		{"what is in a directory is copied, links as links", "COPY dir /d",
			[]string{"755 0:0 d/", "755 0:0 d/sub/", "0:0 d/sub/nonsense -> no", `644 0:0 d/sub/y.md "Y"`,
				"0:0 d/up -> ../a", `644 0:0 d/x "X"`}},
		{"a link that is named is followed", "COPY linkdir/up /u", []string{`644 0:0 u "A"`}},
		{"a link out of the context is followed inside of it", "COPY out /o", []string{`644 0:0 o "the context's"`}},
		{"patterns match in the order of names", "COPY many/*.conf /c",
			[]string{"755 0:0 c/", `644 0:0 c/1.conf "1"`, `644 0:0 c/2.conf "2"`}},
		{"a link that leads nowhere is nothing on the way of a pattern", "COPY */*.conf /c/",
			[]string{"755 0:0 c/", `644 0:0 c/1.conf "1"`, `644 0:0 c/2.conf "2"`}},
		{"** is any depth", "COPY **/*.md /c/", []string{"755 0:0 c/", `644 0:0 c/y.md "Y"`}},
		{"a mode of an argument", "ARG M=0640\nCOPY --chmod=${M} a /x/y", []string{"755 0:0 x/", `640 0:0 x/y "A"`}},
		{"a mode of the environment", "ARG M=0640\nENV M=0600\nCOPY --chmod=$M a /x/y", []string{"755 0:0 x/", `600 0:0 x/y "A"`}},
		{"owner and mode", "COPY --chown=1:2 --chmod=4750 a /x/y", []string{"755 1:2 x/", `4750 1:2 x/y "A"`}},
		{"a number without a group is both", "COPY --chown=7 a /y", []string{`644 7:7 y "A"`}},
		{"relative to the working directory", "WORKDIR /w\nCOPY a b ./",
			[]string{"755 0:0 w/", `644 0:0 w/a "A"`, `644 0:0 w/b "B"`}},
		{"the user owns a working directory", "USER 5:6\nWORKDIR /w/v", []string{"755 5:6 w/", "755 5:6 w/v/"}},
		{"a file takes the place of a directory's file", "COPY a /d/x\nCOPY dir/x /d/",
			[]string{"755 0:0 d/", `644 0:0 d/x "X"`}},
		{"leaving out", "COPY --exclude=sub/*.md dir /d",
			[]string{"755 0:0 d/", "755 0:0 d/sub/", "0:0 d/sub/nonsense -> no", "0:0 d/up -> ../a",
				`644 0:0 d/x "X"`}},
		{"parents are kept", "COPY --parents dir/sub/y.md /p",
			[]string{"755 0:0 p/", "755 0:0 p/dir/", "755 0:0 p/dir/sub/", `644 0:0 p/dir/sub/y.md "Y"`}},
		{"parents below the point", "COPY --parents dir/./sub/y.md /p",
			[]string{"755 0:0 p/", "755 0:0 p/sub/", `644 0:0 p/sub/y.md "Y"`}},
		{"heredocs", "ARG V=1\nCOPY <<one <<-'two' /h/\n$V\none\n\t$V\ntwo",
			[]string{"755 0:0 h/", `644 0:0 h/one "1\n"`, `644 0:0 h/two "$V\n"`}},
		{"a stage's owners are kept", "COPY --chown=3:4 a /x/y\nFROM scratch\nCOPY --from=0 /x /z",
			[]string{"755 0:0 z/", `644 3:4 z/y "A"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got, err := evaluate(t, "FROM scratch\n"+c.text, Options{Context: contextDir(t, files)})
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v\ngot  %q\nwant %q", err, got, c.want)
			}
		})
	}
	for _, c := range []struct{ name, text, want string }{
		{"out of the context", "COPY ../x /",
			"Containerfile:2: COPY: \"../x\" is outside of the context; copy what is needed into the context"},
		{"a loop of links", "COPY loop /", "too many links: \"loop\" leads through more than 40"},
		{"nothing there", "COPY nothing /", `"nothing" does not exist`},
		{"a pattern matches a link that leads nowhere", "COPY dir/sub/non* /d/",
			`"dir/sub/nonsense" is a dangling link`},
		{"nothing matches", "COPY *.nothing /", `nothing matches "*.nothing"`},
		{"several files to a file", "COPY a /f\nCOPY a b /f", "exists and is not a directory"},
		{"a user without accounts", "COPY --chown=me a /", "the image has no /etc/passwd; give the number"},
		{"a repository", "ADD git@example.com:x.git /", "fetching repositories is not supported; check it out first"},
		{"a repository with a password", "ADD ssh://u:secret@example.com/x.git /", "fetching repositories is not supported; check it out first"},
		{"a commit of a repository", "ADD --checksum=abcdef git://example.com/x.git /",
			`neither fetching repositories nor --checksum=abcdef, which is a commit of one, is supported; check out that commit first and copy the directory`},
		{"a commit of a repository over HTTPS", "ADD --checksum=sha256:abcdef https://u:secret@example.com/x.git#v1 /",
			`nor --checksum=sha256:abcdef, which is a commit of one, is supported; check out that commit first`},
		{"the directory of a repository", "ADD --keep-git-dir=true https://example.com/x.git /",
			"--keep-git-dir: fetching repositories is not supported; check the repository out first"},
		{"a URL to COPY", "COPY https://example.com/x /", "COPY takes no URL; use ADD with --checksum"},
		{"a URL that is not known", "ADD https://u:secret@example.com/x /",
			`"https://u:xxxxx@example.com/x": a checksum is required`},
		{"a checksum that is none", "ADD --checksum=sha512:12 https://example.com/x /",
			`--checksum=sha512:12 is no digest of sha256, sha384 or sha512: invalid checksum digest length; add --checksum`},
		{"a mode of an argument that is none", "ARG M=u+x\nCOPY --chmod=${M} a /", "--chmod=u+x is no mode; give up to four octal digits"},
		{"a mode of an argument that is not there", "COPY --chmod=${M} a /", "--chmod= is no mode; give up to four octal digits"},
		{"a stage that comes later", "COPY --from=1 a /", "--from=1: there is no such stage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := evaluate(t, "FROM scratch\n"+c.text, Options{Context: contextDir(t, files)})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestWhatIsIgnoredIsNotCopied(t *testing.T) {
	files := map[string]string{"a": "A", "k/b": "B", "k/c": "C", "d/e": "E",
		".containerignore": "# all but\nk\n!k/b\n**/e\n.*ignore\n", ".dockerignore": "a\n"}
	dir := contextDir(t, files)
	_, got, err := evaluate(t, "FROM scratch\nCOPY . /", Options{Context: dir})
	if want := []string{`644 0:0 a "A"`, "755 0:0 d/", "755 0:0 k/", `644 0:0 k/b "B"`}; err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("%v %q", err, got)
	}
	if _, _, err := evaluate(t, "FROM scratch\nCOPY k/c /", Options{Context: dir}); err == nil ||
		!strings.Contains(err.Error(), "all of it is excluded; look at the ignore file") {
		t.Error(err)
	}
	// An ignore file next to the Containerfile takes precedence over the one in the context.
	beside := filepath.Join(contextDir(t, map[string]string{"F.dockerignore": "*\n!a\n"}), "F")
	if _, got, err := evaluate(t, "FROM scratch\nCOPY . /", Options{Context: dir, IgnoreBeside: beside}); err != nil ||
		!slices.Equal(got, []string{`644 0:0 a "A"`}) {
		t.Errorf("%v %q", err, got)
	}
}

// A link to an excluded file does not include it, even if the link's name is not excluded.
func TestLinksDoNotBringInWhatIsIgnored(t *testing.T) {
	dir := contextDir(t,
		map[string]string{"secret/key": "K", "secret/deep/key": "K", "secret/public": "P", "link -> secret": "",
			"tl -> secret/key": "", "sub/up -> ../link": "", "open/o": "O", "to -> open": "",
			".containerignore": "secret\n!secret/public\n"})
	for _, c := range []struct {
		text string
		want []string // nil: the instruction fails because everything is excluded
	}{
		{"COPY tl /tl", nil},
		{"COPY link/key /k", nil},
		{"COPY link/deep /k", []string{"755 0:0 k/"}}, // like COPY secret/deep, where one file is not excluded
		{"COPY t? /k", []string{`644 0:0 k/o "O"`}},
		{"ADD tl /tl", nil},
		{"COPY --parents link/key /k", nil},
		{"COPY link /l", []string{"755 0:0 l/", `644 0:0 l/public "P"`}},
		{"COPY sub/up /l", []string{"755 0:0 l/", `644 0:0 l/public "P"`}},
		{"COPY sub/up/public /l", []string{`644 0:0 l "P"`}},
		{"COPY to /l", []string{"755 0:0 l/", `644 0:0 l/o "O"`}},
	} {
		_, got, err := evaluate(t, "FROM scratch\n"+c.text, Options{Context: dir})
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), "all of it is excluded; look at the ignore file") {
				t.Errorf("%s: %v %q", c.text, err, got)
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) && !slices.Equal(got[min(1, len(got)):], c.want) {
			t.Errorf("%s: %v %q, want %q", c.text, err, got, c.want)
		}
	}
}

// A source path written literally means the directory of that name only, even if the name has special characters.
func TestWrittenSourcesMeanThatDirectory(t *testing.T) {
	for _, name := range []string{"plain", "two words", "<<EOF", "3<<EOF", "--from=x", "-", "git@h:r", "me@host:path",
		"https:", "a$b", "${HOME}",
		`back\slash`, `q"uote`, "it's", "[ab]", "st*r", "wh?t", "#hash", "ä", `\`, "a#b", "x=y", "end\\"} {
		decoys := map[string]string{"a/f": "no", "b/f": "no", "star/f": "no", "what/f": "no", "backslash/f": "no",
			"other/f": "no", name + "/f": "yes"}
		arguments, err := dockerfile.Copy(name, "/configs")
		if err != nil {
			t.Fatal(err)
		}
		for _, instruction := range []string{"ADD ", "COPY "} {
			_, got, err := evaluate(t, "FROM scratch\n"+instruction+arguments+"\n",
				Options{Context: contextDir(t, decoys)})
			if want := []string{"755 0:0 configs/", `644 0:0 configs/f "yes"`}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%s%s: %v %q", instruction, arguments, err, got)
			}
		}
	}
	if _, err := dockerfile.Copy("a\nRUN evil", "/configs"); err == nil {
		t.Error("a name with a newline is taken")
	}
}

// The base's links and directories decide where files go; its modes and owners stay.
func TestCopyingIntoABase(t *testing.T) {
	dir := func(name string, mode int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}
	}
	file := func(name string, mode int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Uid: 1, Gid: 2}
	}
	link := func(name, to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	archive := tarFile(t, dir("usr/", 0o755), dir("usr/bin/", 0o711), file("usr/bin/tool", 0o4755),
		link("bin", "usr/bin"), dir("tmp/", 0o1777),
		dir("etc/", 0o755), file("etc/conf", 0o600), link("abs", "/tmp"), link("out", "../../../../tmp"))
	context := contextDir(t, map[string]string{"base.tar": archive, "a": "A", "etc/conf/x": "X", "bin/z": "Z",
		"passwd": "me:x:10:20::/:\n", "group": "us:x:30:\n"})
	base := "FROM scratch\nADD base.tar /\nCOPY passwd group /etc/\n"
	named := layout(t, base, Options{Context: context})
	for name, from := range map[string]string{"an image": "FROM " + named + "\n", "a stage": base + "FROM 0\n"} {
		for _, c := range []struct {
			text string
			want []string
		}{
			{"COPY a /bin", []string{"755 0:0 usr/", "711 0:0 usr/bin/", `644 0:0 usr/bin/a "A"`}},
			{"COPY a /bin/b", []string{"755 0:0 usr/", "711 0:0 usr/bin/", `644 0:0 usr/bin/b "A"`}},
			{"COPY a /abs/", []string{"1777 0:0 tmp/", `644 0:0 tmp/a "A"`}},
			{"COPY a /out/n/", []string{"1777 0:0 tmp/", "755 0:0 tmp/n/", `644 0:0 tmp/n/a "A"`}},
			{"COPY --chown=me a /c", []string{`644 10:20 c "A"`}},
			{"COPY --chown=me:us a /c", []string{`644 10:30 c "A"`}},
			{"COPY --chown=1:us a /c", []string{`644 1:30 c "A"`}},
			// A directory replaces a link or a file, as in other builders.
			{"COPY bin /bin", []string{"755 0:0 usr/", "711 0:0 usr/bin/", `644 0:0 usr/bin/z "Z"`}},
			{"COPY etc /etc", []string{"755 0:0 etc/", "755 0:0 etc/conf/", `644 0:0 etc/conf/x "X"`}},
			// A directory that was replaced by a file and created again does not show the base's files.
			{"COPY a /usr/bin2\nCOPY --from=f / /",
				[]string{"755 0:0 usr/", `644 0:0 usr/bin2 "A"`, `644 0:0 usr/q "A"`}},
			{"COPY --from=f /usr /usr\nUSER 9\nWORKDIR /usr", []string{"755 0:0 usr/", `644 0:0 usr/q "A"`}},
			{"COPY --from=g / /\nCOPY --from=h / /",
				[]string{"755 0:0 usr/", "755 0:0 usr/bin/", `644 0:0 usr/bin/.wh..wh..opq ""`,
					`644 0:0 usr/bin/q "A"`}},
			{"COPY --from=" + named + " /usr/bin /b", []string{"755 0:0 b/", `4755 1:2 b/tool "usr/bin/tool"`}},
		} {
			t.Run(name+"/"+c.text, func(t *testing.T) {
				before := "FROM scratch AS f\nCOPY a /usr/q\nFROM scratch AS g\nCOPY a /usr/bin\nFROM scratch AS " +
					"h\nCOPY a /usr/bin/q\n"
				text := before + from + c.text
				if name == "a stage" {
					text = before + "FROM scratch AS base\n" + strings.TrimPrefix(base,
						"FROM scratch\n") + "FROM base\n" + c.text
				}
				_, got, err := evaluate(t, text, Options{Context: context})
				if err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%v\ngot  %q\nwant %q", err, got, c.want)
				}
			})
		}
	}
}

func TestArchives(t *testing.T) {
	file := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o640, Uid: 3, Gid: 4}
	}
	good := tarFile(t, file("d/f"), tar.Header{Typeflag: tar.TypeLink, Name: "h", Linkname: "d/f"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(good))
	z.Close()
	unpacked := []string{"755 0:0 u/", "755 0:0 u/d/", `640 3:4 u/d/f "d/f"`, `640 3:4 u/h "d/f"`, "0:0 u/l -> /etc"}
	for _, c := range []struct {
		name, content string
		want          []string
		err           string
	}{
		{"an archive is unpacked with its owners", good, unpacked, ""},
		{"a compressed one too", packed.String(), unpacked, ""},
		{"what only begins like one is a file", "\x1f\x8bnothing of the sort",
			[]string{`644 0:0 u "\x1f\x8bnothing of the sort"`}, ""},
		{"out of the archive", tarFile(t, file("../../x")), nil, "leads out of the archive"},
		{"a link of the archive is not followed",
			tarFile(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "e", Linkname: "/etc"}, file("e/passwd")), nil,
			`"e" is a link in the same archive`},
		{"a hard link to elsewhere", tarFile(t, tar.Header{Typeflag: tar.TypeLink, Name: "e", Linkname: "/etc/shadow"}),
			nil, "link target"},
		{"a device", tarFile(t, tar.Header{Typeflag: tar.TypeChar, Name: "null"}), nil,
			"neither a file, a directory nor a link"},
		{"files that are mostly holes", holes(t, 1<<40), nil,
			"limit exceeded: the files of the archive have more than"},
		{"cut short", good[:1100], nil, "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got, err := evaluate(t, "FROM scratch\nADD t /u",
				Options{Context: contextDir(t, map[string]string{"t": c.content})})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Error(err)
				}
			} else if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v\ngot  %q\nwant %q", err, got, c.want)
			}
		})
	}
	if _, got, err := evaluate(t, "FROM scratch\nCOPY t /u",
		Options{Context: contextDir(t, map[string]string{"t": packed.String()})}); err != nil || len(got) != 1 {
		t.Errorf("COPY unpacks: %v %q", err, got)
	}
}

// holes writes an archive of a sparse file without data in GNU tar's PAX format 0.1.
func holes(t *testing.T, size int64) string {
	t.Helper()
	text := ""
	for _, r := range [][2]string{{"GNU.sparse.major", "0"}, {"GNU.sparse.minor", "1"},
		{"GNU.sparse.size", strconv.FormatInt(size, 10)}, {"GNU.sparse.numblocks", "0"}} {
		n := len(r[0]) + len(r[1]) + 3
		n += len(strconv.Itoa(n + 2))
		text += fmt.Sprintf("%d %s=%s\n", n, r[0], r[1])
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{{Typeflag: tar.TypeReg, Name: "x", Mode: 0o644, Size: int64(len(text))},
		{Typeflag: tar.TypeReg, Name: "f", Mode: 0o644}} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			io.WriteString(w, text)
		}
	}
	w.Close()
	archive := b.Bytes()
	copy(archive[156:], "x") // turn the first header into a PAX record, which the library does not write
	copy(archive[148:], "        ")
	sum := 0
	for _, c := range archive[:512] {
		sum += int(c)
	}
	copy(archive[148:], fmt.Sprintf("%06o\x00 ", sum))
	return string(archive)
}

// Each platform unpacks the archive, but the result is one layer for all of them.
func TestArchivesAreOneLayerForAllPlatforms(t *testing.T) {
	archive := tarFile(t, tar.Header{Typeflag: tar.TypeReg, Name: "f", Mode: 0o644})
	e, err := evaluator(t, "FROM scratch\nADD t /", Options{Context: contextDir(t, map[string]string{"t": archive})})
	if err != nil {
		t.Fatal(err)
	}
	var got []*layers.Layer
	for _, arch := range []string{"amd64", "arm64"} {
		s, err := e.Evaluate(t.Context(), v1.Platform{OS: "linux", Architecture: arch})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Layers[0])
	}
	if got[0] != got[1] {
		t.Error("it is made twice")
	}
}

func TestWhatIsFetchedIsKnown(t *testing.T) {
	server := httptest.NewServer(http.FileServer(http.Dir(contextDir(t, map[string]string{"f.txt": "fetched"}))))
	defer server.Close()
	sum := digest.FromString("fetched").String()
	_, got, err := evaluate(t, "FROM scratch\nADD --checksum="+sum+" "+server.URL+"/f.txt /d/", Options{})
	if want := []string{"755 0:0 d/", `600 0:0 d/f.txt "fetched"`}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %q", err, got)
	}
	for _, a := range []digest.Algorithm{digest.SHA384, digest.SHA512} {
		_, again, err := evaluate(t, "FROM scratch\nADD --checksum="+a.FromString("fetched").String()+" "+server.URL+"/f.txt /d/", Options{})
		if err != nil || !slices.Equal(again, got) {
			t.Errorf("%s: %v %q", a, err, again)
		}
		if _, _, err := evaluate(t, "FROM scratch\nADD --checksum="+a.FromString("else").String()+" "+server.URL+"/f.txt /d/",
			Options{}); err == nil || !strings.Contains(err.Error(), "digest mismatch: "+string(a)) {
			t.Errorf("%s: %v", a, err)
		}
	}
	for url, want := range map[string]string{server.URL + "/f.txt": "digest mismatch: " + sum,
		server.URL + "/none": "404"} {
		if _, _, err := evaluate(t, "FROM scratch\nADD --checksum="+digest.FromString("else").String()+" "+url+" /d/",
			Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
