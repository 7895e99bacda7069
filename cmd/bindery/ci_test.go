package main

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/testregistry"
)

const ciDir = "../../deploy/ci/"

func strictly(t *testing.T, file string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(readFile(t, ciDir+file)), into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// ciPods returns the pods of the CI recipes.
func ciPods(t *testing.T) map[string]*corev1.PodSpec {
	t.Helper()
	var job batchv1.Job
	strictly(t, "pod.yaml", &job)
	var agent corev1.Pod
	strictly(t, "jenkins-pod.yaml", &agent)
	served, _ := servedCatalog(t)
	out := map[string]*corev1.PodSpec{"serve/catalog.yaml": &served.Spec.Template.Spec,
		"pod.yaml": &job.Spec.Template.Spec, "jenkins-pod.yaml": &agent.Spec}
	for name, m := range mirrorManifests(t) {
		for _, j := range m.jobs {
			out["mirror/"+name] = &j.Spec.Template.Spec
		}
	}
	return out
}

// The pods of the recipes pass Kubernetes' own check of the restricted profile; a pod without restrictions fails it.
func TestCIPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	refused := func(spec *corev1.PodSpec) string {
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &metav1.ObjectMeta{}, spec))
		return result.ForbiddenDetail()
	}
	for name, spec := range ciPods(t) {
		if why := refused(spec); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		yes := true
		for what, spoil := range map[string]func(*corev1.PodSpec){
			"root":       func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
			"privileges": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = &yes },
			"host files": func(s *corev1.PodSpec) {
				s.Volumes = append(s.Volumes,
					corev1.Volume{Name: "h",
						VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
			},
		} {
			spoiled := spec.DeepCopy()
			spoil(spoiled)
			if refused(spoiled) == "" {
				t.Errorf("%s: nothing forbids %s", name, what)
			}
		}
	}
}

// recipe lists the bindery commands of a CI recipe and the location of its credentials.
type recipe struct {
	commands [][]string
	authFile string            // a variable with the path of a credentials file
	mounts   map[string]string // directories of the pod, and their source in the checkout
	digest   string            // the file with the digest
	tag      string
}

var (
	jenkinsStep = regexp.MustCompile(`(?m)^\s*sh '(.*)'$`)
	secretPath  = regexp.MustCompile(`^umask 077; printf '%s' "\$REGISTRY_AUTH" > "\$RUNNER_TEMP/auth.json"$`)
)

// binderyLines returns the bindery commands in lines of a shell script. Every other line must be a known one, because
// it is not run.
func binderyLines(t *testing.T, lines []string) (out [][]string) {
	t.Helper()
	for _, line := range lines {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "bindery "):
			if strings.ContainsAny(line, "'\"\\|&;<>()`") {
				t.Errorf("%q is more than words and variables", line)
			}
			out = append(out, strings.Fields(line)[1:])
		case line == "", secretPath.MatchString(line), line == `echo "digest=$(cat digest)" >> "$GITHUB_OUTPUT"`:
		default:
			t.Errorf("%q is not known", line)
		}
	}
	return out
}

// recipes parses the files of the recipes, with unknown fields refused where they are decoded.
func recipes(t *testing.T) map[string]recipe {
	t.Helper()
	var gitlab struct {
		Catalog struct {
			Image     string
			Variables map[string]string
			Script    []string
			Cache     struct {
				Key   string
				Paths []string
			}
			Artifacts struct{ Paths []string }
		}
	}
	strictly(t, "gitlab-ci.yml", &gitlab)
	var github struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readFile(t, ciDir+"github.yaml")), &github); err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, s := range github.Jobs["catalog"].Steps {
		steps = append(steps, strings.Split(s.Run, "\n")...)
	}
	var jenkins []string
	for _, m := range jenkinsStep.FindAllStringSubmatch(readFile(t, ciDir+"Jenkinsfile"), -1) {
		jenkins = append(jenkins, m[1])
	}
	pod := recipe{authFile: "REGISTRY_AUTH_FILE", mounts: map[string]string{"/source/": "", "/work/": ""},
		digest: "digest", tag: "v1"}
	spec := ciPods(t)["pod.yaml"]
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		if len(c.Command) != 1 || c.Command[0] != "/bin/bindery" {
			t.Errorf("the pod runs %v", c.Command)
		}
		pod.commands = append(pod.commands, c.Args)
	}
	return map[string]recipe{
		"pod": pod,
		"gitlab": {commands: binderyLines(t, gitlab.Catalog.Script), authFile: "REGISTRY_AUTH_FILE", digest: "digest",
			tag: "sha"},
		"github":  {commands: binderyLines(t, steps), digest: "digest", tag: "sha"},
		"jenkins": {commands: binderyLines(t, jenkins), authFile: "REGISTRY_AUTH_FILE", digest: "digest", tag: "sha"},
	}
}

// The commands of every recipe, run next to a checkout, push the catalog to a registry that requires the recipe's
// credentials and write the digest; all recipes build the same image.
func TestCIRecipes(t *testing.T) {
	const user, password = "ci", "s3cret"
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	digests := map[string]string{}
	for name, r := range recipes(t) {
		if len(r.commands) != 2 {
			t.Errorf("%s: %v", name, r.commands)
		}
		registry, dir := testregistry.New(t), t.TempDir()
		registry.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
			if q.Header.Get("Authorization") == basic {
				return false
			}
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		})
		writeFile(t, filepath.Join(dir, "catalog", "etcd", "catalog.json"), packageText("etcd"))
		auth := filepath.Join(dir, "auth.json")
		writeFile(t, auth, `{"auths":{"`+registry.Host()+`":{"auth":"`+strings.TrimPrefix(basic, "Basic ")+`"}}}`)
		variables := map[string]string{"CI_COMMIT_SHORT_SHA": "sha", "GITHUB_SHA": "sha", "BUILD_NUMBER": "sha",
			"RUNNER_TEMP": dir}
		t.Setenv("REGISTRY_AUTH_FILE", "")
		if r.authFile != "" {
			t.Setenv(r.authFile, auth)
		}
		for _, command := range r.commands {
			var args []string
			for _, arg := range command {
				arg = os.Expand(arg, func(v string) string {
					if variables[v] == "" {
						t.Errorf("%s: %q: no variable %s", name, arg, v)
					}
					return variables[v]
				})
				for mount, in := range r.mounts {
					arg = strings.Replace(arg, mount, filepath.Join(dir, in)+"/", 1)
				}
				// An image without a server is for one platform; only released programs have the servers of other
				// platforms.
				arg = strings.Replace(arg, "linux/amd64,linux/arm64", "linux/amd64", 1)
				args = append(args, strings.ReplaceAll(arg, "registry.example.com", registry.Host()))
			}
			if args[0] == "build" {
				args = append(args, "--use-http", "--server=none", "--no-cache")
			}
			done(t, dir, "bindery", args...)
		}
		digests[name] = readFile(t, filepath.Join(dir, r.digest))
		if len(registry.Manifest("acme/catalog", r.tag)) == 0 {
			t.Errorf("%s: nothing was pushed", name)
		}
	}
	for name, d := range digests {
		if d != digests["pod"] || !strings.HasPrefix(d, "sha256:") {
			t.Errorf("%s: %s, the pod %s", name, d, digests["pod"])
		}
	}
}
