package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/userns"
)

// cacheSizeFlag limits the size of the blob cache.
func cacheSizeFlag() cli.Flag {
	return sizeFlag("cache-size", "2GiB", "maximum `SIZE` of the cache of blobs and layers", "work")
}

// noCacheFlag disables the caches.
func noCacheFlag() cli.Flag {
	return &cli.BoolFlag{Name: "no-cache", Usage: "do not read or write the cache directory", EnvVars: env("no-cache"),
		Category: "execution"}
}

// cacheDir returns the directory of the blob cache; false if neither HOME nor XDG_CACHE_HOME gives one.
func cacheDir() (string, bool) {
	return blobcache.DefaultDir(func(name string) string {
		value := os.Getenv(name)
		if name == "HOME" && value == "/" && userns.UID() != 0 {
			return "" // what users without a home directory are given
		}
		return value
	})
}

// openCache opens the blob cache in a directory.
func (p *program) openCache(c *cli.Context, dir string) (*blobcache.Cache, error) {
	o := blobcache.Options{Warn: func(err error) {
		p.log.Warn(fmt.Sprintf("images and layers are not cached: %v (%s)", err, otherCache))
	}}
	if text := c.String("cache-size"); text != "" {
		n, err := cmdline.ParseSize(text)
		if err != nil || n <= 0 {
			return nil, cmdline.Usagef("invalid --cache-size value %q, expected a size such as 2GiB", text)
		}
		o.MaxBytes = n
	}
	return blobcache.Open(dir, o)
}

// blobCache returns the cache that the flags ask for. If it cannot be used, it logs a warning and returns nil.
func (p *program) blobCache(c *cli.Context) (*blobcache.Cache, error) {
	if p.blobs != nil {
		return p.blobs, nil
	}
	dir, ok := cacheDir()
	if !ok || c.Bool("no-cache") {
		return nil, nil
	}
	cache, err := p.openCache(c, dir)
	var usage *cmdline.Error
	switch {
	case errors.As(err, &usage):
		return nil, err
	case err != nil:
		p.warnOnce(fmt.Sprintf("continuing without a cache: %v (%s)", err, otherCache))
		return nil, nil
	}
	p.blobs = cache
	p.atEnd = append(p.atEnd, func(bool) error { return cache.Close() })
	return cache, nil
}

// otherCache is the hint for a cache directory that is refused.
const otherCache = "set XDG_CACHE_HOME to another directory, or --no-cache"

// notesFailed logs that notes next to a blob cache can no longer be written.
func (p *program) notesFailed(err error) {
	p.log.Debug(fmt.Sprintf("layer records are no longer written: %v", err))
}

// known returns the stored results of earlier builds, as far as the flags allow; nil if nothing is to be stored.
func (p *program) known(c *cli.Context) (*build.Cache, error) {
	blobs, err := p.blobCache(c)
	if err != nil || blobs == nil {
		return nil, err
	}
	cache, err := build.NewCache(blobs, p.notesFailed)
	if err != nil {
		p.log.Warn(fmt.Sprintf("layers are not recorded: %v", err))
		return nil, nil
	}
	p.atEnd = append(p.atEnd, func(bool) error { return cache.Close() })
	return cache, nil
}

func (p *program) cacheCommand() *cli.Command {
	output := func() cli.Flag {
		return &cli.StringFlag{Name: "output", Aliases: []string{"o"},
			Usage: "output `FORMAT` (json); a table by default"}
	}
	const where = "Blobs of images from registries and built layers are cached in $XDG_CACHE_HOME/bindery/blobs, or\n" +
		"$HOME/.cache/bindery/blobs, for all processes of the user. The directory layers beside it records which " +
		"layer each\n" +
		"content produced, and which content is valid."
	return &cli.Command{
		Name:   "cache",
		Usage:  "show or prune the cache of blobs and layers",
		Action: p.group,
		Subcommands: []*cli.Command{
			{
				Name:        "info",
				Usage:       "show the size of the cache",
				Description: where + examples("bindery cache info", "bindery cache info -o json"),
				Flags:       []cli.Flag{output(), cacheSizeFlag()},
				Action:      exactly(0, p.cacheInfo),
			},
			{
				Name:  "prune",
				Usage: "remove blobs and records from the cache",
				Description: where + ` The least recently used entries are removed first. Pruning is safe at
any time, and automatic when the cache exceeds --cache-size. Records may take a sixteenth of the size in
addition.` +
					examples("bindery cache prune", "bindery cache prune --max-size 500MiB",
						"bindery cache prune --all --dry-run"),
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "max-size", Usage: "prune down to `SIZE` (default that of --cache-size)"},
					&cli.BoolFlag{Name: "all", Usage: "remove everything"},
					&cli.BoolFlag{Name: "dry-run", Usage: "print what would be removed, without removing it"},
					output(), cacheSizeFlag(),
				},
				Action: exactly(0, p.cachePrune),
			},
		},
	}
}

// userCache opens the cache for the cache commands.
func (p *program) userCache(c *cli.Context) (*blobcache.Cache, error) {
	dir, ok := cacheDir()
	if !ok {
		return nil, &cmdline.Error{Class: cmdline.ClassLocal, Err: errors.New("this user has no cache"),
			Hint: "set XDG_CACHE_HOME or HOME to an absolute path"}
	}
	cache, err := p.openCache(c, dir)
	var usage *cmdline.Error
	if err != nil && !errors.As(err, &usage) {
		err = &cmdline.Error{Class: cmdline.ClassLocal, Object: dir, Hint: otherCache, Err: err}
	}
	return cache, err
}

func (p *program) cacheInfo(c *cli.Context) error {
	format, err := listFormat(c, "json")
	if err != nil {
		return err
	}
	cache, err := p.userCache(c)
	if err != nil {
		return err
	}
	defer cache.Close()
	info, err := cache.Info()
	if err != nil {
		return err
	}
	notes, err := p.userNotes(cache)
	if err != nil {
		return err
	}
	defer notes.Close()
	noted, err := notes.Info()
	if err != nil {
		return err
	}
	if format == "json" {
		return p.printJSON(cacheCounts{countOf(info, "blobs"), countOf(noted, "notes")})
	}
	row := func(i blobcache.Info) []string {
		used := ""
		if !i.Oldest.IsZero() {
			used = i.Oldest.UTC().Format(time.RFC3339) + " to " + i.Newest.UTC().Format(time.RFC3339)
		}
		return []string{i.Dir, strconv.Itoa(i.Blobs), cmdline.FormatSize(i.Bytes), cmdline.FormatSize(i.MaxBytes), used}
	}
	return p.printTable([]string{"DIRECTORY", "FILES", "SIZE", "LIMIT", "LAST USED"}, row(info), row(noted))
}

// cacheCounts is the output of "cache info".
type cacheCounts struct {
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
func (p *program) userNotes(blobs *blobcache.Cache) (*blobcache.Notes, error) {
	notes, err := blobs.OpenNotes(p.notesFailed)
	if err != nil {
		return nil, &cmdline.Error{Class: cmdline.ClassLocal, Object: blobcache.NotesDir(blobs.Dir()), Err: err}
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

// prunedCache is the output of "cache prune": what was removed, and what is left.
type prunedCache struct {
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

func (p *program) cachePrune(c *cli.Context) error {
	format, err := listFormat(c, "json")
	if err != nil {
		return err
	}
	o := blobcache.PruneOptions{DryRun: c.Bool("dry-run")}
	cache, err := p.userCache(c)
	if err != nil {
		return err
	}
	defer cache.Close()
	text := c.String("max-size")
	switch {
	case text != "" && c.Bool("all"):
		return cmdline.Usagef("--max-size and --all are mutually exclusive")
	case text != "":
		if o.MaxBytes, err = cmdline.ParseSize(text); err != nil {
			return cmdline.Usagef("invalid --max-size value %q, expected a size such as 500MiB", text)
		}
	case !c.Bool("all"):
		o.MaxBytes = cache.MaxBytes()
	}
	notes, err := p.userNotes(cache)
	if err != nil {
		return err
	}
	defer notes.Close()
	done, err := cache.Prune(c.Context, o)
	if err != nil {
		return err
	}
	forgotten, err := notes.Prune(c.Context,
		blobcache.PruneOptions{MaxBytes: o.MaxBytes / blobcache.NotesShare, DryRun: o.DryRun})
	if err != nil {
		return err
	}
	if format == "json" {
		return p.printJSON(prunedCache{cache.Dir(), o.DryRun, done.Blobs, done.Bytes, done.LeftBlobs, done.LeftBytes,
			prunedNotes{blobcache.NotesDir(cache.Dir()), forgotten.Blobs, forgotten.Bytes, forgotten.LeftBlobs,
				forgotten.LeftBytes}})
	}
	removed := "REMOVED"
	if o.DryRun {
		removed = "WOULD GO"
	}
	return p.printTable([]string{"DIRECTORY", removed, "SIZE", "LEFT", "SIZE"},
		[]string{cache.Dir(), strconv.Itoa(done.Blobs), cmdline.FormatSize(done.Bytes), strconv.Itoa(done.LeftBlobs),
			cmdline.FormatSize(done.LeftBytes)},
		[]string{blobcache.NotesDir(cache.Dir()), strconv.Itoa(forgotten.Blobs), cmdline.FormatSize(forgotten.Bytes),
			strconv.Itoa(forgotten.LeftBlobs), cmdline.FormatSize(forgotten.LeftBytes)})
}

// printTable prints an answer as a table.
func (p *program) printTable(header []string, rows ...[]string) error {
	// Through a spool: the blanks of a table can be many times its text.
	return p.spooled(context.Background(), func(w io.Writer) error {
		return list.Table{Header: header, Rows: rows}.Write(w, printable.Cell)
	})
}
