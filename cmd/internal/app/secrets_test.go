package app_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/mirrortest"
)

// theSecret stands wherever a name can stand; nothing that is printed or written has it.
const theSecret = "S3CRETpw"

// secretLeaks returns where a run has written the secret: what it printed, and files and names of files that are not
// among those of before.
func secretLeaks(t *testing.T, dir string, before map[string]bool, r clitest.Result) (leaks []string) {
	t.Helper()
	for name, text := range map[string]string{"stdout": r.Stdout, "stderr": r.Stderr} {
		if i := strings.Index(text, theSecret); i >= 0 {
			leaks = append(leaks, fmt.Sprintf("%s: %q", name, text[max(0, i-100):min(len(text), i+60)]))
		}
	}
	for name := range filesBelow(t, dir) {
		if before[name] {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.Index(name+"\x00"+string(text), theSecret); i >= 0 {
			leaks = append(leaks, fmt.Sprintf("%s: %q", name, text[max(0, min(len(text), i-len(name)-100)):min(len(text), max(0, i-len(name)+60))]))
		}
	}
	slices.Sort(leaks)
	return leaks
}

func filesBelow(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out[name] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// secretWorld has catalogs whose bundles name images with a user and a password, in the registry and as directories:
// in related images of a, as the image of the bundle of own, in b in other forms.
func secretWorld(t *testing.T) (w *clitest.SharedWorld, named string) {
	w = clitest.NewSharedWorld(t)
	named = "user:" + theSecret + "@" + mirrortest.Host + "/acme/img:v1"
	w.Catalog("a", "v3", named)
	w.Catalog("b", "v2", "v1", "docker://"+named, strings.TrimSuffix(named, ":v1")+"@"+w.Img.String(), named+"@"+w.Img.String())
	w.Catalog("good", "v3")
	for name, image := range map[string]string{"a": mirrortest.Host + "/a/bundle:v1", "own": named,
		"good": mirrortest.Host + "/good/bundle:v1"} {
		text := strings.NewReplacer("NAME", name, `"image":"IMAGE"`, `"image":"`+image+`","relatedImages":[{"name":"x","image":"`+
			map[string]string{"a": named, "own": named, "good": mirrortest.Host + "/x:v1"}[name]+`"}]`).Replace(clitest.OneBundle)
		if err := os.MkdirAll(filepath.Join(w.Dir, "cat-"+name), 0o755); err != nil {
			t.Fatal(err)
		}
		w.Write("cat-"+name+"/catalog.json", text)
	}
	for file, text := range map[string]string{
		"set.yaml": "kind: ImageSetConfiguration\nmirror:\n  operators:\n  - catalog: " + named + "\n",
		"add.yaml": "kind: ImageSetConfiguration\nmirror:\n  additionalImages:\n  - name: " + named + "\n",
		"one.yaml": strings.ReplaceAll(clitest.ReadFile(t, filepath.Join(w.Dir, "a.yaml")), "    full: true\n", ""),
		"list.txt": named + "\n" + named + " second\ncat-own\ncat-own third -> " + named + "\n",
		"bad.txt":  "cat-good fourth -> docker://" + named + "\n",
		"list.yaml": "apiVersion: x\nkind: DeleteImageList\nitems:\n- imageName: " + named + "\n  imageReference: docker://" +
			named + "\n  type: generic\n",
		"Containerfile": "FROM " + named + "\nLABEL a=b\n",
		"compose.yaml":  "references:\n- name: x\n  image: " + named + "\n",
		"basic.yaml":    "schema: olm.template.basic\nentries:\n- {schema: olm.bundle, image: \"" + named + "\"}\n",
		"semver.yaml":   "schema: olm.semver\nstable:\n  bundles:\n  - image: " + named + "\n",
		"policy.json":   `{"default":[{"type":"insecureAcceptAnything"}]}`,
	} {
		w.Write(file, text)
	}
	for _, name := range []string{"a", "good"} {
		w.Expect("copy "+mirrortest.Host+"/"+name+"/catalog:v1 oci:layout-"+name+":v1", 0)
	}
	return w, named
}

// secretLines are command lines that read a name with a secret, in the directory of [secretWorld].
func secretLines(named string) []string {
	var lines []string
	for _, of := range []string{"cat-a", "cat-own", mirrortest.Host + "/a/catalog:v1", "oci:layout-a:v1", named} {
		for _, line := range []string{"check OF", "check OF -o json", "check OF -o sarif", "check OF -o junit", "check OF -o github",
			"check OF --profile konflux", "list OF", "list packages OF", "list bundles OF", "list bundles OF -o json",
			"list images OF", "list images OF -o json", "list images OF --by bundle", "list channels OF", "resolve a OF",
			"resolve a OF -o json", "graph OF", "graph OF -o mermaid", "registry mirror OF --to m.example.com",
			"registry mirror OF --to m.example.com -o json", "diff cat-good OF", "diff cat-good OF -o json", "diff OF cat-good",
			"catalog filter OF -p a --to filtered --dry-run", "catalog add cat-good OF --dry-run", "catalog remove OF nosuch --dry-run",
			"bundle validate OF", "migrate OF --dry-run --report -", "render OF --log-format json -q --nosuch"} {
			lines = append(lines, strings.ReplaceAll(line, "OF", of))
		}
	}
	for _, of := range []string{mirrortest.Host + "/a/catalog:v1", "oci:layout-a:v1", named} {
		for _, line := range []string{"inspect OF", "inspect OF -o json", "tree OF", "tree OF -o json", "sbom OF", "sbom OF --format spdx",
			"sbom OF --format cyclonedx", "verify OF", "verify OF -o json", "copy OF oci:copied", "attach OF add.yaml --type a/b",
			"bundle unpack OF", "serve OF --cache-only --cache-dir cache", "index export -i OF -p a",
			"index add -b OF -t registry.example.com/y:v1 --generate", "catalog add " + "OF" + " cat-good -t registry.example.com/y:v1 --dry-run"} {
			lines = append(lines, strings.ReplaceAll(line, "OF", of))
		}
	}
	for _, set := range []string{"a", "b", "one", "set", "add"} {
		for _, line := range []string{"mirror plan -c SET.yaml", "mirror plan -c SET.yaml -o json",
			"mirror run -c SET.yaml --workspace w TARGET/SET --account account-SET.json",
			"mirror run -c SET.yaml --workspace w2 TARGET/SET -o json",
			"mirror run -c SET.yaml --workspace w TARGET/SET --dry-run --log-format json",
			"mirror run -c SET.yaml --workspace w TARGET/SET --on-missing fail -o json", "mirror run -c SET.yaml file://media-SET",
			"mirror verify file://media-SET", "mirror run -c SET.yaml --from media-SET TARGET/SET-air",
			"mirror verify TARGET/SET -c SET.yaml", "mirror verify TARGET/SET -c SET.yaml -o json",
			"mirror publish -c SET.yaml --workspace w TARGET/SET", "mirror resources -c SET.yaml --workspace w --to res TARGET/SET",
			"mirror inventory TARGET -c SET.yaml --to inventory.json --plain",
			"oc-mirror -c SET.yaml --workspace file://oc TLS TARGET/oc", "oc-mirror -c SET.yaml TLS file://ocm-SET",
			"oc-mirror -c SET.yaml --dry-run --workspace file://oc TLS TARGET/oc"} {
			lines = append(lines, strings.NewReplacer("SET", set, "TLS", "--dest-tls-verify=false --src-tls-verify=false --retry-times 0").Replace(line))
		}
	}
	for _, line := range []string{"migrate --from-file list.txt --out-dir out --keep-going", "migrate --from-file list.txt --out-dir out --dry-run",
		"migrate --from-file list.txt --out-dir out2 --keep-going --results results.jsonl",
		"migrate --from-file list.txt --out-dir out3 --keep-going --results - --log-format json", "migrate --from-file bad.txt --out-dir out4",
		"migrate cat-a migrated-NAMED", "migrate NAMED migrated --error-format json", "mirror delete --list list.yaml --without-record TARGET",
		"copy oci:layout-a:v1 docker://NAMED", "copy NAMED docker://NAMED -o json", "render NAMED", "render nosuch NAMED --error-format json",
		"build catalog cat-good --base NAMED -t registry.example.com/y:v1 --output oci:o1", "build catalog cat-good -t NAMED",
		"build catalog cat-a -t registry.example.com/y:v1 --output oci:o2 --metadata-file metadata.json --sbom spdx,cyclonedx --plan",
		"build containerfile . -t registry.example.com/y:v1 --output oci:o3", "build compose compose.yaml -t registry.example.com/y:v1 --output oci:o4",
		"build compose compose.yaml --plan", "template render basic basic.yaml", "template render semver semver.yaml",
		"mirror verify TARGET --catalog NAMED", "mirror run -c a.yaml --workspace w docker://NAMED", "NAMED", "list --nosuch=NAMED",
		"serve NAMED --port 0 --termination-log ended", "index add -b " + mirrortest.Host + "/a/bundle:v1 -f NAMED -t registry.example.com/y:v1",
		"verify " + mirrortest.Host + "/a/catalog:v1 --identity NAMED", "check cat-a --waivers NAMED", "diff NAMED NAMED"} {
		lines = append(lines, strings.ReplaceAll(line, "NAMED", named))
	}
	return lines
}

// Nothing that is printed or written has the password of an image's name, wherever the name stands: not in messages,
// answers, reports and lists, and not in names of files.
func TestSecretsInNames(t *testing.T) {
	t.Parallel()
	w, named := secretWorld(t)
	redacted := 0
	for _, line := range secretLines(named) {
		before := filesBelow(t, w.Dir)
		r := w.Run(line + map[bool]string{true: " --retries 0"}[!strings.HasPrefix(line, "oc-")])
		for _, leak := range secretLeaks(t, w.Dir, before, r) {
			if asked := strings.HasPrefix(leak, filepath.Join(w.Dir, "migrated-")); !asked {
				t.Errorf("%s: %s", line, leak)
			}
		}
		if strings.Contains(r.Stdout+r.Stderr, "***@") {
			redacted++
		}
	}
	if redacted < 100 {
		t.Errorf("%d lines have a name at all: the others tell nothing", redacted)
	}
	// Content is not changed: a catalog is what its author wrote.
	if r := w.Run("render cat-a"); r.Status != 0 || !strings.Contains(r.Stdout, named) {
		t.Errorf("%+v", r)
	}
	if r := w.Run("migrate cat-a content"); r.Status != 0 ||
		!strings.Contains(clitest.ReadFile(t, filepath.Join(w.Dir, "content", "a", "catalog.json")), named) {
		t.Errorf("%+v", r)
	}
}

// What a registry says, and where it sends its clients, is shown without credentials in whatever form.
func TestSecretsInAnswersOfRegistries(t *testing.T) {
	for name, said := range map[string]string{
		"a password": `password: ` + theSecret, "a member": `{"password":"` + theSecret + `"}`,
		"a parameter": `token=` + theSecret + `&x=y`, "a header": `Authorization: Bearer ` + theSecret,
		"an encoded parameter": `passwd%3D` + theSecret, "a name": `user:` + theSecret + `@host/img`,
		"a key": `api_key=` + theSecret, "a redirect": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clitest.NewSharedWorld(t)
			w.Catalog("a", "v1", "v3")
			w.Expect("mirror run -c a.yaml --workspace w TARGET", 0)
			w.Expect("mirror run -c a.yaml file://media", 0)
			w.Expect(clitest.ListA, 0)
			w.Write("cat.json", strings.NewReplacer("NAME", "a", "IMAGE", mirrortest.Host+"/x:v1").Replace(clitest.OneBundle))
			w.Write("list.txt", mirrortest.Host+"/a/catalog:v1\n")
			refuse := func(a http.ResponseWriter, q *http.Request) bool {
				switch {
				case q.URL.Path == "/v2/":
					return false
				case said != "":
					a.WriteHeader(http.StatusForbidden)
					text, err := json.Marshal("no: " + said)
					if err != nil {
						t.Error(err)
					}
					fmt.Fprintf(a, `{"errors":[{"code":"DENIED","message":%s}]}`, text)
				case strings.Contains(q.URL.Path, "/blobs/"), q.Method != http.MethodGet && q.Method != http.MethodHead:
					a.Header().Set("Location", "http://127.0.0.1:1/b?X-Amz-Signature="+theSecret+"&sig="+theSecret+"&X-Amz-Credential="+theSecret)
					a.WriteHeader(http.StatusTemporaryRedirect)
				default:
					return false
				}
				return true
			}
			// Of an image alone: the reason is in the account, in the list of errors and in what is left out of the catalog.
			w.Source.Interfere(func(a http.ResponseWriter, q *http.Request) bool {
				return strings.HasPrefix(q.URL.Path, "/v2/acme/img/") && refuse(a, q)
			})
			for _, line := range []string{"mirror run -c a.yaml --workspace w4 TARGET/z --account account.json --retries 0",
				"mirror run -c a.yaml --workspace w4 TARGET/z -o json --log-level debug --log-format json --retries 0",
				"mirror run -c a.yaml file://media4 --retries 0",
				"oc-mirror -c a.yaml --workspace file://oc4 --dest-tls-verify=false --src-tls-verify=false --retry-times 0 TARGET/z2"} {
				before := filesBelow(t, w.Dir)
				r := w.Run(line)
				if leaks := secretLeaks(t, w.Dir, before, r); r.Status != 4 || len(leaks) > 0 {
					t.Errorf("%s: status %d, %s", line, r.Status, leaks)
				}
			}
			if files, err := filepath.Glob(filepath.Join(w.Dir, "*/working-dir/logs/mirroring_errors_*")); err != nil || len(files) < 2 {
				t.Errorf("%q %v", files, err)
			}
			w.Source.Interfere(refuse)
			w.Registry.Interfere(refuse)
			refused := 0
			for _, line := range []string{"mirror run -c a.yaml --workspace w3 TARGET/x --account account.json -o json",
				"mirror run -c a.yaml --workspace w3 TARGET/x --log-level debug", "mirror run -c a.yaml --from media TARGET/y",
				"mirror run -c a.yaml --workspace w3 TARGET/x --log-level debug --log-format json --error-format json",
				"mirror verify TARGET --workspace w -o json", "mirror verify TARGET --workspace w", "mirror inventory TARGET --to inventory",
				"mirror delete --list list.yaml TARGET", "mirror plan -c a.yaml -o json", "mirror publish -c a.yaml --workspace w TARGET",
				"oc-mirror -c a.yaml --workspace file://oc --dest-tls-verify=false --src-tls-verify=false --retry-times 0 TARGET/oc",
				"copy HOST/a/catalog:v1 oci:x", "copy oci:nosuch TO", "copy HOST/a/catalog:v1 TO -o json", "render HOST/a/catalog:v1",
				"check HOST/a/catalog:v1", "check HOST/a/catalog:v1 -o json", "list HOST/a/catalog:v1", "inspect HOST/a/catalog:v1",
				"sbom HOST/a/catalog:v1", "tree HOST/a/catalog:v1 -o json", "verify HOST/a/catalog:v1 -o json", "diff cat.json HOST/a/catalog:v1",
				"bundle validate HOST/a/bundle:v1", "bundle unpack HOST/a/bundle:v1", "migrate HOST/a/catalog:v1 out --report report.json",
				"migrate --from-file list.txt --out-dir outs --keep-going --results results.jsonl",
				"serve HOST/a/catalog:v1 --port 0 --termination-log ended", "index add -b HOST/a/bundle:v1 -t registry.example.com/y:v1 --generate",
				"build catalog w -t registry.example.com/y:v1 --base HOST/a/bundle:v1 --output oci:z"} {
				before := filesBelow(t, w.Dir)
				line = strings.NewReplacer("HOST", mirrortest.Host, "TO", "docker://"+w.Registry.Host()+"/to:v1").Replace(line)
				r := w.Run(line + map[bool]string{true: " --retries 0"}[!strings.HasPrefix(line, "oc-")])
				for _, leak := range secretLeaks(t, w.Dir, before, r) {
					t.Errorf("%s: %s", line, leak)
				}
				told := strings.Contains(r.Stdout+r.Stderr, "***") || strings.Contains(r.Stdout+r.Stderr, "//127.0.0.1:1/b")
				if r.Status != 0 && told {
					refused++
				}
			}
			if refused < 12 {
				t.Errorf("%d lines failed with the answer: the others tell nothing", refused)
			}
		})
	}
}
