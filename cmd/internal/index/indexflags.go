package index

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	catalogcmd "github.com/operator-bindery/bindery/cmd/internal/catalog"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// defaultIndexTag is opm's default name of an index image.
const defaultIndexTag = "operator-registry-index:latest"

// indexFlags are the flags of the commands of the index group, with opm's short names. tools adds opm's flags for the
// programs that build and pull; prune has only one of them.
func indexFlags(tools bool, own ...[]cli.Flag) []cli.Flag {
	const group, accepted = "content", "accepted for compatibility with opm"
	all := program.Flags(own...)
	all = append(all,
		&cli.StringFlag{Name: "from-index", Aliases: []string{"f"},
			Usage: "edit `INDEX`: an image, a database file or a catalog directory", Category: group},
		&cli.BoolFlag{Name: "generate",
			Usage:    "write a Dockerfile and the database or catalog instead of building an image",
			Category: "destination"},
		&cli.StringFlag{Name: "out-dockerfile", Aliases: []string{"d"}, Value: "index.Dockerfile",
			Usage: "write the Dockerfile of --generate to `FILE`", Category: "destination"},
		&cli.StringFlag{Name: "container-tool", Aliases: []string{"c"},
			Usage: "`TOOL` to build and pull with (docker|podman|none): " + accepted, Category: accepted},
	)
	if tools {
		all = append(all,
			&cli.StringFlag{Name: "build-tool", Aliases: []string{"u"},
				Usage: "`TOOL` to build with (docker|podman|none): " + accepted, Category: accepted},
			&cli.StringFlag{Name: "pull-tool", Aliases: []string{"p"},
				Usage: "`TOOL` to pull with (docker|podman|none): " + accepted, Category: accepted},
		)
	}
	what := catalogcmd.EditImageFlags()
	for _, f := range what {
		if f, ok := f.(*cli.StringFlag); ok && f.Name == "binary-image" {
			f.Aliases = append(f.Aliases, "i")
		}
	}
	return program.Flags(option.DestinationFlags(), all, what, catalogcmd.EditFlags(), option.ResultFlags(), option.ImageFlags())
}

// checkTools reads opm's flags for container tools and refuses the values that opm refuses where they matter.
func checkTools(p *option.Session, c *cli.Context) error {
	var named []string
	for _, flag := range []string{"container-tool", "build-tool", "pull-tool"} {
		tool := c.String(flag)
		if !slices.Contains([]string{"", "none", "docker", "podman"}, tool) {
			return cmdline.Usagef("invalid --%s value %q, expected (none|docker|podman)", flag, tool)
		}
		if tool != "" && tool != "none" {
			named = append(named, tool)
		}
	}
	if c.IsSet("container-tool") && (c.IsSet("build-tool") || c.IsSet("pull-tool")) {
		return cmdline.Usagef("container-tool cannot be set alongside pull-tool or build-tool")
	}
	if len(named) == 0 {
		return nil
	}
	slices.Sort(named)
	tools := strings.Join(slices.Compact(named), " and ")
	if c.Bool("generate") || c.Bool("push") || c.Bool("load") || c.IsSet("to") || c.Bool("dry-run") {
		p.Log.Info(tools + ": ignored, no container tool is needed")
		return nil
	}
	p.Log.Warn(
		fmt.Sprintf(
			"%s is not used: the image is written to a layout in the working directory; --push writes it to the "+
				"registry and --load to podman's storage", tools))
	return nil
}
