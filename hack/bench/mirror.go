package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// mirrored is what a mirror in one direction takes: medians, and the requests of the last run.
type mirrored struct {
	program, direction string
	took               sample
	source, target     traffic
	bytes              int64 // that the target has then
}

// traffic is what a registry was asked.
type traffic struct {
	requests map[string]int // by kind
	all      int
	cpu      float64 // seconds of the registry
	uploads  float64 // how many there were at once, on the average of the time in which there was one
}

// mirrors compares mirrors of a release with those of oc-mirror, if there is one: from registry to registry, to an
// archive, and out of it, each to an empty target and then again. Both programs have the same arguments. The registries
// log their requests.
func (b *bench) mirrors(ctx context.Context) error {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		fmt.Println("docker-registry is not installed: mirrors are LEFT OUT")
		return nil
	}
	source, err := b.startLogged(ctx, program, "mirror-source")
	if err != nil {
		return err
	}
	defer source.stop()
	filling := &mirrorSource{ctx: ctx, host: source.host, sent: map[string]bool{}}
	set, err := filling.fill()
	if err != nil {
		return fmt.Errorf("filling the source of mirrors: %w", err)
	}
	config := filepath.Join(b.dir, "imageset.yaml")
	if err := os.WriteFile(config, []byte(set), 0o644); err != nil {
		return err
	}
	fmt.Printf("mirrors of a release of %d components and %d images, %s MB; %d runs\n", mirroredComponents, mirroredImages,
		mb(filling.size), b.runs)
	programs := []string{"bindery"}
	if b.peer != "" {
		programs = append(programs, "oc-mirror")
	}
	all := map[string][]mirrored{}
	for run := range b.runs {
		for i := range programs {
			name := programs[(i+run)%len(programs)] // neither is always the first one
			found, err := b.mirrorOnce(ctx, program, name, config, source)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for _, m := range found {
				all[m.direction+" "+name] = append(all[m.direction+" "+name], m)
			}
			fmt.Fprintln(os.Stderr, "measured: mirrors of", name)
		}
	}
	printMirrors(all)
	return nil
}

// mirrorOnce mirrors in all directions, with one program.
func (b *bench) mirrorOnce(ctx context.Context, registry, name, config string, source *logged) (all []mirrored, err error) {
	dir := filepath.Join(b.dir, "mirrors", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{b.peer}
	if name == "bindery" {
		args[0] = filepath.Join(dir, "oc-mirror") // the name by which it is oc-mirror
		if err := os.Symlink(b.bindery, args[0]); err != nil {
			return nil, err
		}
	}
	archive := "file://" + filepath.Join(dir, "archive")
	var target *logged
	step := func(direction, at string, more ...string) error {
		c := command{args: slices.Concat(args, []string{"-c", config, "--v2", "--ignore-release-signature", "--src-tls-verify=false",
			"--dest-tls-verify=false", "--cache-dir", filepath.Join(dir, "cache")}, more), dir: dir, logs: true,
			env: []string{"HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, "xdg")}}
		m := mirrored{program: name, direction: direction}
		_, err := source.read()
		if err == nil && target != nil {
			_, err = target.read()
		}
		if err == nil {
			m.took, err = c.once(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", direction, err)
		}
		if m.source, err = source.read(); err == nil && target != nil {
			m.target, err = target.read()
		}
		m.bytes = sizeOf(at)
		all = append(all, m)
		return err
	}
	for _, direction := range []string{"m2m", "m2d", "d2m"} {
		target = nil
		at := filepath.Join(dir, "archive")
		if direction != "m2d" {
			if target, err = b.startLogged(ctx, registry, "mirrors/"+name+"/target-of-"+direction); err != nil {
				return nil, err
			}
			at = target.dir
		}
		more := map[string][]string{"m2d": {archive}}[direction]
		switch direction {
		case "m2m":
			more = []string{"--workspace", "file://" + filepath.Join(dir, "workspace"), "docker://" + target.host + "/mirror"}
		case "d2m":
			more = []string{"--from", archive, "docker://" + target.host + "/mirror"}
		}
		for _, when := range []string{"first", "again"} {
			if err = step(direction+" "+when, at, more...); err != nil {
				break
			}
		}
		if target != nil {
			target.stop()
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// logged is a registry that logs its requests.
type logged struct {
	host, dir string
	pid       int
	log       *os.File // its log, from where it was not read yet
	cpu       float64  // seconds until it was last read
	stop      func()
}

func (b *bench) startLogged(ctx context.Context, program, name string) (*logged, error) {
	r := &logged{dir: filepath.Join(b.dir, name)}
	to, err := os.Create(r.dir + ".log")
	if err != nil {
		return nil, err
	}
	defer to.Close()
	var stop func()
	if r.host, r.pid, stop, err = startLogging(ctx, program, r.dir, to); err != nil {
		return nil, err
	}
	r.stop = func() { stop(); r.log.Close() }
	if r.log, err = os.Open(to.Name()); err != nil {
		stop()
	}
	return r, err
}

// read returns what the registry was asked since it was last called.
func (r *logged) read() (_ traffic, err error) {
	t := traffic{requests: map[string]int{}}
	var events []event
	lines := bufio.NewScanner(r.log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Time     time.Time `json:"time"`
			Message  string    `json:"msg"`
			Method   string    `json:"http.request.method"`
			URI      string    `json:"http.request.uri"`
			Duration string    `json:"http.response.duration"`
		}
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Duration == "" || l.URI == "/v2/" {
			continue
		}
		t.requests[kindOf(l.Method, l.URI)]++
		t.all++
		took, err := time.ParseDuration(l.Duration)
		if err != nil {
			return t, fmt.Errorf("the log of the registry: %w", err)
		}
		if strings.Contains(l.URI, "/blobs/uploads/") {
			events = append(events, event{l.Time.Add(-took), 1}, event{l.Time, -1})
		}
	}
	t.uploads = atOnce(events)
	was := r.cpu
	if r.cpu, err = cpuOf(r.pid); err != nil {
		return t, err
	}
	t.cpu = r.cpu - was
	return t, lines.Err()
}

// cpuOf returns the CPU seconds of a process that runs (proc_pid_stat(5): utime and stime, of which Linux counts 100 a
// second).
func cpuOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var sum float64
	for _, at := range []int{11, 12} {
		n, err := strconv.ParseFloat(fields[at], 64)
		if err != nil {
			return 0, err
		}
		sum += n / 100
	}
	return sum, nil
}

// event is the begin or the end of an upload's request.
type event struct {
	at   time.Time
	more int
}

// atOnce returns how many requests there were at once, on the average of the time in which there was one.
func atOnce(events []event) float64 {
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(a.at.Compare(b.at), a.more-b.more) })
	var busy, sum time.Duration
	n := 0
	for i, e := range events {
		if n > 0 {
			took := e.at.Sub(events[i-1].at)
			busy += took
			sum += time.Duration(n) * took
		}
		n += e.more
	}
	if busy == 0 {
		return 0
	}
	return float64(sum) / float64(busy)
}

// kindOf says what a request is about.
func kindOf(method, uri string) string {
	path, query, _ := strings.Cut(uri, "?")
	at := strings.Split(path, "/")
	last := at[len(at)-1]
	switch {
	case strings.Contains(path, "/referrers/"):
		return method + " referrers"
	case strings.HasSuffix(path, "/tags/list"):
		return method + " tags"
	case strings.Contains(path, "/manifests/") && strings.HasPrefix(last, "sha256-"):
		return method + " .sig"
	case strings.Contains(path, "/manifests/") && strings.HasPrefix(last, "sha256:"):
		return method + " manifest by digest"
	case strings.Contains(path, "/manifests/"):
		return method + " manifest by tag"
	case strings.Contains(query, "mount="):
		return method + " mount"
	case strings.Contains(path, "/blobs/uploads/"):
		return method + " upload"
	}
	return method + " blob"
}

func printMirrors(all map[string][]mirrored) {
	tw := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "direction\tprogram\twall s\tleast\tCPU s\tregistries\tRSS MB\tsource requests\ttarget requests\tuploads at once\tMB\t")
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		runs := all[name]
		last := runs[len(runs)-1]
		took, registries := make([]sample, len(runs)), make([]sample, len(runs))
		for i, r := range runs {
			took[i], registries[i].CPU = r.took, r.source.cpu+r.target.cpu
		}
		wall := func(s sample) float64 { return s.Wall }
		fmt.Fprintf(tw, "%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t%d\t%d\t%.1f\t%s\t\n", last.direction, last.program, middle(took, wall),
			slices.MinFunc(took, func(a, b sample) int { return cmp.Compare(a.Wall, b.Wall) }).Wall,
			middle(took, func(s sample) float64 { return s.CPU }), middle(registries, func(s sample) float64 { return s.CPU }), mb(middle(took, func(s sample) int64 { return s.RSS })),
			last.source.all, last.target.all, last.target.uploads, mb(last.bytes))
	}
	tw.Flush()
	for _, name := range names {
		last := all[name][len(all[name])-1]
		for at, t := range map[string]traffic{"source": last.source, "target": last.target} {
			if t.all == 0 {
				continue
			}
			fmt.Printf("%s, %s:", name, at)
			for _, kind := range slices.Sorted(maps.Keys(t.requests)) {
				fmt.Printf(" %d %s,", t.requests[kind], kind)
			}
			fmt.Println()
		}
	}
	fmt.Printf("load average at the end: %s\n", loadAverage())
}
