package cmdline

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// Names of packages, channels and bundles complete arguments and flags; the catalog is the one on the line.
func TestCompleteNames(t *testing.T) {
	app := &cli.App{Name: "prog", HelpName: "prog", Commands: []*cli.Command{
		{Name: "bundles", ArgsUsage: "REF [PACKAGE]", Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "channel", Usage: "only `CHANNEL`"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` (json|yaml)"},
		}},
		{Name: "rm", ArgsUsage: "CATALOG PACKAGE[/CHANNEL[/BUNDLE]]..."},
		{Name: "promote", ArgsUsage: "CATALOG BUNDLE... --channel CHANNEL", Flags: []cli.Flag{
			&cli.StringFlag{Name: "channel", Usage: "`CHANNEL`"}, &cli.BoolFlag{Name: "default"}}},
		{Name: "prune", Flags: []cli.Flag{
			&cli.StringFlag{Name: "database", Aliases: []string{"d"}, Usage: "`FILE`"},
			&cli.StringFlag{Name: "packages", Aliases: []string{"p"}, Usage: "keep `PACKAGES`"}}},
	}}
	Prepare(app)
	names := func(kind, catalog string) []string {
		if kind == "PACKAGE[/CHANNEL[/BUNDLE]]" {
			return []string{"etcd", "etcd/alpha", "etcd/alpha/etcd.v1", "kiali", "kiali/stable"}
		}
		return []string{kind + "-of-" + catalog, "other"}
	}
	for name, c := range map[string]struct{ words, want string }{
		"the catalog itself is a file":           {"bundles|", ":files"},
		"an argument":                            {"bundles|cat|", "PACKAGE-of-cat other"},
		"an argument that starts so":             {"bundles|cat|o", "other"},
		"an argument behind the last":            {"bundles|cat|a|", ":files"},
		"no name fits":                           {"bundles|cat|x", ":files"},
		"an argument that repeats":               {"promote|cat|a|b|B", "BUNDLE-of-cat"},
		"levels: packages first":                 {"rm|cat|", "etcd kiali"},
		"levels: the next one of a word":         {"rm|cat|e", "etcd etcd/alpha"},
		"levels: the last":                       {"rm|cat|kiali|etcd/", "etcd/alpha etcd/alpha/etcd.v1"},
		"flags before the argument do not count": {"promote|--default|cat|B", "BUNDLE-of-cat"},
		"a flag":                                 {"bundles|cat|--channel|C", "CHANNEL-of-cat"},
		"a flag with an equals sign":             {"bundles|cat|--channel=C", "--channel=CHANNEL-of-cat"},
		"a flag without a catalog":               {"bundles|--channel|", ":files"},
		"a list":                                 {"prune|-d|x.db|-p|a,o", "a,other"},
		"a list of a flag with an equals sign": {"prune|--database=x.db|--packages=a,b,P",
			"--packages=a,b,PACKAGE-of-x.db"},
		"a choice stays one": {"bundles|cat|-o|", "json yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Complete(app, strings.Split(c.words, "|"), names)
			var words []string
			for _, cand := range got.Candidates {
				words = append(words, cand.Word)
			}
			if got.Files {
				words = append(words, ":files")
			}
			if s := strings.Join(words, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
	if got := Complete(app, []string{"bundles", "cat", ""}, nil); len(got.Candidates) > 0 || !got.Files {
		t.Errorf("without names: %+v", got)
	}
}
