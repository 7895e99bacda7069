//go:build !nobuildah

package evaluator

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	docker "github.com/fsouza/go-dockerclient"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/openshift/imagebuilder"
	"github.com/openshift/imagebuilder/dockerfile/command"
	"github.com/openshift/imagebuilder/dockerfile/parser"

	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/layers"
)

// stage is a stage, evaluated or being evaluated.
type stage struct {
	e        *evaluation
	ib       *imagebuilder.Builder
	platform v1.Platform
	image    *imageTree // the base image; nil for scratch
	layers   []*layers.Layer
	env      []string // the environment inherited from the base
	root     *node
	history  []v1.History // history of the stages, without that of the base image
	author   string
	sealed   bool

	ctx  context.Context // the context of the current instruction
	line int
}

// stage evaluates a stage and those that it depends on. The result is nil if it has problems.
func (v *evaluation) stage(ctx context.Context, n int) (*stage, error) {
	if s := v.done[n]; s != nil {
		if s.e == nil {
			return nil, nil // its problems are recorded already
		}
		return s, nil
	}
	v.done[n] = &stage{}
	st := v.stages[n]
	s := &stage{e: v, ib: st.Builder, platform: v.platform, line: v.lines[st.Node]}
	before := len(v.problems.Problems)
	if err := s.startStage(ctx, n, st.Node); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, v.fail(s.line, command.From, err)
	}
	for _, child := range st.Node.Children {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		s.line = child.StartLine
		if err := s.instruction(ctx, child); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx) // the error is a consequence of the cancellation
			}
			if err := v.fail(s.line, child.Value, err); err != nil {
				return nil, err
			}
		}
	}
	if len(v.problems.Problems) > before {
		return nil, nil
	}
	v.done[n] = s
	return s, nil
}

func (s *stage) startStage(ctx context.Context, n int, node *parser.Node) error {
	name, err := s.ib.From(node)
	if err != nil {
		return err
	}
	if strings.Contains(name, "$") || name == "" {
		return newMendError("give the ARG a default, or --build-arg", "%.200q names no image", name)
	}
	if text := s.ib.Platform; text != "" {
		if s.platform, err = parsePlatform(text); err != nil {
			return err
		}
	}
	config := docker.Config{Image: name}
	i := s.e.stageNamed(name, n)
	switch {
	case name == imagebuilder.NoBaseImageSpecifier:
		s.root = newDir()
	case i >= 0:
		below, err := s.e.stage(ctx, i)
		if err != nil || below == nil {
			if below == nil && err == nil {
				err = fmt.Errorf("stage %q has problems", name)
			}
			return err
		}
		if err := below.seal(ctx); err != nil {
			return err
		}
		s.image, s.platform, s.author = below.image, below.platform, below.author
		s.layers = append(s.layers, below.layers...)
		s.history = append(s.history, below.history...)
		s.root = s.e.derive(below.root)
		config = below.ib.RunConfig
		config.Env, config.Labels = below.allEnv(), cloneMap(config.Labels)
		config.Volumes, config.ExposedPorts = cloneMap(config.Volumes), cloneMap(config.ExposedPorts)
		config.Image = name
		s.inheritArguments(below)
	default:
		if s.image, err = s.e.tree(ctx, name, s.platform); err != nil {
			return err
		}
		if c := s.image.image.Config; !platform.MatchesAnyVariant(c.Platform, s.platform) {
			return newMendError(fmt.Sprintf("give --platform %.40s, or take an image that is for both",
				c.OS+"/"+c.Architecture), "image %.200q is for %.40q, not for %s/%s", name, c.OS+"/"+c.Architecture,
				s.platform.OS, s.platform.Architecture)
		}
		s.root = s.e.derive(s.image.node)
		var author string
		if config, author, err = baseConfig(s.image.image.ConfigText); err != nil {
			return fmt.Errorf("image %.200q: %w", name, err)
		}
		s.author, config.Image = author, name
	}
	s.env = config.Env
	if err := checkText([]byte(strings.Join(config.OnBuild, "\n"))); err != nil {
		return fmt.Errorf("ONBUILD of %.200q: %w", name, err)
	}
	return s.ib.FromImage(&docker.Image{Config: &config}, node)
}

// inheritArguments copies the arguments of the stage in FROM with their values there. The library copies them too, but
// expands their defaults without the arguments declared before the first FROM.
func (s *stage) inheritArguments(below *stage) {
	for name := range below.ib.AllowedArgs {
		s.ib.AllowedArgs[name] = true
		if value, ok := below.ib.Args[name]; ok {
			s.ib.Args[name] = value
		}
	}
}

func cloneMap[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	maps.Copy(out, m)
	return out
}

// allEnv returns the environment for the configuration: a variable that is set again moves to the end.
func (s *stage) allEnv() []string {
	all := slices.Clone(s.env)
	for _, set := range s.ib.RunConfig.Env {
		key, _, _ := strings.Cut(set, "=")
		all = slices.DeleteFunc(all, func(old string) bool {
			name, _, _ := strings.Cut(old, "=")
			return name == key
		})
		all = append(all, set)
	}
	return all
}

func (s *stage) instruction(ctx context.Context, n *parser.Node) error {
	step := s.ib.Step()
	if err := s.e.effort.instruction(n, step.Env); err != nil {
		return err
	}
	if err := step.Resolve(n); err != nil {
		return err
	}
	if err := s.precheck(step); err != nil {
		return err
	}
	s.ctx = ctx
	warnings := len(s.ib.Warnings)
	if err := s.ib.Run(step, executor{s, strings.ToLower(step.Command)}, true); err != nil {
		return err
	}
	for _, w := range s.ib.Warnings[warnings:] {
		s.e.warn(fmt.Sprintf("%s:%d: %s", s.e.f.Name, s.line, strings.TrimSpace(w)))
	}
	s.record(n)
	return nil
}

// precheck refuses values that the library would misinterpret.
func (s *stage) precheck(step *imagebuilder.Step) error {
	for _, f := range step.Flags {
		switch name, _, ok := strings.Cut(f, "="); {
		case !ok && (name == "--chown" || name == "--chmod" || name == "--from" || name == "--exclude" ||
			name == "--checksum" || name == "--platform"):
			return newMendError("write "+name+"=VALUE", "%s has no value", name)
		case name == "--chmod":
			mode, err := imagebuilder.ProcessWord(f[len("--chmod="):], s.variables(step))
			if err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
			if _, err := chmodOf(mode); err != nil {
				return err
			}
		}
	}
	switch step.Command {
	case command.Expose:
		for _, port := range step.Args {
			if !isPort(port) {
				return newMendError("write PORT, PORT-PORT or PORT/PROTOCOL with tcp, udp or sctp", "%.40q is no port",
					port)
			}
		}
	case command.Cmd, command.Entrypoint, command.Copy, command.Add, command.Volume:
		if len(step.Args) > 0 && strings.HasPrefix(step.Args[0], "[") && !step.Attrs["json"] {
			s.e.warn(
				fmt.Sprintf(
					"%s:%d: %s: not a JSON list of strings in double quotes although it begins with [: it is parsed "+
						"as plain words", s.e.f.Name, s.line, strings.ToUpper(step.Command)))
		}
	}
	return nil
}

// variables are those that the library expands in the flags of an instruction: of one name the first counts.
func (s *stage) variables(step *imagebuilder.Step) []string {
	all := slices.Clone(step.Env)
	for _, name := range slices.Sorted(maps.Keys(s.ib.Args)) {
		if _, declared := s.ib.AllowedArgs[name]; declared {
			all = append(all, name+"="+s.ib.Args[name])
		}
	}
	return all
}

// isPort reports whether a text is a port or a range of ports, optionally with a protocol.
func isPort(text string) bool {
	ports, protocol, named := strings.Cut(text, "/")
	if protocol = strings.ToLower(protocol); named && protocol != "tcp" && protocol != "udp" && protocol != "sctp" {
		return false
	}
	first, last, isRange := strings.Cut(ports, "-")
	low, err := strconv.ParseUint(first, 10, 16)
	if err != nil || !isRange {
		return err == nil
	}
	high, err := strconv.ParseUint(last, 10, 16)
	return err == nil && low <= high
}

// executor implements the library's interface for carrying out instructions.
type executor struct {
	s       *stage
	command string
}

func (executor) Preserve(string) error            { return nil }
func (executor) EnsureContainerPath(string) error { return nil }

// EnsureContainerPathAs creates the working directory. The library calls it after every instruction; it acts on WORKDIR
// only, so that the layers of the base are not read without need.
func (x executor) EnsureContainerPathAs(dir, user string, _ *os.FileMode) error {
	if x.command != command.Workdir || path.Clean(dir) == "/" {
		return nil
	}
	var uid, gid int
	if user != "" {
		// If the user is unknown, root owns the directory.
		if u, g, err := owner(x.s.ctx, x.s.root, user); err == nil {
			uid, gid = u, g
		} else if x.s.ctx.Err() != nil {
			return err
		}
	}
	p, err := walk(x.s.ctx, x.s.root, dir, true, func() *node {
		d := newDir()
		d.inLayer, d.uid, d.gid = true, uid, gid
		return d
	})
	if err == nil && !p.node().isDir() {
		err = fmt.Errorf("%.200q exists and is not a directory", dir)
	}
	return err
}

func (x executor) Copy(_ []string, copies ...imagebuilder.Copy) error {
	for _, c := range copies {
		if c.KeepGitDir {
			return newMendError("check the repository out first and copy the directory: COPY DIR DESTINATION",
				"--keep-git-dir: fetching repositories is not supported")
		}
		if err := x.s.copy(x.s.ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (x executor) Run(run imagebuilder.Run, _ docker.Config) error { return x.s.run(x.s.ctx, run) }

func (x executor) UnrecognizedInstruction(step *imagebuilder.Step) error {
	return fmt.Errorf("unknown instruction %.40q", step.Command)
}

// sourceOf returns the tree that --from names and its exclusions; the context if from is empty.
func (s *stage) sourceOf(ctx context.Context, from string) (*node, []string, error) {
	if from == "" {
		return s.e.context.node, s.e.patterns, nil
	}
	if d := s.e.contexts[from]; d != nil {
		patterns, err := d.ignorePatterns("")
		return d.node, patterns, err
	}
	index := len(s.e.stages)
	for i, st := range s.e.stages {
		if st.Builder == s.ib {
			index = i
		}
	}
	if i := s.e.stageNamed(from, index); i >= 0 {
		other, err := s.e.stage(ctx, i)
		if err == nil && other == nil {
			err = fmt.Errorf("stage %q has problems", from)
		}
		if err != nil {
			return nil, nil, err
		}
		return other.root, nil, nil
	}
	if _, err := strconv.Atoi(from); err == nil {
		return nil, nil, newMendError("only stages before this one can be named", "--from=%s: there is no such stage", from)
	}
	t, err := s.e.tree(ctx, from, s.e.platform)
	if err != nil {
		return nil, nil, fmt.Errorf("--from=%s is no stage before this one, and no image: %w", from, err)
	}
	return t.node, nil, nil
}

// seal creates the layer of the stage if it changed any file. Only stages that become part of the image need a layer;
// stages that files are only copied from do not.
func (s *stage) seal(ctx context.Context) error {
	if s.sealed {
		return nil
	}
	s.sealed = true
	entries, id, err := entriesOf(ctx, s.root)
	if err != nil || len(entries) == 0 {
		return err
	}
	l := s.e.layers[id]
	if l == nil {
		l = &layers.Layer{Name: "files", Entries: entries}
		s.e.layers[id] = l
	}
	s.layers = append(s.layers, l)
	if n := len(s.history); n > 0 {
		s.markLayer()
	}
	return nil
}

func parsePlatform(text string) (v1.Platform, error) {
	parts := strings.Split(text, "/")
	p := v1.Platform{OS: "linux", Architecture: parts[0]}
	switch len(parts) {
	case 1:
	case 2, 3:
		p.OS, p.Architecture = parts[0], parts[1]
		if len(parts) == 3 {
			p.Variant = parts[2]
		}
	default:
		return p, fmt.Errorf("--platform=%.100s: expected OS/ARCH", text)
	}
	if p.OS == "" || p.Architecture == "" {
		return p, newMendError("write OS/ARCH", "--platform=%.100s names no platform", text)
	}
	return p, nil
}
