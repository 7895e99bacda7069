package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// opm's recorded cost with a ready cache. Its list has 2,585 messages; in the second row eight clients request it
// concurrently.
var (
	opmServe      = recorded{"opm serve, as recorded", 0.81, 0.98, 92e6, 0.417}
	opmServeLarge = recorded{"opm serve, as recorded", 7.2, 5.3, 759e6, 5.0}
	opmList       = recorded{"opm serve, as recorded", 0.72, 0, 760e6, 5.0}
	opmLists      = recorded{"opm serve, as recorded", 3.2, 0, 760e6, 5.0}
	opmGet        = recorded{"opm serve, as recorded", 0.0007, 0, 760e6, 5.0}
	opmGetP99     = recorded{"opm serve, as recorded", 0.007, 0, 760e6, 5.0}
)

// loadResult has the used fields of hack/load's output.
type loadResult struct {
	Mode                          string
	Seconds                       float64
	Calls, Errors                 int64
	P50, P99                      float64
	FirstAnswer, StartCPU         float64
	ServerCPU                     float64
	RSSBefore, RSSDuring, RSSPeak int64
}

// serving measures the server of catalog images from another process.
func (b *bench) serving(ctx context.Context) error {
	server, client := filepath.Join(b.dir, "opm-server"), filepath.Join(b.dir, "load")
	for _, build := range [][]string{
		{"-trimpath", "-tags=containers_image_openpgp,exclude_graphdriver_btrfs,grpcnotrace", "-ldflags=-s -w", "-o",
			server, "./cmd/opm-server"},
		{"-o", client, "./hack/load"},
	} {
		cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, build...)...)
		cmd.Dir, cmd.Stderr = b.project, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go build: %w", err)
		}
	}
	if _, err := os.Stat(b.in.migrated); err != nil {
		if _, err := (command{args: []string{b.bindery, "-q", "migrate", b.in.database, b.in.migrated, "-o",
			"json"}}).once(ctx); err != nil {
			return err
		}
	}
	if _, ok := b.gzip[b.in.migrated]; !ok {
		if err := b.gzipOf(ctx, b.in.migrated); err != nil {
			return err
		}
	}
	measure := func(catalog, cache string, flags ...string) ([]loadResult, error) {
		return b.load(ctx, client,
			append(flags, "--", server, "serve", catalog, "--cache-dir", cache, "--termination-log", ""))
	}

	cache := filepath.Join(b.dir, "serve-cache")
	if err := b.cold(ctx, server, b.in.catalog, cache, b.catalogName(), opmCache.here(b.gzip[b.in.catalog].CPU),
		target{}); err != nil {
		return err
	}
	small, err := measure(b.in.catalog, cache, "-mode", "start", "-runs", fmt.Sprint(b.runs))
	if err != nil {
		return err
	}
	b.add(row{What: "serve, ready cache, to the first answer", Input: b.catalogName(), Took: small[0].start(),
		Ref: opmServe.here(b.gzip[b.in.catalog].CPU), Target: target{Times: 20}})

	input := fmt.Sprintf("migrated from the database, %s MB", mb(sizeOf(b.in.migrated)))
	gzip := b.gzip[b.in.migrated].CPU
	cache += "-large"
	opmCold := recorded{"opm serve --cache-only, as recorded", 27, 41.6, 775e6, 5.0}
	if err := b.cold(ctx, server, b.in.migrated, cache, input, opmCold.here(gzip),
		target{Times: 5, RSS: 100e6}); err != nil {
		return err
	}
	r, err := measure(b.in.migrated, cache, "-decode", "-mode", "start,list,get,slow,stopped", "-runs",
		fmt.Sprint(b.runs))
	if err != nil {
		return err
	}
	b.add(row{What: "serve, ready cache, to the first answer", Input: input, Took: r[0].start(),
		Ref: opmServeLarge.here(gzip), Target: target{Times: 20, RSS: 76e6}})
	b.add(row{What: "ListBundles", Input: input, Took: r[1].each(1), Ref: opmList.here(gzip),
		Target: target{Times: 10, RSS: 76e6}})
	get := r[2].each(1)
	get.Wall, get.Least = r[2].P50, r[2].P50
	b.add(row{What: "GetBundle, median", Input: input, Took: get, Ref: opmGet.here(gzip),
		Target: target{Times: 3, RSS: 76e6}})
	get.Wall, get.Least = r[2].P99, r[2].P99
	b.add(row{What: "GetBundle, p99", Input: input, Took: get, Ref: opmGetP99.here(gzip),
		Target: target{Times: 3, RSS: 76e6}})
	for _, crowd := range r[3:] {
		took := crowd.each(1)
		took.Wall, took.Least, took.RSS = crowd.P99, crowd.P99, crowd.RSSDuring
		b.add(row{What: "GetBundle, p99, beside 1,000 readers: " + crowd.Mode, Input: input, Took: took,
			Target: target{RSS: 120e6}})
	}
	eight, err := measure(b.in.migrated, cache, "-decode", "-mode", "list", "-clients", "8")
	if err != nil {
		return err
	}
	b.add(row{What: "ListBundles, 8 at once", Input: input, Took: eight[0].each(8), Ref: opmLists.here(gzip),
		Target: target{Times: 10, RSS: 76e6}})
	return nil
}

// cold measures building the cache.
func (b *bench) cold(ctx context.Context, server, catalog, cache, input string, ref *reference, t target) error {
	s, err := median(ctx, min(b.runs, 3),
		command{args: []string{server, "serve", catalog, "--cache-dir", cache, "--cache-only", "--termination-log", ""},
			before: removing(cache)})
	if err != nil {
		return err
	}
	b.add(row{What: "serve --cache-only", Input: input, Took: s[0], Result: sizeOf(cache), Ref: ref, Target: t})
	return nil
}

func (b *bench) load(ctx context.Context, client string, args []string) (results []loadResult, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, client, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("load: %w: %s", err, lastLine(stderr.String()))
	}
	os.Stderr.Write(stderr.Bytes())
	if err := json.Unmarshal(stdout.Bytes(), &results); err != nil {
		return nil, err
	}
	for _, r := range results {
		if r.Errors > 0 {
			return nil, fmt.Errorf("load: %s: %d calls failed", r.Mode, r.Errors)
		}
	}
	return results, nil
}

func (r loadResult) start() sample {
	return sample{Wall: r.FirstAnswer, Least: r.FirstAnswer, CPU: r.StartCPU, RSS: r.RSSPeak}
}

// each returns the average cost of a call.
func (r loadResult) each(calls float64) sample {
	n := calls / float64(max(r.Calls, 1))
	return sample{Wall: r.Seconds * n, Least: r.Seconds * n, CPU: r.ServerCPU * n, RSS: r.RSSPeak}
}
