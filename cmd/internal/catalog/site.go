package catalog

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/olmv1/safety"
	"github.com/operator-bindery/bindery/serve"
)

// siteOptions are the flags of "catalog site".
type siteOptions struct {
	option.Reading
	to, title, url string
	headsOnly      bool
}

func catalogSiteCommand(p *option.Session) *cli.Command {
	o := &siteOptions{}
	return &cli.Command{
		Name:      "site",
		Usage:     "write the pages of a catalog as a static web site",
		ArgsUsage: "CATALOG --to SITE",
		Description: option.CatalogHelp + `

SITE is a directory with the pages of "serve --http-addr" as files, which any web server can publish and a
browser can open from disk: links are relative, and search and filters need no server. The same catalog gives
the same bytes. SITE is written completely or not at all, and must be empty or not exist. The site has no API.
Icons that could do more than draw are left out. Manifests that several bundles of a package have are written
once; --heads-only leaves the pages of bundles out that are not the head of a channel.

--url is where the site will be published. It adds sitemap.txt, and absolute links to feeds and pages.` +
			program.Examples("bindery catalog site catalog --to site",
				"bindery catalog site index.db --to site --title Acme",
				"bindery catalog site registry.example.com/acme/catalog:v1 --to public "+
					"--url https://acme.example.com/catalog/"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "to", Destination: &o.to, Usage: "write the site to the directory `SITE`"},
			&cli.StringFlag{Name: "title", Destination: &o.title, Usage: "show `TEXT` as the name of the catalog",
				DefaultText: "Operator catalog"},
			&cli.StringFlag{Name: "url", Destination: &o.url, Usage: "the site will be published at `URL`"},
			&cli.BoolFlag{Name: "heads-only", Destination: &o.headsOnly,
				Usage: "write the pages of no other bundles than the heads of channels"},
			o.AllowEmptyFlag(""),
			o.CompatFlag(""),
		}, o.Reading.Flags()...),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return o.run(ctx, p, args[0])
		})),
	}
}

func (o *siteOptions) run(ctx context.Context, p *option.Session, ref string) error {
	judge, err := safety.NewJudge()
	if err != nil {
		return err
	}
	with := serve.SiteOptions{Title: o.title, Jobs: o.Jobs, Judge: judge.Refused, HeadsOnly: o.headsOnly}
	if o.to == "" {
		return cmdline.Usagef("required flag(s) \"to\" not set")
	}
	if err := atomicfs.CheckApart(ref, o.to); err != nil {
		return err
	}
	if o.url != "" {
		u, err := url.Parse(o.url)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
			u.RawQuery != "" || u.Fragment != "" {
			return cmdline.Usagef("invalid --url value %q, expected the address of a directory such as "+
				"https://example.com/catalog/", o.url)
		}
		u.Path = strings.TrimSuffix(u.Path, "/") + "/"
		with.URL = u
	}
	read, err := o.Reading.Options(ctx, p, ref)
	if err != nil {
		return err
	}
	read.Allow = option.CatalogKinds()
	blobs, err := read.Render(ctx, ref)
	if err != nil {
		return p.OpmMessage(err)
	}
	with.Planned = func(pages int, bytes int64) {
		p.Log.Info(fmt.Sprintf("the site has about %s, %s", program.Count(pages, "page"), cmdline.FormatSize(bytes)))
	}
	progress, pages := p.Progress(), 0
	with.Progress = func(done, all int) {
		pages = done
		progress.Set(cmdline.State{What: "writing", Done: done, All: all, Units: "pages"})
	}
	err = serve.WriteSite(ctx, o.counted(p, ref, blobs), o.to, with)
	progress.Close()
	if err != nil {
		return p.OpmMessage(err)
	}
	p.Log.Info(fmt.Sprintf("wrote %s to %q", program.Count(pages, "page"), o.to))
	return nil
}

// counted returns the blobs, and after them an error if there are no packages, unless that is allowed.
func (o *siteOptions) counted(p *option.Session, ref string,
	blobs iter.Seq2[declcfg.Blob, error]) iter.Seq2[declcfg.Blob, error] {
	return func(yield func(declcfg.Blob, error) bool) {
		packages := 0
		for b, err := range blobs {
			if err == nil && b.BlobSchema() == declcfg.SchemaPackage {
				packages++
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
		if err := o.CheckEmpty(p, ref, packages); err != nil {
			yield(nil, err)
		}
	}
}
