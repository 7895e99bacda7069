package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/app"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	ocmirrorcmd "github.com/operator-bindery/bindery/cmd/internal/ocmirror"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// namedLine is a line in which FILE is a file that the user names. Other words in capitals are those of [newNamedWorld].
type namedLine struct {
	name    string // of the program, if it is not bindery
	line    string
	content string // of the file
	null    string // what /dev/null is like, if not an empty file
	env     string // the variable that names the file, if the line does not
	// refused is what a pipe is refused with at once, where the content is read in any order or changed in place.
	refused string
	// unread says that the content does not count before the line fails, or in the program without RUN.
	unread bool
	// table says that standard output is a table that cuts the name of the file.
	table bool
	// random says that the digests in the output differ from run to run.
	random bool
}

const (
	aPipe      = "is a pipe, and is not read from its start to its end: write it to a file first"
	anImageSet = "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n" +
		"  - catalog: oci://TOP/none\n"
	aDeleteSet = "kind: DeleteImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\ndelete:\n  operators:\n" +
		"  - catalog: oci://TOP/none\n"
	aDeleteList = "kind: DeleteImageList\napiVersion: mirror.openshift.io/v2alpha1\nitems: []\n"
	aConf       = "[[registry]]\nlocation = \"127.0.0.1:1\"\n[[registry.mirror]]\nlocation = \"HOST\"\ninsecure = true\n"
	anAuthfile  = `{"auths":{"PRIVATE":{"auth":"dTpw"}}}`
	aPolicy     = `{"default":[{"type":"reject"}]}`
	aKubeconfig = "apiVersion: v1\nkind: Config\nclusters:\n- {name: a, cluster: {server: 'http://127.0.0.1:1'}}\n" +
		"contexts:\n- {name: a, context: {cluster: a}}\ncurrent-context: a\n"
	aContainerfile = "FROM scratch\nLABEL a=b\n"
)

// namedFlags has lines for each flag that names a file to read, by the flag's name.
var namedFlags = map[string][]namedLine{
	"registries-conf": {{line: "inspect 127.0.0.1:1/acme/catalog:v1 --registries-conf FILE", content: aConf},
		{line: "copy 127.0.0.1:1/acme/catalog:v1 oci:out:v1 --registries-conf FILE", content: aConf},
		{line: "build catalog TOP/cat -t x:v1 --output oci:out --server none --base 127.0.0.1:1/acme/catalog:v1 " +
			"--registries-conf FILE", content: aConf}},
	"src-authfile": {{line: "copy PRIVATE/acme/catalog:v1 oci:out:v1 --use-http --src-authfile FILE", content: anAuthfile, null: "{}"},
		{name: "oc-mirror", line: "-c TOP/set.yaml file://out --src-tls-verify=false --src-authfile FILE", content: "{no", null: "{}"}},
	"dest-authfile": {{line: "copy HOST/acme/catalog:v1 PRIVATE/acme/other:v1 --use-http --dest-authfile FILE", content: anAuthfile, null: "{}", random: true},
		{name: "oc-mirror", line: "-c TOP/set.yaml --workspace file://ws docker://PRIVATE --src-tls-verify=false --dest-tls-verify=false --dest-authfile FILE",
			content: "{no", null: "{}"}},
	"authfile": {{line: "inspect PRIVATE/acme/catalog:v1 --use-http --authfile FILE", content: anAuthfile, null: "{}"},
		{line: "copy PRIVATE/acme/catalog:v1 PRIVATE/acme/other:v1 --use-http --authfile FILE", content: anAuthfile, null: "{}"},
		{name: "oc-mirror", line: "-c TOP/set.yaml file://out --src-tls-verify=false --authfile FILE", content: "{no", null: "{}"}},
	"cache-key":   {{line: "build catalog TOP/cat -t x:v1 --output oci:out --server none --cache-key FILE", content: "short"}},
	"ca-file":     {{line: "copy SECURE/acme/catalog:v1 oci:out:v1 --ca-file FILE", content: "CERTIFICATE"}},
	"trusted-key": {{line: "inspect oci:img:v1 --trusted-key FILE", content: "PUBLIC"}},
	"helm-values": {{line: "mirror plan -c TOP/set.yaml --helm-values web=FILE", content: "a: 1\n", unread: true}},
	"release-key": {{line: "mirror plan -c TOP/set.yaml --release-key FILE", content: "no key", unread: true},
		{name: "oc-mirror", line: "-c TOP/set.yaml file://out --release-key FILE", content: "no key", unread: true}},
	"policy": {{line: "inspect oci:img:v1 --policy FILE", content: aPolicy},
		{line: "copy oci:img:v1 oci:out:v1 --policy FILE", content: aPolicy},
		{name: "oc-mirror", line: "-c TOP/set.yaml file://out --policy FILE", content: "{no"}},
	"lock": {{line: "inspect HOST/acme/catalog:v1 --use-http --lock FILE", content: "LOCK"}},
	"sign-key": {{line: "sign oci:img:v1 --sign-key FILE --sign-passphrase-file TOP/passphrase", content: "PRIVATEKEY",
		random: true}},
	"signing-config": {{line: "sign oci:img:v1 --sign-keyless --signing-config FILE", content: "{no"}},
	"identity-token": {{line: "sign oci:img:v1 --sign-keyless --fulcio-url http://127.0.0.1:1 --tsa-url http://127.0.0.1:1 " +
		"--identity-token FILE", content: "no token"}},
	"trusted-root": {{line: "verify oci:img:v1 --certificate-identity a --certificate-oidc-issuer b --trusted-root FILE",
		content: "{no"}},
	"sign-passphrase-file": {{line: "sign oci:img:v1 --sign-key TOP/a.key --sign-passphrase-file FILE", content: "secret",
		random: true}, {line: "keys generate --name k --sign-passphrase-file FILE", content: "secret"}},
	"predicate": {{line: "attest oci:img:v1 --type https://example.com/a --predicate FILE --sign-key TOP/a.key " +
		"--sign-passphrase-file TOP/passphrase", content: `{"a":1}`, random: true}},
	"key": {{line: "verify oci:img:v1 --key FILE", content: "PUBLIC"}, {line: "tree oci:img:v1 --key FILE",
		content: "PUBLIC"}},
	"server": {
		{line: "build catalog TOP/cat -t x:v1 --output oci:out --server FILE", content: "no program", refused: aPipe},
		{line: "catalog rm oci:img:v1 etcd -t x:v1 --output oci:out --server FILE", content: "no program", refused: aPipe},
		{line: "migrate --from-file TOP/list --report-dir reports --server FILE", content: "no program", refused: aPipe, table: true},
		{line: "mirror run -c TOP/set.yaml file://out --server FILE", content: "no program", refused: aPipe, unread: true},
	},
	"containerfile": {{line: "build bundle TOP/bundle --containerfile FILE -t x:v1 --output oci:out",
		content: "FROM scratch\nCOPY manifests /manifests/\n"}},
	"file": {{line: "build containerfile TOP/cat -f FILE -t x:v1 --output oci:out", content: aContainerfile}},
	"secret": {{line: "build containerfile TOP/cat -f TOP/Containerfile -t x:v1 --output oci:out --secret id=a,src=FILE",
		content: "secret", refused: aPipe, unread: true}},
	"config": {
		{line: "bundle manifests TOP/bundle --install-namespace a --config FILE", content: `{"watchNamespace":"b"}`},
		{line: "mirror plan -c FILE", content: anImageSet}, {line: "mirror run -c FILE file://out", content: anImageSet},
		{line: "mirror delete -c FILE --without-record --list list docker://127.0.0.1:1", content: aDeleteSet},
		{name: "oc-mirror", line: "-c FILE file://out", content: anImageSet},
		{name: "oc-mirror", line: "delete --generate -c FILE --workspace file://ws docker://127.0.0.1:1 --retry-delay 1ms",
			content: aDeleteSet},
	},
	"list": {{line: "mirror delete --list FILE --without-record docker://127.0.0.1:1 --yes", content: aDeleteList}},
	"delete-yaml-file": {{name: "oc-mirror", line: "delete --delete-yaml-file FILE docker://127.0.0.1:1 --retry-delay 1ms",
		content: aDeleteList}},
	"against": {{line: "mirror run -c TOP/set.yaml file://out --against FILE", content: "INVENTORY"}},
	"tls-cert": {{line: "serve TOP/cat --cache-dir cache -p 0 --metrics-addr 256.0.0.1:1 --tls-cert FILE --tls-key TOP/client.key",
		content: "CLIENTCERT"}},
	"tls-key": {{line: "serve TOP/cat --cache-dir cache -p 0 --metrics-addr 256.0.0.1:1 --tls-cert TOP/client.crt --tls-key FILE",
		content: "CLIENTKEY"}},
	"kubeconfig": {{line: "bundle extract -m TOP/bundle -c x -n y --kubeconfig FILE", content: aKubeconfig}},
	"waivers":    {{line: "check TOP/cat --waivers FILE", content: "waivers: 1\n"}},
	"changed":    {{line: "check TOP/bundle --profile community --changed FILE", content: "../outside\n"}},
	"snapshot":   {{line: "check TOP/bundle --profile conforma --snapshot FILE", content: `{"components":1}`}},
	"rule-data":  {{line: "check TOP/bundle --profile konflux --rule-data FILE", content: "a: 1\n"}},
	"selection":  {{line: "catalog filter TOP/cat --selection FILE --dry-run", content: "packages:\n- name: nosuch\n"}},
	"from-file": {{line: "copy --from-file FILE", content: "oci:img:v1 oci:out:v1\n"},
		{line: "migrate --from-file FILE --report-dir reports", content: "TOP/small.db out\n"}},
	"description": {{line: "init a --description FILE", content: "text\n"}},
	"icon":        {{line: "init a --icon FILE", content: "<svg xmlns='http://www.w3.org/2000/svg'/>"}},
	"database": {{line: "registry rm -d FILE -o etcd", content: "DATABASE", refused: aPipe},
		{line: "registry serve -d FILE -p 0", content: "no database", refused: aPipe, unread: true},
		{line: "registry mirror -d FILE --to mirror.example.com", content: "DATABASE", refused: aPipe}},
	"from-index": {{line: "index rm -f FILE -o etcd --generate -d Dockerfile", content: "DATABASE", refused: aPipe}},
}

// namedArguments has the same for arguments and for variables.
var namedArguments = []namedLine{
	{line: "build compose FILE -t x:v1 --output oci:out --server none",
		content: "name: all\nreferences:\n- {name: etcd, image: 'oci:TOP/img:v1'}\n"},
	{line: "attach oci:img:v1 FILE --type application/x", content: "text", refused: aPipe, random: true, unread: true},
	{line: "template render basic FILE", content: `{"schema":"olm.template.basic","entries":[{"schema":"olm.package","name":"a","defaultChannel":"b"}]}`},
	{line: "template convert basic FILE", content: `{"schema":"olm.package","name":"a","defaultChannel":"b"}`},
	{line: "diff --manifests FILE TOP/object.yaml", content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"},
	{line: "render FILE", content: "DATABASE", refused: aPipe},
	{name: "opm", line: "render FILE", content: "DATABASE", refused: aPipe},
	{line: "migrate FILE out", content: "DATABASE", refused: aPipe},
	{line: "serve FILE --cache-dir cache --cache-only", content: "DATABASE", refused: aPipe},
	{line: "catalog rm FILE etcd", content: "DATABASE", refused: aPipe},
	{line: "build catalog FILE -t x:v1 --output oci:out --server none", content: "DATABASE", refused: aPipe},
	{line: "inspect oci-archive:FILE", content: "no archive", refused: aPipe},
	{line: "inspect docker-archive:FILE", content: "no archive", refused: aPipe},
	{line: "inspect PRIVATE/acme/catalog:v1 --use-http", env: "REGISTRY_AUTH_FILE", content: anAuthfile, null: "{}"},
	{line: "inspect 127.0.0.1:1/acme/catalog:v1", env: "CONTAINERS_REGISTRIES_CONF", content: aConf},
	{line: "inspect oci:img:v1", env: "CONTAINERS_POLICY_JSON", content: aPolicy},
	{line: "bundle extract -m TOP/bundle -c x -n y", env: "KUBECONFIG", content: aKubeconfig},
	{line: "probe -addr 127.0.0.1:1 -tls -tls-ca-cert FILE", content: "CERTIFICATE"},
	{line: "probe -addr 127.0.0.1:1 -tls -tls-no-verify -tls-client-cert FILE -tls-client-key TOP/client.key", content: "CLIENTCERT"},
	{line: "probe -addr 127.0.0.1:1 -tls -tls-no-verify -tls-client-cert TOP/client.crt -tls-client-key FILE", content: "CLIENTKEY"},
}

// filePlaceholder finds the flags that name files: by what stands for the value in the help text, or, for the other
// words, by what it says of the value.
var (
	filePlaceholder = regexp.MustCompile("`[^`]*(FILE|LIST)`|`(PATH|INDEX)`.* file")
	written         = regexp.MustCompile(`\bwrite\b|to create`)
)

// Every flag and argument that names a file to read has a line in the table.
func TestTableOfNamedFiles(t *testing.T) {
	type group struct{ flag, usage string }
	commands := map[group][]string{}
	var walk func(path string, all []*cli.Command)
	walk = func(path string, all []*cli.Command) {
		for _, c := range all {
			name := strings.TrimSpace(path + " " + c.Name)
			walk(name, c.Subcommands)
			for _, f := range c.Flags {
				flag, ok := f.(cli.DocGenerationFlag)
				if ok && filePlaceholder.MatchString(flag.GetUsage()) && !written.MatchString(flag.GetUsage()) {
					g := group{f.Names()[0], flag.GetUsage()}
					commands[g] = append(commands[g], name)
				}
			}
			if strings.Contains(c.ArgsUsage, "FILE") && !slices.ContainsFunc(namedArguments, func(l namedLine) bool {
				return strings.HasPrefix(l.line, policyNames.Replace(name)+" ")
			}) {
				t.Errorf("%s has the argument %s, and no line in the table", name, c.ArgsUsage)
			}
		}
	}
	p := &option.Session{Program: &program.Program{Stdin: strings.NewReader(""), Stdout: &cmdline.Pipe{W: io.Discard}, Stderr: io.Discard}}
	walk("", app.New(p).Commands)
	for g, names := range commands {
		if !slices.ContainsFunc(namedFlags[g.flag], func(l namedLine) bool {
			line := l.line
			if l.name == ocmirrorcmd.Name {
				line = strings.Join(ocmirrorcmd.Args(strings.Fields(line)), " ")
			}
			return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(line, name+" ") })
		}) {
			t.Errorf("--%s (%s) of %q names a file, and has no line in the table", g.flag, g.usage, names)
		}
	}
}

// namedWorld has what the lines name.
type namedWorld struct {
	*testing.T
	top   string
	words *strings.Replacer
}

func newNamedWorld(t *testing.T) *namedWorld {
	t.Helper()
	top := t.TempDir()
	for name, from := range map[string]string{"cat": "../clitest/testdata/cases/ok-base", "bundle": "../../../testdata/bundles/etcd/0.9.4"} {
		if err := os.CopyFS(filepath.Join(top, name), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(top, "small.db"))
	clitest.WriteFile(t, filepath.Join(top, "passphrase"), "secret")
	clitest.WriteFile(t, filepath.Join(top, "list"), top+"/small.db -> oci:out:v1\n")
	clitest.WriteFile(t, filepath.Join(top, "Containerfile"), aContainerfile)
	clitest.WriteFile(t, filepath.Join(top, "object.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	clitest.Done(t, top, "bindery", "build", "catalog", "cat", "-t", "x:v1", "--output", "oci:img", "--server", "none")
	clitest.Done(t, top, "bindery", "keys", "generate", "--name", "a", "--sign-passphrase-file", "passphrase")
	open, private, secure := testregistry.New(t), testregistry.New(t), testregistry.NewTLS(t)
	image := testregistry.Image{Layers: []map[string]string{{"a": "b"}}}
	for _, r := range []*testregistry.Registry{open, private, secure} {
		r.AddImage(t, "acme/catalog", "v1", image)
	}
	private.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if user, _, _ := r.BasicAuth(); user == "u" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="a"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	clitest.WriteFile(t, filepath.Join(top, "set.yaml"), strings.ReplaceAll(strings.ReplaceAll(anImageSet, "oci://TOP/none",
		"PRIVATE/acme/none:v1"), "PRIVATE", private.Host()))
	lock := fmt.Sprintf(`{"version":1,"images":{"%s/acme/catalog:v1":%q}}`, open.Host(),
		open.AddImage(t, "acme/catalog", "v1", image))
	clitest.Done(t, top, "bindery", "mirror", "inventory", "docker://"+open.Host(), "--use-http", "--to", "inventory")
	tls := &clitest.RealRegistry{Dir: top}
	tls.Certificates(t)
	return &namedWorld{t, top, strings.NewReplacer("PRIVATEKEY", clitest.ReadFile(t, filepath.Join(top, "a.key")),
		"PRIVATE", private.Host(), "SECURE", secure.Host(), "HOST", open.Host(), "CERTIFICATE",
		clitest.ReadFile(t, secure.CAFile(t)), "CLIENTCERT", clitest.ReadFile(t, tls.Cert), "PUBLIC", clitest.ReadFile(t, filepath.Join(top, "a.pub")), "LOCK", lock, "INVENTORY", clitest.ReadFile(t, filepath.Join(top, "inventory")), "CLIENTKEY", clitest.ReadFile(t, tls.Key),
		"DATABASE", clitest.ReadFile(t, filepath.Join(top, "small.db")), "TOP", top)}
}

func aFile(t *testing.T, _ *exec.Cmd, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "named")
	clitest.WriteFile(t, name, content)
	return name
}

// How a file is named. Each returns the name.
var namedKinds = map[string]func(t *testing.T, cmd *exec.Cmd, content string) string{
	"a file": aFile,
	"a file that is mounted": func(t *testing.T, cmd *exec.Cmd, content string) string {
		dir := filepath.Join(t.TempDir(), "mounted")
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "..2026"), 0o755),
			os.Symlink("..2026", filepath.Join(dir, "..data")),
			os.Symlink("..data/named", filepath.Join(dir, "named"))); err != nil {
			t.Fatal(err)
		}
		clitest.WriteFile(t, filepath.Join(dir, "..2026", "named"), content)
		return filepath.Join(dir, "named")
	},
	"a pipe": func(t *testing.T, cmd *exec.Cmd, content string) string {
		cmd.ExtraFiles = []*os.File{pipeOf(t, content)}
		return "/dev/fd/3"
	},
	"standard input": func(t *testing.T, cmd *exec.Cmd, content string) string {
		cmd.Stdin = pipeOf(t, content)
		return "/dev/stdin"
	},
	"a FIFO": func(t *testing.T, cmd *exec.Cmd, content string) string {
		name := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		go func() {
			// It does not fail before somebody reads: the end of the test opens it if the program does not.
			if f, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
				_, _ = io.WriteString(f, content)
				_ = f.Close()
			}
		}()
		t.Cleanup(func() {
			if f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
				_ = f.Close()
			}
		})
		return name
	},
	"an empty file":     aFile,
	"an endless device": func(*testing.T, *exec.Cmd, string) string { return "/dev/zero" },
	"a link to /dev/null": func(t *testing.T, _ *exec.Cmd, _ string) string {
		name := filepath.Join(t.TempDir(), "named")
		if err := os.Symlink(os.DevNull, name); err != nil {
			t.Fatal(err)
		}
		return name
	},
}

// pipeOf returns the end to read of a pipe with a content.
func pipeOf(t *testing.T, content string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	go func() {
		_, _ = io.WriteString(w, content) // what is refused is not read
		_ = w.Close()
	}()
	return r
}

// Run runs a line with the file named in one of the ways.
func (w *namedWorld) run(t *testing.T, l namedLine, kind string) clitest.Result {
	t.Helper()
	dir := t.TempDir()
	if strings.Contains(l.line, "oci:img") {
		if err := os.CopyFS(filepath.Join(dir, "img"), os.DirFS(filepath.Join(w.top, "img"))); err != nil {
			t.Fatal(err)
		}
	}
	name := "bindery"
	if l.name != "" {
		name = l.name
	}
	cmd := clitest.Command(dir, name)
	cmd.Env = append(cmd.Env, "HOME="+w.top, "SOURCE_DATE_EPOCH=0", "BINDERY_RETRIES=0", "BINDERY_NO_CACHE=true")
	content := l.content
	if kind == "an empty file" {
		content = l.null
	}
	file := namedKinds[kind](t, cmd, w.words.Replace(content))
	line := w.words.Replace(l.line)
	if l.env != "" {
		cmd.Env = append(cmd.Env, l.env+"="+file)
	}
	cmd.Args = append(cmd.Args, strings.Fields(strings.Replace(line, "FILE", file, 1))...)
	run := clitest.Finish
	if kind == "an endless device" || kind == "a FIFO" {
		run = finishInTime
	}
	got := run(t, cmd)
	plain := func(text string) string {
		text = strings.NewReplacer(file, "FILE", dir, "DIR").Replace(text)
		text = regexp.MustCompile(`\b(time=)?\d{4}[/-]\d\d[/-]\d\d[T ]\d\d:\d\d:\d\d\S*`).ReplaceAllString(text, "")
		text = regexp.MustCompile(`\b\d+(\.\d+)?(ms|µs|s)\b`).ReplaceAllString(text, "")
		if l.random {
			text = regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(text, "DIGEST")
		}
		return text
	}
	if l.table {
		got.Stdout = ""
	}
	return clitest.Result{Stdout: plain(got.Stdout), Stderr: plain(got.Stderr), Status: got.Status}
}

// finishInTime runs a command that could wait for ever.
func finishInTime(t testing.TB, cmd *exec.Cmd) clitest.Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waits := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait() // the status is in the result
	if !waits.Stop() {
		t.Fatalf("%q: %v; %s", cmd.Args, err, stderr.String())
	}
	return clitest.Result{Stdout: stdout.String(), Stderr: stderr.String(), Status: cmd.ProcessState.ExitCode()}
}

// However a file is named that is to be read, its content counts: it may be a link, as in mounted secrets, a pipe, as
// that of a shell, or /dev/null. What is read in any order or changed in place refuses pipes at once.
func TestNamedFiles(t *testing.T) {
	w := newNamedWorld(t)
	all := slices.Clone(namedArguments)
	first := map[string]bool{} // the first line of a flag has all kinds, the others those that differ by the command
	for _, l := range namedArguments {
		first[l.line] = true
	}
	for _, lines := range namedFlags {
		all = append(all, lines...)
		first[lines[0].line] = true
	}
	for _, l := range all {
		t.Run(strings.ReplaceAll(l.name+" "+l.env+" "+l.line, "/", "|"), func(t *testing.T) {
			t.Parallel()
			full, empty := w.run(t, l, "a file"), w.run(t, l, "an empty file")
			if full == empty && !l.unread {
				t.Errorf("the content does not count: %+v", full)
			}
			kinds := []string{"a file that is mounted", "a pipe"}
			if first[l.line] {
				kinds = append(kinds, "standard input")
			}
			if l.refused != "" || l.env != "" || strings.HasPrefix(l.line, "build compose") || strings.HasPrefix(l.line, "init") {
				kinds = append(kinds, "a FIFO") // it waits for who opens it, once
			}
			for _, kind := range kinds {
				got := w.run(t, l, kind)
				if l.refused == "" || kind == "a file that is mounted" {
					if got != full {
						t.Errorf("%s: got %+v, want %+v", kind, got, full)
					}
				} else if got.Status == 0 || !strings.Contains(got.Stderr, l.refused) {
					t.Errorf("%s: got %+v, want %s", kind, got, l.refused)
				}
			}
			if first[l.line] && !l.unread {
				if got := w.run(t, l, "an endless device"); got.Status == 0 {
					t.Errorf("an endless device: %+v", got)
				}
			}
			if got := w.run(t, l, "a link to /dev/null"); got != empty {
				t.Errorf("a link to /dev/null: got %+v, want %+v", got, empty)
			}
		})
	}
}

// A signal ends waiting for a pipe, before and after somebody has begun to write to it.
func TestNamedPipesEndWithSignals(t *testing.T) {
	w := newNamedWorld(t)
	for _, line := range []string{"init a --icon FILE", "build compose FILE -t x:v1", "mirror run -c FILE file://out",
		"inspect PRIVATE/acme/catalog:v1 --use-http --authfile FILE", "copy oci:img:v1 oci:out:v1 --policy FILE"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			fifo := filepath.Join(dir, "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := clitest.Command(dir, "bindery", strings.Fields(strings.Replace(w.words.Replace(line), "FILE", fifo, 1))...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // it returns when the program reads
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			start := time.Now()
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the status says more
			// After five seconds the program ends in any case.
			if status := cmd.ProcessState.ExitCode(); status != 130 || time.Since(start) > 4*time.Second {
				t.Errorf("status %d after %s", status, time.Since(start))
			}
		})
	}
}
