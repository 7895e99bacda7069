package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operator-bindery/bindery/bundle/configmap"
	"github.com/operator-bindery/bindery/bundle/kube"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// extractOptions are the flags of "bundle extract".
type extractOptions struct {
	dir, kubeconfig, name, namespace, output string
	limit                                    int64
	gzip, dryRun                             bool
}

func bundleExtractCommand(p *option.Session) *cli.Command {
	o := &extractOptions{}
	return &cli.Command{
		Name:      "extract",
		Usage:     "write a bundle into an existing ConfigMap",
		ArgsUsage: "[DIR]",
		Description: `DIR contains the directories manifests and metadata. The Operator Lifecycle Manager runs
this command in the pod that unpacks a bundle: the ConfigMap's data and annotations are replaced by the
bundle. $CONTAINER_IMAGE is recorded as the source image. The cluster is that of $KUBECONFIG, of --kubeconfig,
or of the pod; --dry-run needs none.` +
			program.Examples("bindery bundle extract bundle -c etcd -z --dry-run",
				"bindery bundle extract -m bundle -n olm -c etcd --dry-run -o json"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "manifestsdir", Aliases: []string{"m"}, Destination: &o.dir,
				Usage: "bundle `DIR`, in place of the argument", DefaultText: "/"},
			&cli.StringFlag{Name: "kubeconfig", Aliases: []string{"k"}, Destination: &o.kubeconfig,
				Usage: "kubeconfig `FILE` of the cluster; $KUBECONFIG takes precedence"},
			&cli.StringFlag{Name: "configmapname", Aliases: []string{"c"}, Usage: "`NAME` of the ConfigMap",
				Destination: &o.name},
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Value: "openshift-operator-lifecycle-manager",
				Destination: &o.namespace,
				Usage:       "`NAMESPACE` of the ConfigMap"},
			&cli.Int64Flag{Name: "datalimit", Aliases: []string{"l"}, Value: configmap.DefaultLimit, Destination: &o.limit,
				Usage: "maximum size of the encoded data: `N` bytes"},
			&cli.BoolFlag{Name: "gzip", Aliases: []string{"z"}, Usage: "compress the data", Destination: &o.gzip},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the ConfigMap without updating the cluster",
				Destination: &o.dryRun},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` of --dry-run (yaml|json)", Destination: &o.output,
				DefaultText: "yaml"},
		},
		Action: p.Action(func(ctx context.Context, args []string) error { return extract(ctx, p, o, args) }),
	}
}

func extract(ctx context.Context, p *option.Session, o *extractOptions, args []string) error {
	name, namespace := o.name, o.namespace
	format, err := program.ObjectFormat(o.output)
	switch {
	case err != nil:
		return err
	case name == "":
		return cmdline.Usagef("required flag(s) \"configmapname\" not set")
	case format != "" && !o.dryRun:
		return cmdline.Usagef("--output requires --dry-run")
	case o.limit <= 0:
		return cmdline.Usagef("invalid --datalimit value %d, expected a number above 0", o.limit)
	}
	dir := "/"
	if len(args) > 0 || p.Given("manifestsdir") {
		if dir, err = argumentOr(args, "manifestsdir", o.dir); err != nil {
			return err
		}
	}
	root, err := bundlefs.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: dir, Err: err,
			Hint: "the argument is a directory; \"bundle unpack REF -o DIR\" writes the files of an image into one"}
	}
	if err != nil {
		return err
	}
	defer root.Close()
	content, err := configmap.Write(ctx, root.FS(), configmap.Options{
		Gzip: o.gzip, Limit: o.limit, SourceImage: os.Getenv("CONTAINER_IMAGE"),
	})
	if err != nil {
		return &cmdline.Error{Class: extractClass(err), Object: dir, Err: fmt.Errorf("%s: %w", dir, err),
			Hint: extractHint(o.gzip, err)}
	}
	if o.dryRun {
		return printObjects(p, format, configMapOf(namespace, name, content))
	}
	return updateConfigMap(ctx, p, o, content)
}

func extractClass(err error) cmdline.Class {
	if errors.Is(err, configmap.ErrLimit) {
		return cmdline.ClassLimit
	}
	return cmdline.Classify(err)
}

// extractHint suggests how to make a bundle smaller.
func extractHint(compressed bool, err error) string {
	if errors.Is(err, configmap.ErrLimit) && !compressed {
		return "-z compresses the data"
	}
	return ""
}

// configMapObject is the printed form of a ConfigMap.
type configMapObject struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   objectMeta        `json:"metadata"`
	Data       map[string]string `json:"data,omitempty"`
	BinaryData map[string][]byte `json:"binaryData,omitempty"`
}

type objectMeta struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func configMapOf(namespace, name string, content *configmap.ConfigMap) configMapObject {
	return configMapObject{"v1", "ConfigMap", objectMeta{name, namespace, content.Annotations}, content.Data,
		content.BinaryData}
}

// printObjects writes Kubernetes objects as YAML documents, or as JSON: one object or a list.
func printObjects(p *option.Session, format program.Format, objects ...any) error {
	if format == program.JSON {
		answer := objects[0]
		if len(objects) > 1 {
			answer = map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
		}
		return p.PrintContent(answer)
	}
	var out []byte
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		if len(objects) > 1 {
			out = append(out, "---\n"...)
		}
		if out, err = yamlout.AppendYAML(out, text); err != nil {
			return err
		}
	}
	_, err := p.Stdout.Write(out)
	return err
}

// updateConfigMap replaces the content of the ConfigMap in the cluster.
func updateConfigMap(ctx context.Context, p *option.Session, o *extractOptions, content *configmap.ConfigMap) error {
	kubeconfig, namespace, name := o.kubeconfig, o.namespace, o.name
	if env := os.Getenv("KUBECONFIG"); env != "" {
		kubeconfig = env // opm's order of precedence
	}
	client, err := kube.NewClient(ctx, kube.Options{
		Kubeconfig: kubeconfig, UserAgent: "bindery/" + version.Release(),
		Warn: func(m string) { p.Log.Warn(fmt.Sprintf("%.300q", m)) },
	})
	if err == nil {
		err = client.Update(ctx, namespace, name, func(cm *corev1.ConfigMap) {
			cm.Data, cm.BinaryData = content.Data, content.BinaryData
			cm.Annotations = content.Over(cm.Annotations)
		})
	}
	if err != nil {
		return clusterError(namespace+"/"+name, err)
	}
	if !p.Opm {
		p.Log.Info(fmt.Sprintf("wrote %s to ConfigMap %s/%s", program.Count(len(content.Data)+len(content.BinaryData), "file"),
			namespace, name))
	}
	return nil
}

// clusterError adds the class and a hint to an error of the cluster.
func clusterError(object string, err error) error {
	e := &cmdline.Error{Class: cmdline.Classify(err), Object: object, Err: fmt.Errorf("ConfigMap %s: %w", object, err)}
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, kube.ErrNoCluster):
		e.Class, e.Hint = cmdline.ClassLocal, "set --kubeconfig or $KUBECONFIG; --dry-run needs no cluster"
	case errors.Is(err, kube.ErrMissing):
		e.Class, e.Hint = cmdline.ClassNetwork,
			"create an empty one with \"kubectl create configmap NAME\"; the Operator Lifecycle Manager creates it "+
				"before it runs this command"
	case apierrors.IsForbidden(err):
		e.Class, e.Hint = cmdline.ClassNetwork, "this needs the verbs \"get\" and \"update\" on the ConfigMap"
	case errors.As(err, &status):
		e.Class = cmdline.ClassNetwork
	}
	return e
}
