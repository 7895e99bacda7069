//go:build !nobuildah

package evaluator

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
)

func TestProblemsAreToldTogetherWithTheirLines(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{"Containerfile: it has no instructions"}},
		{"COPY a b\nFORM x\n", []string{"Containerfile:1: COPY: no stage has begun; put FROM before it",
			`Containerfile:2: unknown instruction "form"; instructions are ADD`, "Containerfile: it has no FROM"}},
		{"FROM scratch\n\nLABEL a='b\n", []string{"Containerfile:3: "}},
		{"FROM scratch\nCOPY a /x\nLABEL a=b\nCOPY b /\nRUN x\n",
			[]string{"Containerfile:2: COPY: ", "Containerfile:4: COPY: ", "Containerfile:5: RUN needs a process"}},
		{"FROM scratch\nSTOPSIGNAL nonsense\nENV\nCOPY --chmod=9 a /\nFROM 0\n",
			[]string{"Containerfile:2: STOPSIGNAL", "Containerfile:4: COPY"}},
		{"FROM scratch\nEXPOSE 80 a/tcp\nEXPOSE 9-8\nEXPOSE 1/ip\nCOPY --chmod=u+x a /\nUSER\n", []string{
			`Containerfile:2: EXPOSE: "a/tcp" is no port; write PORT`, `Containerfile:3: EXPOSE: "9-8"`,
			`Containerfile:4: EXPOSE: "1/ip"`,
			"Containerfile:5: COPY: --chmod=u+x is no mode; give up to four octal digits",
			"Containerfile:6: USER requires exactly one argument"}},
		{"ARG\nFROM\n",
			[]string{"Containerfile:1: ARG: it needs an argument", "Containerfile:2: FROM: it needs an argument"}},
		{"FROM $X\n", []string{"Containerfile:1: FROM: "}},
		{"FROM oci:/nowhere:v1\n", []string{"Containerfile:1: FROM: "}},
		{"FROM scratch\nCOPY <<EOF /x\nnever ends\n", []string{"Containerfile:2: EOF: unterminated heredoc"}},
	} {
		_, _, err := evaluate(t, c.text, Options{})
		if err == nil {
			t.Errorf("%q: no error", c.text)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v\nlacks %q", c.text, err, want)
			}
		}
	}
	if _, err := Parse("x", make([]byte, MaxText+1)); err == nil {
		t.Error("a text without end is parsed")
	}
}

func TestConfiguration(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       v1.ImageConfig
	}{
		{"words and quotes", `LABEL a=b "c d"='e f' g=\$h` + "\nENV A=1 B=\"x $Z\" C=${H:-no}${N:-def}${H:+yes}",
			v1.ImageConfig{Env: []string{"A=1", "B=x ", "C=hdefyes"},
				Labels: map[string]string{"a": "b", "c d": "e f", "g": "$h"}}},
		{"forms of commands", "CMD a b\nENTRYPOINT [\"x\",\"y\"]",
			v1.ImageConfig{Cmd: []string{"/bin/sh", "-c", "a b"}, Entrypoint: []string{"x", "y"}}},
		{"arguments", "ARG A=1\nARG G\nLABEL a=$A g=$G t=$TARGETARCH",
			v1.ImageConfig{Labels: map[string]string{"a": "given", "g": "heading", "t": ""}}},
		{"the platform", "ARG TARGETARCH\nARG TARGETPLATFORM\nLABEL t=$TARGETARCH p=$TARGETPLATFORM",
			v1.ImageConfig{Labels: map[string]string{"t": "amd64", "p": "linux/amd64"}}},
		{"the rest", "EXPOSE 80 81/udp\nVOLUME /a /b\nUSER 1:2\nSTOPSIGNAL SIGTERM\nWORKDIR /",
			v1.ImageConfig{ExposedPorts: map[string]struct{}{"80/tcp": {}, "81/udp": {}},
				Volumes: map[string]struct{}{"/a": {}, "/b": {}}, User: "1:2", StopSignal: "SIGTERM", WorkingDir: "/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _, err := evaluate(t, "ARG G=heading\nFROM scratch\nENV H=h\n"+c.text,
				Options{Args: map[string]string{"A": "given"}})
			if err != nil {
				t.Fatal(err)
			}
			got := s.Config
			if c.name == "words and quotes" {
				got.Env = got.Env[2:] // the default PATH and H
				c.want.Env = []string{"A=1", "B=x ", "C=hdefyes"}
			} else {
				got.Env = nil
			}
			text, _ := json.Marshal(got)
			want, _ := json.Marshal(c.want)
			if string(text) != string(want) {
				t.Errorf("got  %s\nwant %s", text, want)
			}
		})
	}
}

// The base's configuration is inherited, ENTRYPOINT resets its CMD, and its ONBUILD instructions run. A stage inherits
// the arguments of the stage in its FROM, with their final values.
func TestArgumentsAreInherited(t *testing.T) {
	for _, c := range []struct {
		name, text string
		args       map[string]string
		want       string
	}{
		{"a default from before the first FROM",
			"ARG A=a\nFROM scratch AS one\nARG A\nARG C=c-$A\nFROM one\nLABEL two=$C", nil, "c-a"},
		{"through two stages",
			"ARG A=a\nFROM scratch AS one\nARG A\nARG C=c-$A\nFROM one AS two\nFROM two\nLABEL two=$C", nil, "c-a"},
		{"by number", "ARG A=a\nFROM scratch\nARG A\nARG C=c-$A\nFROM 0\nLABEL two=$C", nil, "c-a"},
		{"a given value", "ARG A=a\nFROM scratch AS one\nARG A\nARG C=c-$A\nFROM one\nLABEL two=$C",
			map[string]string{"A": "given"}, "c-given"},
		{"an own default", "ARG A=a\nFROM scratch AS one\nARG A\nARG C=c-$A\nFROM one\nARG C=own-$A\nLABEL two=$C", nil,
			"own-a"},
		{"not without the stage", "ARG A=a\nFROM scratch AS one\nARG A\nARG C=c-$A\nFROM scratch\nLABEL two=x$C", nil,
			"x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _, err := evaluate(t, c.text, Options{Args: c.args})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Config.Labels["two"]; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	f, err := Parse("Containerfile",
		[]byte("ARG TAG=v1\nFROM oci:lay:$TAG AS one\nCOPY --from=dir:d a /\nFROM --platform=linux/s390x oci:lay:v1\n"+
			"COPY --from=one --chown=1 a /\nFROM one\nCOPY --from=dir:d b /\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.References(map[string]string{"TAG": "v2"}, amd64)
	if err != nil {
		t.Fatal(err)
	}
	s390x := v1.Platform{OS: "linux", Architecture: "s390x"}
	want := []reference{{"oci:lay:v2", amd64}, {"dir:d", amd64}, {"oci:lay:v1", s390x}, {"one", amd64}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestConfigurationOfABase(t *testing.T) {
	text := "FROM scratch AS base\nCOPY a /a\nENV X=1 Y=$X\nLABEL l=1\nEXPOSE 1\nCMD [\"base\"]\nONBUILD COPY a " +
		"/b\nONBUILD LABEL on=build\nFROM base\nENV X=2\nLABEL m=2\nENTRYPOINT [\"new\"]\n"
	s, lines, err := evaluate(t, text,
		Options{Context: contextDir(t, map[string]string{"a": "A"}), Format: build.FormatDocker})
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"l": "1", "m": "2", "on": "build"}; !reflect.DeepEqual(s.Config.Labels, want) ||
		len(s.Config.Cmd) != 0 || !slices.Equal(s.Config.Env[1:], []string{"Y=", "X=2"}) {
		t.Errorf("%+v", s.Config)
	}
	if len(s.Layers) != 2 || !slices.Equal(lines, []string{`644 0:0 b "A"`}) {
		t.Errorf("%d layers, %q", len(s.Layers), lines)
	}
	config, err := s.ConfigText(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var read v1.Image
	if err := json.Unmarshal(config, &read); err != nil {
		t.Fatal(err)
	}
	filled := 0
	for _, h := range read.History {
		if !h.EmptyLayer {
			filled++
		}
	}
	if filled != 2 || !strings.Contains(read.History[0].CreatedBy, "#(nop) COPY a in /a") {
		t.Errorf("%+v", read.History)
	}
}

func TestDockerFormatHasMore(t *testing.T) {
	text := "FROM scratch\nHEALTHCHECK --interval=5s --retries=3 CMD x y\nSHELL [\"/s\"]\nONBUILD LABEL a=b\n"
	var told []string
	for format, want := range map[build.Format]bool{build.FormatDocker: true, build.FormatOCI: false} {
		s, _, err := evaluate(t, text, Options{Format: format, Warn: func(w string) { told = append(told, w) }})
		if err != nil {
			t.Fatal(err)
		}
		config, err := s.ConfigText(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{`"Healthcheck":{"Test":["CMD-SHELL","x y"],"Interval":5000000000,"Retries":3}`,
			`"OnBuild":["LABEL a=b"]`, `"Shell":["/s"]`} {
			if strings.Contains(string(config), part) != want {
				t.Errorf("%s: %s: %s", format, part, config)
			}
		}
	}
	if len(told) != 3 || !strings.Contains(strings.Join(told, " "), "Containerfile: HEALTHCHECK is dropped") {
		t.Errorf("%q", told)
	}
}

func TestListsThatAreNoneAreTold(t *testing.T) {
	var told []string
	_, _, err := evaluate(t, "FROM scratch\nEXPOSE 80 8000-8010/TCP 53/udp\nCMD ['a', 'b']\nENTRYPOINT [\"a\"]\n",
		Options{Warn: func(w string) { told = append(told, w) }})
	if err != nil || len(told) != 1 || !strings.HasPrefix(told[0], "Containerfile:3: CMD: not a JSON list") {
		t.Errorf("%v %q", err, told)
	}
}

// Unneeded stages are not evaluated: their images do not exist here.
func TestOnlyNeededStagesAreEvaluated(t *testing.T) {
	text := "FROM oci:/nowhere:v1 AS unused\nRUN make\nFROM scratch AS one\nCOPY a /a\nFROM scratch AS two\nCOPY " +
		"--from=one /a /b\nFROM unused\n"
	dir := contextDir(t, map[string]string{"a": "A"})
	for _, target := range []string{"two", "TWO", "2"} {
		if _, lines, err := evaluate(t, text, Options{Context: dir, Target: target}); err != nil || !slices.Equal(lines,
			[]string{`644 0:0 b "A"`}) {
			t.Errorf("%s: %v %q", target, err, lines)
		}
	}
	e, err := evaluator(t, text, Options{Context: dir, Target: "two"})
	if err != nil {
		t.Fatal(err)
	}
	if runs, err := e.Runs(amd64); err != nil || runs != nil {
		t.Error(runs, err)
	}
	if e, err = evaluator(t, text, Options{Context: dir}); err != nil {
		t.Fatal(err)
	}
	if runs, err := e.Runs(amd64); err != nil || runs == nil || len(runs.Problems) != 1 || runs.Problems[0].Line != 2 || !errors.Is(runs, ErrRun) {
		t.Error(runs, err)
	}
	if _, _, err := evaluate(t, text, Options{Target: "three"}); err == nil || !strings.Contains(err.Error(),
		"there are unused, one, two, 3") {
		t.Error(err)
	}
}

func TestFillingACacheIsRecognisedByWhatItMeans(t *testing.T) {
	for text, want := range map[string]filling{
		`["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]`: {"/bin/opm",
			"/configs", "/tmp/cache"},
		`["opm","serve","--cache-only=true","--cache-dir","/c","configs","--debug"]`: {"opm", "configs",
			"/c"},
		`/usr/bin/opm serve /configs --cache-only --cache-dir=/tmp/cache -t /dev/null`: {"/usr/bin/opm",
			"/configs", "/tmp/cache"},
		`/bin/opm serve /configs --cache-dir=/tmp/cache --cache-only && rm -rf /x`:                   {},
		`/bin/opm serve $C --cache-dir=/tmp/cache --cache-only`:                                      {},
		`["/bin/opm", "serve", "/configs", "--cache-dir=/tmp/cache"]`:                                {},
		`["/bin/opm", "serve", "/configs", "--cache-only=false", "--cache-dir=/tmp/cache"]`:          {},
		`["/bin/opm", "serve", "/configs", "--cache-only"]`:                                          {},
		`["/bin/opm", "serve", "/a", "/b", "--cache-dir=/c", "--cache-only"]`:                        {},
		`["/bin/opm", "serve", "/a", "--what=x", "--cache-dir=/c", "--cache-only"]`:                  {},
		`["/bin/opm", "render", "/a", "--cache-dir=/c", "--cache-only"]`:                             {},
		`["/bin/other", "serve", "/configs", "--cache-dir=/tmp/cache", "--cache-only"]`:              {},
		`["/bin/opm", "serve", "/a", "--cache-dir=/c", "--cache-only", "--cache-enforce-integrity"]`: {},
	} {
		e, err := evaluator(t, "FROM scratch\nRUN "+text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs, err := e.Runs(amd64)
		if err != nil || (runs == nil) != (want.program != "") {
			t.Errorf("%s: %v %v", text, runs, err)
		}
		var words []string
		shell := json.Unmarshal([]byte(text), &words) != nil
		if shell {
			words = []string{text}
		}
		if got, ok := fillingOf(words, shell); ok != (want.program != "") || ok && got != want {
			t.Errorf("%s: %+v %v", text, got, ok)
		}
	}
}

// The Dockerfile that opm generates: the cache is built once for all platforms, and later stages can copy it.
func TestOpmsDockerfile(t *testing.T) {
	opm := layout(t, "FROM scratch\nCOPY a /bin/opm\n",
		Options{Context: contextDir(t, map[string]string{"a": "no program of ours"})})
	text := "FROM " + opm +
		" as builder\nADD cat /configs\nRUN [\"/bin/opm\", \"serve\", \"/configs\", \"--cache-dir=/tmp/cache\", " +
		"\"--cache-only\"]\n" +
		"FROM scratch\nENTRYPOINT [\"/bin/opm\"]\nCMD [\"serve\", \"/configs\", \"--cache-dir=/tmp/cache\"]\nCOPY " +
		"--from=builder /configs /configs\n" +
		"COPY --from=builder /tmp/cache /tmp/cache\nLABEL operators.operatorframework.io.index.configs.v1=/configs\n"
	made := 0
	cache := func(_ context.Context, configs fs.FS, _, dir string, kind build.ServeCache) ([]layers.Entry, error) {
		made++
		data, err := fs.ReadFile(configs, "p/catalog.yaml")
		if err != nil || kind != build.ServeCachePogreb || dir != "tmp/cache" {
			t.Error(err, kind, dir)
		}
		return []layers.Entry{layers.Dir("tmp/cache", 0o775), layers.Bytes("tmp/cache/digest", 0o644, data)}, nil
	}
	e, err := evaluator(t, text,
		Options{Context: contextDir(t, map[string]string{"cat/p/catalog.yaml": "schema: x"}), fill: cache})
	if err != nil {
		t.Fatal(err)
	}
	var one *layers.Layer
	for range 2 {
		s, err := e.Evaluate(t.Context(), amd64)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := layerLines(t, s.Layers[0])
		want := []string{"755 0:0 configs/", "755 0:0 configs/p/", `644 0:0 configs/p/catalog.yaml "schema: x"`,
			"755 0:0 tmp/", "755 0:0 tmp/cache/", `644 0:0 tmp/cache/digest "schema: x"`}
		if err != nil || !slices.Equal(lines, want) {
			t.Errorf("%v %q", err, lines)
		}
		if one != nil && one != s.Layers[0] {
			t.Error("the same layer is made twice")
		}
		one = s.Layers[0]
	}
	if made != 1 {
		t.Errorf("the cache is made %d times", made)
	}
	without := strings.Replace(text, opm, "scratch", 1)
	if _, _, err := evaluate(t, without, Options{Context: contextDir(t, map[string]string{"cat/x": ""}),
		fill: cache}); err == nil || !strings.Contains(err.Error(), `the image has no program "/bin/opm"`) {
		t.Error(err)
	}
}

// Cancellation is returned as such and not as a problem of the file.
func TestInterruptionIsNoProblemOfTheFile(t *testing.T) {
	cause := errors.New("a signal")
	ctx, stop := context.WithCancelCause(t.Context())
	e, err := evaluator(t, "FROM image\nCOPY a /a",
		Options{Open: func(context.Context, string, v1.Platform) (*images.Image, error) {
			stop(cause)
			return nil, errors.New("broken off")
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Evaluate(ctx, amd64); err != cause {
		t.Error(err)
	}
}

func TestFilesThatChangeMeanwhileAreErrors(t *testing.T) {
	dir := contextDir(t, map[string]string{"a": "A"})
	e, err := evaluator(t, "FROM scratch\nCOPY a /a", Options{Context: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Evaluate(t.Context(), amd64)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := layerLines(t, s.Layers[0]); !errors.Is(err, layers.ErrChanged) {
		t.Error(err)
	}
	// A symbolic link that replaces the file cannot point outside the context.
	secret := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("A"), 0o644), os.Remove(filepath.Join(dir, "a")),
		os.Symlink(secret, filepath.Join(dir, "a"))); err != nil {
		t.Fatal(err)
	}
	if lines, err := layerLines(t, s.Layers[0]); err == nil {
		t.Errorf("%q", lines)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("FROM scratch\nCOPY <<EOF /x\nEOF\nENV a=${b:-c}\nONBUILD RUN x\nHEALTHCHECK NONE\n")
	f.Add("# escape=`\nARG A=b\nFROM $A AS x\nFROM x\nCOPY --from=x [\"a\",\"b\"]\n")
	dir := contextDir(f, map[string]string{"a": "A", "d/b": "B"})
	none := func(context.Context, string, v1.Platform) (*images.Image, error) { return nil, errors.New("no images") }
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse("f", []byte(text))
		if err != nil {
			return
		}
		e, err := New(file, Options{Dir: t.TempDir(), Context: dir, Open: none})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		_, _ = e.Runs(amd64)
		_, _ = e.Evaluate(t.Context(), amd64)
	})
}
