package recipes

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gitlabJobs lists the jobs of a pipeline as gitlab-ci-local sees them, after it has put the inputs into the components
// and checked the result with GitLab's schema.
func gitlabJobs(t *testing.T, pipeline string, edits ...string) ([]string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "templates"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"build", "review", "migrate", "mirror"} {
		text := strings.NewReplacer(edits...).Replace(read(t, "templates/"+name+".yml"))
		if err := os.WriteFile(filepath.Join(dir, "templates", name+".yml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		// A component of another project cannot be fetched here: it is included from the checkout.
		pipeline = strings.ReplaceAll(pipeline, "component: $CI_SERVER_FQDN/operator-bindery/bindery/"+name+"@v1.0.0",
			"local: templates/"+name+".yml")
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitlab-ci.yml"), []byte(pipeline), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"remote", "add", "origin", "git@gitlab.example.com:acme/catalog.git"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "a pipeline"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	program, err := filepath.Abs("node_modules/.bin/gitlab-ci-local")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", program, "--home", "home", "--list-json")
	cmd.Dir = dir
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, messages.String())
	}
	if !strings.Contains(messages.String(), "json schema validated") {
		t.Fatalf("nothing was validated: %s", messages.String())
	}
	text := string(out)
	var jobs []struct{ Name string }
	if err := json.Unmarshal([]byte(text[strings.Index(text, "["):]), &jobs); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var names []string
	for _, j := range jobs {
		name, _, _ := strings.Cut(j.Name, ":")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

const allComponents = `include:
  - local: templates/migrate.yml
    inputs: {parts: 3, list: lists/indexes.txt}
  - local: templates/mirror.yml
    inputs: {destination: "docker://mirror.example.com/olm"}
`

func TestGitLab(t *testing.T) {
	for _, c := range []struct {
		pipeline string
		want     []string
	}{
		{read(t, "deploy/ci/gitlab-ci.yml"), []string{"bindery-build", "bindery-review"}},
		{allComponents, []string{"bindery-migrate", "bindery-mirror", "bindery-mirror-publish"}},
	} {
		if got, err := gitlabJobs(t, c.pipeline); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v, the jobs are %q and not %q", err, got, c.want)
		}
	}
}

// The pipeline is valid as its comments say to sign without a key, and the components take that input.
func TestGitLabKeyless(t *testing.T) {
	text := read(t, "deploy/ci/gitlab-ci.yml")
	keyless := strings.NewReplacer("# sign: keyless", "sign: keyless", "# bindery-build: {", "bindery-build: {").Replace(text)
	if strings.Count(keyless, "#") != strings.Count(text, "#")-2 {
		t.Error("the comments are not there")
	}
	for pipeline, want := range map[string][]string{
		keyless: {"bindery-build", "bindery-review"},
		strings.NewReplacer("{parts", "{sign: keyless, parts", "{destination", "{sign: keyless, destination").Replace(
			allComponents): {"bindery-migrate", "bindery-mirror", "bindery-mirror-publish"},
	} {
		if got, err := gitlabJobs(t, pipeline); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, the jobs are %q and not %q", err, got, want)
		}
	}
}

// Faults are found: an unknown keyword, a wrong type, a missing input, an unknown one.
func TestGitLabFaults(t *testing.T) {
	for what, c := range map[string]struct {
		pipeline, was, is, want string
	}{
		"a keyword": {allComponents, "  retry: 2", "  retries: 2", "retries"},
		"a type":    {allComponents, "  cache:", "  timeout: [1]\n  cache:", "timeout"},
		"missing":   {"include:\n  - local: templates/mirror.yml\n", "", "", "destination"},
		"no way to sign": {strings.Replace(allComponents, "parts: 3", "sign: keyles", 1), "", "",
			"not in the list of allowed options"},
		"a token": {strings.Replace(allComponents, "include:", "bindery-mirror-publish: {id_tokens: {SIGSTORE_ID_TOKEN: {}}}\n"+
			"include:", 1), "", "", "aud"},
		"no number": {strings.Replace(allComponents, "parts: 3", "parts: three", 1), "", "", "parts"},
	} {
		var edits []string
		if c.was != "" {
			edits = []string{c.was, c.is}
		}
		if got, err := gitlabJobs(t, c.pipeline, edits...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, the jobs are %q", what, err, got)
		}
	}
}
