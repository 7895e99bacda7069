package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
)

// bench is a directory with databases, and a count of migrations.
type bench struct {
	t     *testing.T
	dir   string
	o     Options
	calls atomic.Int32
	// cut, unless nil, aborts a migration when its outputs are prepared and not yet renamed.
	cut func(*Task) error
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	t.Chdir(b.dir)
	for _, name := range []string{"small", "subs"} {
		b.add(recorded.Part(t).Database(t, name), name+".db")
	}
	b.o = Options{Dir: "reports", Jobs: 2, Tool: "v1", Settings: func(*Line) string { return "s" }, Migrate: b.migrate}
	return b
}

func (b *bench) add(from, to string) {
	b.t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) migrate(ctx context.Context, t *Task) (*migrate.Report, error) {
	b.calls.Add(1)
	p, err := migrate.Options{
		Verify: b.o.Verify, Replace: t.Replace, Render: render.Options{KeepGoing: b.o.KeepGoing},
	}.Prepare(ctx, t.Source, t.Directory)
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.Discard() }()
	if err := t.Prepared(ctx, p.Dir(), "", p.Report); err != nil {
		return nil, err
	}
	if b.cut != nil {
		if err := b.cut(t); err != nil {
			return nil, err
		}
	}
	if err := p.Commit(); err != nil {
		return nil, err
	}
	return p.Report, p.Partial()
}

// run does a list and returns how each line ended and how many were migrated.
func (b *bench) run(ctx context.Context, list string) string {
	b.t.Helper()
	lines, err := Parse(strings.NewReader(list), "list", ListOptions{Transports: transports, Image: pushed})
	if err != nil {
		b.t.Fatal(err)
	}
	b.calls.Store(0)
	outcomes, err := Run(ctx, lines, b.o)
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for _, o := range outcomes {
		text := string(o.State)
		if o.Before {
			text += " before"
		}
		if o.Err != nil && b.t.Context().Err() == nil && ctx.Err() == nil {
			text += ": " + o.Err.Error()
		}
		all = append(all, text)
	}
	if left, err := filepath.Glob("reports/.*"); err != nil || len(left) > 0 {
		b.t.Errorf("left beside the reports: %v (%v)", left, err)
	}
	return fmt.Sprintf("%s (%d)", strings.Join(all, ", "), b.calls.Load())
}

func (b *bench) expect(ctx context.Context, list, want string) {
	b.t.Helper()
	if got := b.run(ctx,
		list); got != want && !(strings.HasSuffix(want, "*") && strings.HasPrefix(got, strings.TrimSuffix(want, "*"))) {
		b.t.Errorf("got %q, want %q", got, want)
	}
}

const two = "small.db out/small\nsubs.db out/subs\n"

func TestRunTwice(t *testing.T) {
	b := newBench(t)
	b.expect(t.Context(), two, "done, done (2)")
	b.expect(t.Context(), two, "done before, done before (0)")
	b.expect(t.Context(), "subs.db out/more\n"+two, "done, done before, done before (1)")
	var r Record
	reports, err := filepath.Glob("reports/*small*.json")
	if err != nil || len(reports) != 1 {
		t.Fatal(reports, err)
	}
	text, err := os.ReadFile(reports[0])
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || r.State != Done || r.Source != "small.db" || !r.Written.Complete ||
		r.Written.Directory.Files != 2 || len(r.Written.Report.Packages) != 2 ||
		r.Written.Report.Output != "out/small" {
		t.Errorf("%+v (%v)", r, err)
	}
}

// An archive is there if its file is, and a layout or a directory only if the image in it is: a file in its place is not.
func TestImagesThere(t *testing.T) {
	client, err := images.NewClient(images.ClientOptions{Transports: transports, NoPolicy: true, Options: registries.Options{Temp: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"oci-archive:file:v1": true, "docker-archive:file": true, "oci:file:v1": false,
		"dir:file": false, "oci-archive:none:v1": false, "oci:none:v1": false, "dir:none": false} {
		d, err := transports.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		task := &Task{Line: &Line{Destinations: []transport.Destination{d}}, run: &run{o: Options{Images: client}}}
		if there, err := task.imagesThere(t.Context(), &Written{Image: "sha256:none"}); there != want {
			t.Errorf("%s: %v, %v", name, there, err)
		}
	}
}

// The existing outputs and the line decide what is done. Outputs changed by others are never replaced.
func TestDecide(t *testing.T) {
	touch := func(t *testing.T, name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	other := func(b *bench) { b.o.Settings = func(*Line) string { return "t" } }
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *bench)
		want   string
	}{
		{"nothing has changed", func(*testing.T, *bench) {}, "done before (0)"},
		{"the output is gone", func(t *testing.T, b *bench) { os.RemoveAll("out") }, "done (1)"},
		{"the output is empty", func(t *testing.T, b *bench) {
			os.RemoveAll("out/small/etcd")
			os.RemoveAll("out/small/silicom-sts-operator")
		}, "done (1)"},
		{"a file is more", func(t *testing.T, b *bench) { touch(t, "out/small/mine", "") },
			"failed: the output directory \"out/small\" was changed since it was written*"},
		{"a file is another", func(t *testing.T, b *bench) { touch(t, "out/small/etcd/catalog.json", "{}") },
			"failed: the output directory*"},
		{"another source", func(t *testing.T, b *bench) { b.add("subs.db", "small.db") },
			"failed: the outputs exist, but were written differently (from another source*"},
		{"another source, overwrite",
			func(t *testing.T, b *bench) { b.add("subs.db", "small.db"); b.o.Overwrite = true }, "done (1)"},
		{"other settings", func(t *testing.T, b *bench) { other(b) },
			"failed: the outputs exist, but were written differently (with other settings)*"},
		{"other settings, overwrite", func(t *testing.T, b *bench) { other(b); b.o.Overwrite = true }, "done (1)"},
		{"other settings, the output is gone", func(t *testing.T, b *bench) { other(b); os.RemoveAll("out") },
			"done (1)"},
		{"other settings, overwrite, but somebody's own",
			func(t *testing.T, b *bench) { other(b); b.o.Overwrite = true; touch(t, "out/small/mine", "") },
			"failed: the output directory*"},
		{"overwrite without need", func(t *testing.T, b *bench) { b.o.Overwrite = true }, "done before (0)"},
		{"another release", func(t *testing.T, b *bench) { b.o.Tool = "v2" },
			"failed: the outputs exist, but were written differently (by release v1)*"},
		{"to be verified", func(t *testing.T, b *bench) { b.o.Verify = true },
			"failed: the outputs exist, but were written differently (without being verified)*"},
		{"keep going makes no other result", func(t *testing.T, b *bench) { b.o.KeepGoing = true }, "done before (0)"},
		{"no report", func(t *testing.T, b *bench) { os.RemoveAll("reports") },
			"failed: output dir \"out/small\" must be empty (1)"},
		{"no report, overwrite: it may be anybody's",
			func(t *testing.T, b *bench) { os.RemoveAll("reports"); b.o.Overwrite = true },
			"failed: output dir \"out/small\" must be empty (1)"},
		{"a report that is none", func(t *testing.T, b *bench) {
			names, _ := filepath.Glob("reports/*")
			touch(t, names[0], "{")
		}, "failed: the report \"reports/*"},
		{"the source is gone", func(t *testing.T, b *bench) { os.Remove("small.db") }, "failed: *"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			const line = "small.db out/small\n"
			b.expect(t.Context(), line, "done (1)")
			tt.change(t, b)
			before, _ := os.ReadDir("out/small")
			b.expect(t.Context(), line, tt.want)
			if strings.HasPrefix(tt.want, "failed") {
				if after, _ := os.ReadDir("out/small"); len(after) != len(before) {
					t.Errorf("the output has changed: %v, %v", before, after)
				}
			} else {
				b.expect(t.Context(), line, "done before (0)")
			}
			if left, _ := filepath.Glob("out/.*"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A run that is interrupted at the worst moments is continued by the next one.
func TestGoOn(t *testing.T) {
	const line = "small.db out/small\n"
	cut := func(b *bench) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		b.cut = func(*Task) error { cancel(); return context.Canceled }
		b.expect(ctx, line, "failed (1)")
		b.cut = nil
	}
	t.Run("before the output has its name", func(t *testing.T) {
		b := newBench(t)
		cut(b)
		b.expect(t.Context(), line, "done (1)")
	})
	t.Run("after that", func(t *testing.T) {
		b := newBench(t)
		b.expect(t.Context(), line, "done (1)")
		// A crash may leave the record in state "writing" although the output is complete.
		names, _ := filepath.Glob("reports/*")
		text, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		writing := strings.NewReplacer(`"state": "done"`, `"state": "writing"`, `"complete": true`,
			`"complete": false`).Replace(string(text))
		if err := os.WriteFile(names[0], []byte(writing), 0o644); err != nil || writing == string(text) {
			t.Fatal(err)
		}
		b.expect(t.Context(), line, "done before (0)")
		if now, err := os.ReadFile(names[0]); err != nil || string(now) != string(text) {
			t.Errorf("the record is %s (%v)", now, err)
		}
		// If another program has replaced the directory by now, it stays.
		if err := errors.Join(os.WriteFile(names[0], []byte(writing), 0o644),
			os.WriteFile("out/small/etcd/catalog.json", []byte("{}"), 0o644)); err != nil {
			t.Fatal(err)
		}
		b.expect(t.Context(), line, "failed: the output directory*")
	})
	t.Run("while an older output gives way", func(t *testing.T) {
		b := newBench(t)
		b.expect(t.Context(), line, "done (1)")
		b.add("subs.db", "small.db")
		b.o.Overwrite = true
		cut(b)
		if _, err := os.Stat("out/small/etcd"); err != nil {
			t.Errorf("the older output: %v", err)
		}
		b.o.Overwrite = false // the earlier run had permission to overwrite
		b.expect(t.Context(), line, "done (1)")
		if _, err := os.Stat("out/small/etcd"); err == nil {
			t.Error("the older output is there")
		}
	})
}

func TestFailures(t *testing.T) {
	const list = "small.db out/a\nbroken.db out/b\nsubs.db out/c\nsmall.db out/d\n"
	t.Run("the first one ends it", func(t *testing.T) {
		b := newBench(t)
		b.o.Jobs = 1
		if err := os.WriteFile("broken.db", []byte("SQLite format 3\x00"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := b.run(t.Context(), list); !strings.HasPrefix(got, "done, failed: ") || !strings.HasSuffix(got,
			", not begun, not begun (2)") {
			t.Error(got)
		}
		b.add("subs.db", "broken.db") // a repaired database
		b.expect(t.Context(), list, "done before, done, done, done (3)")
	})
	t.Run("or the others are done", func(t *testing.T) {
		b := newBench(t)
		b.o.KeepGoing = true
		if got := b.run(t.Context(), list); !strings.HasPrefix(got, "done, failed: ") || !strings.HasSuffix(got,
			", done, done (3)") {
			t.Error(got)
		}
	})
	t.Run("the source changes meanwhile", func(t *testing.T) {
		b := newBench(t)
		migrateNow := b.o.Migrate
		b.o.Migrate = func(ctx context.Context, task *Task) (*migrate.Report, error) {
			f, err := os.OpenFile("small.db-wal", os.O_CREATE|os.O_WRONLY, 0o644)
			if err != nil {
				t.Error(err)
			}
			f.Close()
			defer os.Remove("small.db-wal")
			return migrateNow(ctx, task)
		}
		b.expect(t.Context(), "small.db out/a\n", "failed: the source changed while it was read (1)")
		if _, err := os.Stat("out/a"); err == nil {
			t.Error("the output is there")
		}
	})
}

// Two runs cannot share a directory of reports, and a run leaves nothing in it but reports.
func TestOneRunAtATime(t *testing.T) {
	b := newBench(t)
	busy := make(chan error, 1)
	b.cut = func(*Task) error {
		_, err := Run(t.Context(), nil, b.o)
		busy <- err
		return nil
	}
	b.expect(t.Context(), "small.db out/a\n", "done (1)")
	if err := <-busy; !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	b.cut = nil
	b.expect(t.Context(), "small.db out/a\n", "done before (0)")
}

// At most as many lines as requested are done concurrently, and each is reported once.
func TestBound(t *testing.T) {
	b := newBench(t)
	b.o.Jobs = 3
	var now, most, told atomic.Int32
	var mu sync.Mutex
	migrateNow := b.o.Migrate
	b.o.Migrate = func(ctx context.Context, task *Task) (*migrate.Report, error) {
		n := now.Add(1)
		defer now.Add(-1)
		mu.Lock()
		most.Store(max(most.Load(), n))
		mu.Unlock()
		return migrateNow(ctx, task)
	}
	b.o.Done = func(*Outcome) { told.Add(1) }
	var list strings.Builder
	for i := range 30 {
		fmt.Fprintf(&list, "subs.db out/%d\n", i)
	}
	if got := b.run(t.Context(), list.String()); !strings.HasSuffix(got, "(30)") || strings.Contains(got, "failed") ||
		told.Load() != 30 || most.Load() > 3 {
		t.Errorf("%s, %d told, %d at a time", got, told.Load(), most.Load())
	}
}
