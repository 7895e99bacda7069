package sign

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/convert"
	"github.com/operator-bindery/bindery/images/pairs"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// copyOptions are the flags of "copy".
type copyOptions struct {
	option.Answer
	option.Images
	with      cli.StringSlice
	list      string // --from-file
	format    string
	keepGoing bool
	jobs      int
}

// CopyCommand returns "copy".
func CopyCommand(p *option.Session) *cli.Command {
	o := &copyOptions{}
	return &cli.Command{
		Name:      "copy",
		Usage:     "copy images, with their signatures and what else is attached to them",
		ArgsUsage: "SOURCE DESTINATION",
		Description: `Copies an image byte for byte and with all its platforms, from one of docker://NAME or
NAME in a registry, ` + program.Forms(0, 4) + ",\n" + program.Forms(4, len(program.Transports)) + ` to another. The tags .sig, .att and .sbom that cosign derives from a digest, and all
referrers, go with it: those of an index, of its images, and of referrers. No manifest is rewritten, unless
--format asks for other types. What the destination has is not sent again: an interrupted copy goes on when it is repeated.

With --from-file the images are those of a file: each line has a source and a destination, separated by blanks
or by an equals sign, as "registry mirror" prints them.` +
			program.Examples("bindery copy registry.example.com/acme/catalog:v1 oci-archive:catalog.tar:v1",
				"bindery copy oci:catalog.oci:v1 oci:mirror.oci:v1 --with signatures -o json",
				"bindery copy --from-file mapping.txt --with none"),
		Flags: program.Flags([]cli.Flag{
			&cli.StringSliceFlag{Name: "with", Value: cli.NewStringSlice("signatures", "referrers"),
				DefaultText: "signatures,referrers", Destination: &o.with,
				Usage: "copy `KINDS` of attachments (signatures|referrers|none): signatures are the tags .sig, .att " +
					"and .sbom"},
			&cli.StringFlag{Name: "format", Destination: &o.format,
				Usage: "convert the image to the types of `FORMAT` (oci|docker), for registries that take one of them only: the " +
					"digest changes, so that signatures and what else is attached do not go with it (--with none)"},
			&cli.StringFlag{Name: "from-file", Destination: &o.list,
				Usage: "`FILE` with a source and a destination on each line; \"-\" is standard input"},
			&cli.BoolFlag{Name: "keep-going", Destination: &o.keepGoing,
				Usage: "go on with other images if one cannot be copied; exit status 4 if one was not"},
			option.JobsFlag(&o.jobs, "work"),
		}, o.EndsFlags(), o.Answer.Flags(), o.Images.Flags()),
		Action: program.Between(0, 2, p.Action(func(ctx context.Context, args []string) error {
			return copyImages(ctx, p, o, args)
		})),
	}
}

// maxPairs is the largest list of images to copy, in bytes: the mapping of a mirror is one.
const maxPairs = limit.MaxMapping

func copyImages(ctx context.Context, p *option.Session, o *copyOptions, args []string) error {
	format, err := o.Format()
	if err != nil {
		return err
	}
	what, err := option.AttachmentKinds(o.with.Value())
	if err != nil {
		return err
	}
	all, err := o.pairs(ctx, p, args)
	if err != nil {
		return err
	}
	for _, pair := range all {
		if err := images.CheckCopy(program.Transports, pair.Source, pair.Destination, what); err != nil {
			return p.WithAttachmentHint(pair.Destination.String(), err)
		}
	}
	with := o.CopyOptions(p)
	if o.format != "" {
		if with.Format, err = convert.Parse(o.format); err != nil {
			return cmdline.Usagef("invalid --format value %.40q, expected (oci|docker)", o.format)
		}
	} else if p.Given("format") {
		return cmdline.Usagef("--format is empty")
	}
	client, err := p.Client(ctx, &o.Images)
	if err != nil {
		return err
	}
	jobs := o.jobs
	if jobs == 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	results := make([]copyOutcome, len(all))
	failed, err := pairs.Copy(ctx, all, jobs, o.keepGoing, func(copying context.Context, i int) (err error) {
		r := &results[i]
		r.CopyResult, err = copyOne(copying, p, with, client, all[i], what)
		if err == nil || !o.keepGoing || ctx.Err() != nil {
			return err
		}
		text := redact.Error(err)
		r.Source, r.Destination, r.Error = redact.Text(all[i].Source), all[i].Destination.String(), text.Error()
		p.Log.Error(printable.Text(fmt.Sprintf("%s: not copied: %v", r.Destination, text)))
		return err
	})
	if err != nil {
		return p.WithAttachmentHint("", err)
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	lost := 0
	for _, r := range results {
		lost += len(r.Problems)
	}
	partial := error(nil)
	switch {
	case failed > 0:
		partial = &cmdline.ExitStatus{Status: 4, Err: fmt.Errorf("%d of %s not copied", failed,
			program.Count(len(all), "image"))}
	case lost > 0:
		partial = &cmdline.ExitStatus{Status: 4, Err: fmt.Errorf("the images are copied, and %s not: what is listed "+
			"is missing or is not what it is listed as", program.Count(lost, "attachment"))}
	}
	if format.IsDocument() {
		return errors.Join(p.PrintValue(format, CopiedImages{results}), partial)
	}
	var b strings.Builder
	for _, r := range results {
		if r.Error != "" {
			continue
		}
		fmt.Fprintln(&b, r.Destination)
		reference := r.Digest.String()
		if strings.Contains(r.Reference, "@") {
			reference = r.Reference
		}
		fmt.Fprintln(&b, reference)
	}
	_, err = p.Stdout.Write([]byte(printable.Text(b.String())))
	return errors.Join(err, partial)
}

// copyOutcome is what became of one image.
type copyOutcome struct {
	images.CopyResult
	// Error says why the image was not copied; empty if it was.
	Error string `json:"error,omitempty"`
}

// CopiedImages is the answer as JSON.
type CopiedImages struct {
	Images []copyOutcome `json:"images"`
}

// copyOne copies one image and logs what was copied.
func copyOne(ctx context.Context, p *option.Session, o images.CopyOptions, client *images.Client, pair pairs.Pair,
	what referrers.Kinds) (images.CopyResult, error) {
	moved := p.Moved()
	o.Events = func(e store.Event) {
		moved.Event("writing", e)
		p.LogEvent(e)
	}
	r, err := client.Copy(ctx, pair.Source, pair.Destination, what, o)
	switch {
	case errors.Is(err, convert.ErrAttached):
		return r, &cmdline.Error{Class: cmdline.ClassUsage, Object: r.Source, Err: err,
			Hint: "--with none converts the image and leaves out what is attached; sign it again at its destination"}
	case errors.Is(err, store.ErrNoOCI) && o.Format == "":
		return r, &cmdline.Error{Class: cmdline.Classify(err), Object: pair.Destination.String(), Err: err,
			Hint: "--format docker converts the image to the types that old registries take"}
	case err != nil:
		return r, err
	}
	text := fmt.Sprintf("copied %s to %s", r.Source, r.Destination)
	if r.Traffic != nil {
		text += ": " + option.TrafficLine(*r.Traffic)
	}
	if n := len(r.Copied); n > 0 {
		there := 0
		for _, a := range r.Copied {
			if a.There {
				there++
			}
		}
		text += "; " + program.Count(n, "attachment")
		if there > 0 {
			text += fmt.Sprintf(", of which it had %d", there)
		}
	}
	p.Log.Info(printable.Text(text))
	if len(r.Unread) > 0 {
		var answers []string
		for _, u := range r.Unread[:min(len(r.Unread), 5)] {
			answers = append(answers, u.Answer)
		}
		p.Log.Warn(printable.Text(fmt.Sprintf("%s: not all signatures could be read: %s", r.Source,
			strings.Join(answers, "; "))))
	}
	for _, problem := range r.Problems {
		p.Log.Warn(printable.Text(fmt.Sprintf("%s: not copied: %s", r.Source, problem)))
	}
	return r, nil
}

// pairs reads the images to copy: the arguments, or the lines of --from-file.
func (o *copyOptions) pairs(ctx context.Context, p *option.Session, args []string) ([]pairs.Pair, error) {
	file := o.list
	switch {
	case file == "" && len(args) != 2:
		return nil, cmdline.Usagef("accepts 2 arg(s), received %d", len(args))
	case file != "" && len(args) > 0:
		return nil, cmdline.Usagef("--from-file and arguments exclude each other")
	case file == "":
		d, err := destinationOf(args[1])
		return []pairs.Pair{{Source: args[0], Destination: d}}, err
	}
	var text []byte
	var err error
	if file == "-" {
		text, err = secret.ReadAtMost(p.Stdin, maxPairs)
	} else {
		text, err = regularfile.ReadNamed(ctx, file, maxPairs)
	}
	if err != nil {
		return nil, err
	}
	all, err := pairs.Read(string(text), file, program.Transports, destinationOf)
	if err != nil {
		return nil, &cmdline.Error{Class: cmdline.ClassInput, Object: file, Err: err}
	}
	return all, nil
}
