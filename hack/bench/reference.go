package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// recorded is the cost of a reference program on the machine where it was recorded, with the cost of gzip -6 of a tar
// of the same input there. The last release of opm that reads SQLite is hard to obtain, so its time on this machine is
// estimated: recorded time * (gzip's CPU seconds here / gzip's CPU seconds there).
type recorded struct {
	name      string
	wall, cpu float64 // seconds
	rss       int64   // bytes
	gzip      float64 // CPU seconds
}

var (
	opmMigrate       = recorded{"opm migrate", 36, 37, 3494e6, 4.92}
	opmRender        = recorded{"opm render", 35, 35, 3020e6, 4.92}
	opmValidate      = recorded{"opm validate", 1.64, 2.60, 161e6, 0.417}
	opmRenderCatalog = recorded{"opm render", 1.37, 2.33, 133e6, 0.417}
	opmValidateLarge = recorded{"opm validate", 20.7, 26.7, 1111e6, 5.0}
	buildahBud       = recorded{"buildah bud, as recorded", 0.424, 0.67, 29e6, 0.417}
)

// here returns the estimated reference on this machine.
func (r recorded) here(gzipHere float64) *reference {
	scale := gzipHere / r.gzip
	return &reference{Name: r.name, Wall: r.wall * scale, Least: r.wall * scale, CPU: r.cpu * scale, RSS: r.rss,
		By: "proportion to gzip -6"}
}

// references measures gzip -6 of a tar of each input.
func (b *bench) references(ctx context.Context) error {
	b.gzip = map[string]sample{}
	inputs := []string{b.in.database, b.in.catalog}
	switch b.only {
	case "warm", "serving":
		inputs = inputs[1:]
	case "deltas":
		inputs = nil // bytes are compared, not times
	}
	for _, input := range inputs {
		if err := b.gzipOf(ctx, input); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) gzipOf(ctx context.Context, input string) error {
	archive := filepath.Join(b.dir, "gzip.tar")
	defer os.Remove(archive)
	if out, err := exec.CommandContext(ctx, "tar", "-C", filepath.Dir(input), "-cf", archive,
		filepath.Base(input)).CombinedOutput(); err != nil {
		return fmt.Errorf("tar of %s: %w: %s", input, err, out)
	}
	// Three runs suffice for large inputs: runs of several seconds vary little.
	s, err := median(ctx, min(b.runs, 3), command{args: []string{"gzip", "-6", "-c", archive}})
	if err != nil {
		return err
	}
	b.gzip[input] = s[0]
	fmt.Printf("gzip -6 of a tar of %s (%.1f MB): %.3f s CPU, %.3f s wall%s\n", filepath.Base(input),
		float64(sizeOf(input))/1e6, s[0].CPU, s[0].Wall, crowded(s[0]))
	return nil
}

// crowded reports whether a single-threaded process had to wait for the processor.
func crowded(s sample) string {
	if s.CPU > 0.1 && s.Wall > 1.15*s.CPU {
		return " - other work runs on this machine: trust CPU ratios, not walls"
	}
	return ""
}
