package cache

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/blobcache"
)

// options are the flags of both commands, and of prune.
type options struct {
	option.Images
	output, maxSize string
	all, dryRun     bool
}

// Command returns "cache".
func Command(p *option.Session) *cli.Command {
	o := &options{}
	output := func() cli.Flag { return program.AnswerFlag(&o.output) }
	const where = "Blobs of images from registries and built layers are cached in $XDG_CACHE_HOME/bindery/blobs, or\n" +
		"$HOME/.cache/bindery/blobs, for all processes of the user. The directory layers beside it records which " +
		"layer each\n" +
		"content produced, and which content is valid."
	return &cli.Command{
		Name:   "cache",
		Usage:  "show or prune the cache of blobs and layers",
		Action: p.Group,
		Subcommands: []*cli.Command{
			{
				Name:        "info",
				Usage:       "show the size of the cache",
				Description: where + program.Examples("bindery cache info", "bindery cache info -o json"),
				Flags:       []cli.Flag{output(), o.CacheSizeFlag()},
				Action:      program.Exactly(0, p.Action(func(context.Context, []string) error { return showCache(p, o) })),
			},
			{
				Name:  "prune",
				Usage: "remove blobs and records from the cache",
				Description: where + ` The least recently used entries are removed first. Pruning is safe at
any time, and automatic when the cache exceeds --cache-size. Records may take a sixteenth of the size in
addition.` +
					program.Examples("bindery cache prune", "bindery cache prune --max-size 500MiB",
						"bindery cache prune --all --dry-run"),
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "max-size", Destination: &o.maxSize, Usage: "prune down to `SIZE` (default that of --cache-size)"},
					&cli.BoolFlag{Name: "all", Destination: &o.all, Usage: "remove everything"},
					&cli.BoolFlag{Name: "dry-run", Destination: &o.dryRun, Usage: "print what would be removed, without removing it"},
					output(), o.CacheSizeFlag(),
				},
				Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error { return pruneCache(ctx, p, o) })),
			},
		},
	}
}

// userCache opens the cache for the cache commands.
func userCache(p *option.Session, o *options) (*blobcache.Cache, error) {
	dir, ok := option.CacheDir()
	if !ok {
		return nil, &cmdline.Error{Class: cmdline.ClassLocal, Err: errors.New("this user has no cache"),
			Hint: "set XDG_CACHE_HOME or HOME to an absolute path"}
	}
	cache, err := o.OpenCache(p, dir)
	var usage *cmdline.Error
	if err != nil && !errors.As(err, &usage) {
		err = &cmdline.Error{Class: cmdline.ClassLocal, Object: dir, Hint: option.OtherCache, Err: err}
	}
	return cache, err
}

func showCache(p *option.Session, o *options) error {
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	cache, err := userCache(p, o)
	if err != nil {
		return err
	}
	defer cache.Close()
	info, err := cache.Info()
	if err != nil {
		return err
	}
	notes, err := userNotes(p, cache)
	if err != nil {
		return err
	}
	defer notes.Close()
	noted, err := notes.Info()
	if err != nil {
		return err
	}
	if format.IsDocument() {
		return p.PrintValue(format, Counts{countOf(info, "blobs"), countOf(noted, "notes")})
	}
	row := func(i blobcache.Info) []string {
		used := ""
		if !i.Oldest.IsZero() {
			used = i.Oldest.UTC().Format(time.RFC3339) + " to " + i.Newest.UTC().Format(time.RFC3339)
		}
		return []string{i.Dir, strconv.Itoa(i.Blobs), cmdline.FormatSize(i.Bytes), cmdline.FormatSize(i.MaxBytes), used}
	}
	return p.PrintTable([]string{"DIRECTORY", "FILES", "SIZE", "LIMIT", "LAST USED"}, row(info), row(noted))
}

// Counts is the output of "cache info".
type Counts struct {
	cacheCount
	// Layers are the notes about built layers.
	Layers cacheCount `json:"layers"`
}

// cacheCount is the output of "cache info" for one directory.
type cacheCount struct {
	Directory string     `json:"directory"`
	Blobs     *int       `json:"blobs,omitempty"`
	Notes     *int       `json:"notes,omitempty"`
	Bytes     int64      `json:"bytes"`
	MaxBytes  int64      `json:"maxBytes"`
	Oldest    *time.Time `json:"oldest,omitempty"`
	Newest    *time.Time `json:"newest,omitempty"`
}

func countOf(i blobcache.Info, what string) cacheCount {
	c := cacheCount{Directory: i.Dir, Bytes: i.Bytes, MaxBytes: i.MaxBytes, Oldest: stamp(i.Oldest),
		Newest: stamp(i.Newest)}
	if what == "notes" {
		c.Notes = &i.Blobs
	} else {
		c.Blobs = &i.Blobs
	}
	return c
}

// userNotes opens the notes for the cache commands.
func userNotes(p *option.Session, blobs *blobcache.Cache) (*blobcache.Hints, error) {
	notes, err := blobs.OpenHints(p.NotesFailed)
	if err != nil {
		return nil, &cmdline.Error{Class: cmdline.ClassLocal, Object: blobs.HintsDir(), Err: err}
	}
	return notes, nil
}

// stamp formats a time for JSON in whole seconds; nil if it is zero.
func stamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

// Pruned is the output of "cache prune": what was removed, and what is left.
type Pruned struct {
	Directory    string `json:"directory"`
	DryRun       bool   `json:"dryRun"`
	RemovedBlobs int    `json:"removedBlobs"`
	RemovedBytes int64  `json:"removedBytes"`
	Blobs        int    `json:"blobs"`
	Bytes        int64  `json:"bytes"`
	// Layers are the notes about built layers.
	Layers prunedNotes `json:"layers"`
}

type prunedNotes struct {
	Directory    string `json:"directory"`
	RemovedNotes int    `json:"removedNotes"`
	RemovedBytes int64  `json:"removedBytes"`
	Notes        int    `json:"notes"`
	Bytes        int64  `json:"bytes"`
}

func pruneCache(ctx context.Context, p *option.Session, o *options) error {
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	prune := blobcache.PruneOptions{DryRun: o.dryRun}
	cache, err := userCache(p, o)
	if err != nil {
		return err
	}
	defer cache.Close()
	text := o.maxSize
	switch {
	case text != "" && o.all:
		return cmdline.Usagef("--max-size and --all are mutually exclusive")
	case text != "":
		if prune.MaxBytes, err = cmdline.ParseSize(text); err != nil {
			return cmdline.Usagef("invalid --max-size value %q, expected a size such as 500MiB", text)
		}
	case !o.all:
		prune.MaxBytes = cache.MaxBytes()
	}
	notes, err := userNotes(p, cache)
	if err != nil {
		return err
	}
	defer notes.Close()
	done, err := cache.Prune(ctx, prune)
	if err != nil {
		return err
	}
	forgotten, err := notes.Prune(ctx, prune)
	if err != nil {
		return err
	}
	if format.IsDocument() {
		return p.PrintValue(format, Pruned{cache.Dir(), prune.DryRun, done.Blobs, done.Bytes, done.LeftBlobs, done.LeftBytes,
			prunedNotes{cache.HintsDir(), forgotten.Blobs, forgotten.Bytes, forgotten.LeftBlobs,
				forgotten.LeftBytes}})
	}
	removed := "REMOVED"
	if prune.DryRun {
		removed = "WOULD GO"
	}
	return p.PrintTable([]string{"DIRECTORY", removed, "SIZE", "LEFT", "SIZE"},
		[]string{cache.Dir(), strconv.Itoa(done.Blobs), cmdline.FormatSize(done.Bytes), strconv.Itoa(done.LeftBlobs),
			cmdline.FormatSize(done.LeftBytes)},
		[]string{cache.HintsDir(), strconv.Itoa(forgotten.Blobs), cmdline.FormatSize(forgotten.Bytes),
			strconv.Itoa(forgotten.LeftBlobs), cmdline.FormatSize(forgotten.LeftBytes)})
}
