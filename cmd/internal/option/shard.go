package option

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/mirror"
)

// Names that Kubernetes gives: the index of a pod of an indexed job, from 0. A container without a shell cannot add one
// to it, so that --shard takes it in this form.
const (
	jobShard = "job/"
	jobIndex = "JOB_COMPLETION_INDEX"
)

// ShardFlag divides work among machines.
func ShardFlag(at *string, category, usage string) cli.Flag {
	return &cli.StringFlag{Name: "shard", Category: category, Usage: usage, EnvVars: program.Env("shard"), Destination: at}
}

// MirrorShardFlag divides the images of a mirror.
func MirrorShardFlag(at *string) cli.Flag {
	return ShardFlag(at, "copying", "copy part `I/N` of the images, or job/N in a pod of an indexed job, and publish no "+
		"catalog; mirror publish does that after all parts")
}

// ReadShard reads the value of --shard: I/N with I from 1 to N, or job/N for the part of this pod of an indexed job of Kubernetes.
func ReadShard(text string) (mirror.Shard, error) {
	if text == "" {
		return mirror.Shard{}, nil
	}
	if count, ok := strings.CutPrefix(text, jobShard); ok {
		index, err := strconv.Atoi(os.Getenv(jobIndex))
		if err != nil || index < 0 || index >= 10_000 {
			e := cmdline.Usagef("--shard %s: %s is %.20q and not the index of a pod", text, jobIndex,
				os.Getenv(jobIndex))
			e.Hint = "completionMode: Indexed sets it; elsewhere, name the part as I/N"
			return mirror.Shard{}, e
		}
		text = fmt.Sprintf("%d/%s", index+1, count)
	}
	s, err := mirror.ParseShard(text)
	if err != nil {
		return s, program.Usage(err)
	}
	return s, nil
}
