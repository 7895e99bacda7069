package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A time that documents cannot write in four digits of a year is refused, whatever would have written it.
func TestSourceDateHasAYearOfFourDigits(t *testing.T) {
	dir := clitest.WorkDir(t)
	layout := supplytest.Unpack(t, "unsigned")
	for date, good := range map[string]bool{"0": true, "253402300799": true, "253402300800": false,
		"9223372036854775807": false, "99999999999999999999": false, "-1": false, "1e3": false, " 1": false} {
		for _, args := range []string{
			"build catalog cat -t a/b:v1 --server none --sbom spdx --sbom cyclonedx --output oci:made-" + strings.TrimSpace(date),
			"sbom oci:" + layout + ":v1",
			"attach oci:" + layout + ":v1 README.md --type text/plain",
		} {
			before := clitest.Snapshot(t, layout)
			cmd := clitest.Command(dir, "bindery", strings.Fields(args)...)
			cmd.Env = append(cmd.Env, "SOURCE_DATE_EPOCH="+date)
			got := clitest.Finish(t, cmd)
			if good && got.Status != 0 || !good && (got.Status != 1 || got.Stdout != "" ||
				!strings.Contains(got.Stderr, "SOURCE_DATE_EPOCH is ") || !strings.Contains(got.Stderr, "expected seconds since 1970")) {
				t.Errorf("%q: %s: %+v", date, args, got)
			}
			if !good && clitest.Snapshot(t, layout) != before {
				t.Errorf("%q: %s has written", date, args)
			}
		}
	}
}

// What is attached has a media type: nothing else is stored.
func TestTypesOfAttachedFiles(t *testing.T) {
	dir := clitest.WorkDir(t)
	layout := supplytest.Unpack(t, "unsigned")
	before := clitest.Snapshot(t, layout)
	for _, kind := range []string{"a/b\n", "../x", "a", "a/", "/b", "a/b/c", "a b/c", " a/b", "a/b ", "a/b;x=y", "é/x", "a/\x1b[31m",
		"a/.b", "a/" + strings.Repeat("b", 128), "a,b/c", "a/b\t"} {
		for _, flags := range [][]string{{"--type", kind}, {"--type", "text/plain", "--media-type", kind}} {
			got := clitest.RunProgram(t, dir, "bindery", append([]string{"attach", "oci:" + layout + ":v1", "README.md"}, flags...)...)
			if got.Status != 1 || !strings.Contains(got.Stderr, "expected a media type") {
				t.Errorf("%q: %+v", flags, got)
			}
		}
	}
	for _, args := range [][]string{{"attach", "oci:" + layout + ":v1", "README.md", "--type", "text/plain", "--annotation", "a\nb=c"},
		{"attest", "oci:" + layout + ":v1", "--sign-key", "README.md", "--predicate", "README.md", "--type", "../x:y"}} {
		if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 1 || !strings.Contains(got.Stderr, "control characters") &&
			!strings.Contains(got.Stderr, "is neither a URI nor one of") {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if after := clitest.Snapshot(t, layout); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
	for _, kind := range []string{"application/spdx+json", "text/x-a", "application/vnd.example.v1.report+json", "Text/Plain"} {
		clitest.Done(t, dir, "bindery", "attach", "oci:"+layout+":v1", "README.md", "--type", kind, "--media-type", kind)
	}
}

// --timeout ends the reading of a local file as well.
func TestTimeoutWhileAFileIsRead(t *testing.T) {
	dir := t.TempDir()
	layout := supplytest.Unpack(t, "unsigned")
	before := clitest.Snapshot(t, layout)
	big := filepath.Join(dir, "big")
	clitest.WriteFile(t, big, "")
	if err := os.Truncate(big, 200<<30); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	got := clitest.RunProgram(t, dir, "bindery", "attach", "oci:"+layout+":v1", "big", "--type", "text/plain", "--timeout", "300ms")
	if got.Status != 1 || !strings.Contains(got.Stderr, "big: not done within 300ms") {
		t.Errorf("%+v", got)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if after := clitest.Snapshot(t, layout); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
}

// Names from the lists of a registry lead nowhere: what is no tag and no repository is not asked for.
func TestNamesFromARegistryLeadNowhere(t *testing.T) {
	reg := testregistry.New(t)
	reg.AddLayout(t, supplytest.Vectors(t)["unsigned"])
	tags := []string{"../x", "../../other/manifests/v1", "a/b", "a?b", "a#b", "", ".a", "a b", "a\nb", "%2e%2e", "sha256:0",
		"a@sha256:0", strings.Repeat("a", 129)}
	var quoted []string
	for _, tag := range tags {
		quoted = append(quoted, fmt.Sprintf("%q", tag))
	}
	var strange []string
	others := ""
	reg.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		switch {
		case q.URL.Path == "/v2/_catalog":
			fmt.Fprintf(w, `{"repositories":["layout"%s]}`, others)
		case q.URL.Path == "/v2/layout/tags/list":
			fmt.Fprintf(w, `{"name":"layout","tags":["v1",%s]}`, strings.Join(quoted, ","))
		case !strings.HasPrefix(q.RequestURI, "/v2/layout/manifests/v1") && !strings.HasPrefix(q.RequestURI, "/v2/layout/blobs/sha256:") &&
			!strings.HasPrefix(q.RequestURI, "/v2/layout/manifests/sha256") && !strings.HasPrefix(q.RequestURI, "/v2/layout/referrers/") &&
			q.RequestURI != "/v2/":
			strange = append(strange, q.RequestURI)
			return false
		default:
			return false
		}
		return true
	})
	dir := t.TempDir()
	for _, c := range []struct{ others, want string }{
		{``, "neither a tag nor a digest"}, {`,"../x"`, "is no repository"}, {`,"layout/../../x"`, "is no repository"},
		{`,"UP"`, "is no repository"}, {`,"a b"`, "is no repository"},
	} {
		others = c.others
		got := clitest.RunProgram(t, dir, "bindery", "mirror", "inventory", "docker://"+reg.Host(), "--use-http", "--to",
			"inventory.gz", "--retries", "0")
		if (got.Status == 0) != (c.others == "") || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%s: %+v", c.others, got)
		}
	}
	if len(strange) > 0 {
		t.Errorf("asked for %q", strange)
	}
}

// A directory of a catalog that readers would not read is not written.
func TestDirectoriesThatNobodyReads(t *testing.T) {
	for _, name := range []string{".indexignore", "..data", "..2026", ".bindery-edit-0123456789abcdef", "..", "a/b", `a\b`} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clitest.WriteFile(t, filepath.Join(dir, "cat", "c.json"), strings.ReplaceAll(fooCatalog, `"foo"`, fmt.Sprintf("%q", name)))
			before := clitest.Snapshot(t, dir)
			for _, args := range []string{"migrate cat out", "migrate cat out --verify", "migrate cat out -o yaml",
				"build catalog cat -t a/b:v1 --server none"} {
				got := clitest.RunProgram(t, dir, "bindery", strings.Fields(args)...)
				if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "package name") &&
					!strings.Contains(got.Stderr, "name of a package") {
					t.Errorf("%s: %+v", args, got)
				}
				if after := clitest.Snapshot(t, dir); after != before {
					t.Errorf("%s: files before\n%s\nafter\n%s", args, before, after)
				}
			}
		})
	}
}
