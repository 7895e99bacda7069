package repository

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/versions"
)

// tagsOptions are the flags of "tags".
type tagsOptions struct {
	option.Answer
	option.Registry
	sort  string
	limit int
}

// Tags is the answer of "tags" in JSON.
type Tags struct {
	Repository string   `json:"repository"`
	Tags       []string `json:"tags"`
	// Total is the number of tags of the repository, of which --limit may show a part.
	Total int `json:"total"`
}

// TagsCommand returns "tags".
func TagsCommand(p *option.Session) *cli.Command {
	o := &tagsOptions{}
	return &cli.Command{
		Name:      "tags",
		Usage:     "list the tags of a repository",
		ArgsUsage: "REPOSITORY",
		Description: `Lists all tags of a repository in a registry, one per line. Those that are versions come
first, the highest at the top, then the others by name, and last those of signatures and other
attachments (sha256-...); "--sort name" sorts all by name.` +
			program.Examples("bindery tags registry.example.com/acme/catalog",
				"bindery tags registry.example.com/acme/catalog --limit 3 -o json"),
		Flags: program.Flags([]cli.Flag{
			&cli.StringFlag{Name: "sort", Value: "version", Usage: "`ORDER` of the tags (version|name)", Destination: &o.sort},
			&cli.IntFlag{Name: "limit", Usage: "show the first `N` tags alone; 0 shows all", Destination: &o.limit},
		}, o.Answer.Flags(), o.AccessFlags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args[0]) })),
	}
}

func (o *tagsOptions) run(ctx context.Context, p *option.Session, name string) (err error) {
	format, err := o.Format()
	switch {
	case err != nil:
		return err
	case o.sort != "version" && o.sort != "name":
		return cmdline.Usagef("invalid --sort value %q, expected (version|name)", o.sort)
	case o.limit < 0:
		return cmdline.Usagef("invalid --limit value %d, expected 0 or more", o.limit)
	}
	if host := strings.TrimPrefix(name, "docker://"); !strings.Contains(host, "/") && strings.ContainsAny(host, ".:") &&
		!program.Transports.Has(host) {
		return cmdline.Usagef("%.300q is a registry: expected a repository in it, such as %.300s/NAME", name, host)
	}
	named, err := parseName(name)
	if err != nil {
		return err
	}
	if !reference.IsNameOnly(named) {
		return cmdline.Usagef("%q has a tag or a digest: expected a repository", name)
	}
	ctx, cancel := o.WithTimeout(ctx)
	defer cancel()
	remote, at, err := open(ctx, p, &o.Registry, named)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remote.Close()) }()
	tags, _, err := at.Tags(ctx, 0)
	if err != nil {
		return repositoryError(named.Name(), err)
	}
	slices.Sort(tags)
	if o.sort == "version" {
		slices.SortStableFunc(tags, byVersion)
	}
	answer := Tags{Repository: at.Name(), Tags: tags, Total: len(tags)}
	if o.limit > 0 && o.limit < len(tags) {
		answer.Tags = tags[:o.limit]
	}
	if format.IsDocument() {
		return p.PrintValue(format, answer)
	}
	var b strings.Builder
	for _, tag := range answer.Tags {
		b.WriteString(printable.Cell(tag) + "\n")
	}
	_, err = p.Stdout.Write([]byte(b.String()))
	return err
}

// byVersion orders tags: versions of two or three numbers, with or without a "v", from the highest to the lowest, then
// the others by name, in which numbers count as such, and last those of signatures and other attachments.
func byVersion(a, b string) int {
	va, errA := versions.ParseTolerant(a)
	vb, errB := versions.ParseTolerant(b)
	rank := func(tag string, err error) int {
		switch {
		case attachmentTag(tag):
			return 2
		case err != nil:
			return 1
		}
		return 0
	}
	if c := cmp.Compare(rank(a, errA), rank(b, errB)); c != 0 {
		return c
	}
	if errA == nil && errB == nil {
		return cmp.Or(vb.Compare(va), cmp.Compare(len(a), len(b)))
	}
	return naturally(a, b)
}

// attachmentTag reports whether a tag is one by which attachments of an image are found: sha256-HEX, and cosign's with
// an ending such as .sig.
func attachmentTag(tag string) bool {
	hex, ok := strings.CutPrefix(tag, "sha256-")
	hex, _, _ = strings.Cut(hex, ".")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

// naturally compares names in which numbers count as such: rc9 is before rc10.
func naturally(a, b string) int {
	for a != "" && b != "" {
		partA, partB := leading(a), leading(b)
		a, b = a[len(partA):], b[len(partB):]
		c := cmp.Compare(partA, partB)
		if isDigit(partA[0]) && isDigit(partB[0]) {
			numA, numB := strings.TrimLeft(partA, "0"), strings.TrimLeft(partB, "0")
			c = cmp.Or(cmp.Compare(len(numA), len(numB)), cmp.Compare(numA, numB), c)
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// leading returns the digits that a text begins with, or its first byte.
func leading(text string) string {
	n := 1
	for isDigit(text[0]) && n < len(text) && isDigit(text[n]) {
		n++
	}
	return text[:n]
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// parseName reads the name of an image or a repository in a registry.
func parseName(name string) (reference.Named, error) {
	named, err := reference.ParseNormalizedNamed(strings.TrimPrefix(name, "docker://"))
	if err == nil && program.Transports.Has(name) && !strings.HasPrefix(name, "docker://") {
		err = errors.New("it has the form of another transport")
	}
	if err != nil {
		return nil, cmdline.Usagef("%.300q is no image in a registry: %v", name, err)
	}
	return named, nil
}

// open opens a repository in a registry.
func open(ctx context.Context, p *option.Session, at *option.Registry, named reference.Named) (
	*registries.Client, *registries.Repository, error) {
	remote, err := registries.New(ctx, at.Access(p))
	if err != nil {
		return nil, nil, err
	}
	repository, err := remote.Repository(named.Name())
	if err != nil {
		return nil, nil, errors.Join(err, remote.Close())
	}
	return remote, repository, nil
}

// repositoryError names what an error is about. A registry that answers 404 has no such repository, or does not show
// it.
func repositoryError(name string, err error) error {
	e := &cmdline.Error{Class: cmdline.Classify(err), Object: name, Err: err}
	if errors.Is(err, fs.ErrNotExist) {
		host, _, _ := strings.Cut(name, "/")
		e.Hint = "check the name; a registry may hide what the user must not see: \"bindery login " + host + "\""
	}
	return e
}
