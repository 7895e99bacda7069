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

// indexOptions are the flags of a command of the index group.
type indexOptions struct {
	catalogcmd.EditOptions
	from, dockerfile                   string
	generate                           bool
	containerTool, buildTool, pullTool string
}

// flags are those of the commands of the index group, with opm's short names. tools adds opm's flags for the programs
// that build and pull; prune has only one of them.
func (o *indexOptions) flags(tools bool, own ...[]cli.Flag) []cli.Flag {
	const group, accepted = "content", "accepted for compatibility with opm"
	all := program.Flags(own...)
	all = append(all,
		&cli.StringFlag{Name: "from-index", Destination: &o.from, Aliases: []string{"f"},
			Usage: "edit `INDEX`: an image, a database file or a catalog directory", Category: group},
		&cli.BoolFlag{Name: "generate", Destination: &o.generate,
			Usage:    "write a Dockerfile and the database or catalog instead of building an image",
			Category: "destination"},
		&cli.StringFlag{Name: "out-dockerfile", Destination: &o.dockerfile, Aliases: []string{"d"}, Value: "index.Dockerfile",
			Usage: "write the Dockerfile of --generate to `FILE`", Category: "destination"},
		&cli.StringFlag{Name: "container-tool", Destination: &o.containerTool, Aliases: []string{"c"},
			Usage: "`TOOL` to build and pull with (docker|podman|none): " + accepted, Category: accepted},
	)
	if tools {
		all = append(all,
			&cli.StringFlag{Name: "build-tool", Destination: &o.buildTool, Aliases: []string{"u"},
				Usage: "`TOOL` to build with (docker|podman|none): " + accepted, Category: accepted},
			&cli.StringFlag{Name: "pull-tool", Destination: &o.pullTool, Aliases: []string{"p"},
				Usage: "`TOOL` to pull with (docker|podman|none): " + accepted, Category: accepted},
		)
	}
	what := o.IndexFlags()
	for _, f := range what {
		if f, ok := f.(*cli.StringFlag); ok && f.Name == "binary-image" {
			f.Aliases = append(f.Aliases, "i")
		}
	}
	return program.Flags(o.Destination.Flags(), all, what, o.EditOptions.Flags(), o.Result.Flags(), o.Supply.Flags(), o.Images.Flags())
}

// checkTools reads opm's flags for container tools and refuses the values that opm refuses where they matter.
func (o *indexOptions) checkTools(p *option.Session) error {
	var named []string
	for _, given := range [][2]string{{"container-tool", o.containerTool}, {"build-tool", o.buildTool},
		{"pull-tool", o.pullTool}} {
		flag, tool := given[0], given[1]
		if !slices.Contains([]string{"", "none", "docker", "podman"}, tool) {
			return cmdline.Usagef("invalid --%s value %q, expected (none|docker|podman)", flag, tool)
		}
		if tool != "" && tool != "none" {
			named = append(named, tool)
		}
	}
	if p.Given("container-tool") && (p.Given("build-tool") || p.Given("pull-tool")) {
		return cmdline.Usagef("container-tool cannot be set alongside pull-tool or build-tool")
	}
	if len(named) == 0 {
		return nil
	}
	slices.Sort(named)
	tools := strings.Join(slices.Compact(named), " and ")
	if o.generate || o.Push || o.Load || p.Given("to") || o.DryRun {
		p.Log.Info(tools + ": ignored, no container tool is needed")
		return nil
	}
	p.Log.Warn(
		fmt.Sprintf(
			"%s is not used: the image is written to a layout in the working directory; --push writes it to the "+
				"registry and --load to podman's storage", tools))
	return nil
}
