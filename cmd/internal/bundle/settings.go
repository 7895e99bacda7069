package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// maxConfigFile is the size of a --config file in bytes; a ClusterExtension is not larger.
const maxConfigFile = 1 << 20

// SettingsNames are the flags of [Settings].
var SettingsNames = []string{"install-namespace", "watch-namespace", "config", "cert-provider", "gate"}

// Settings describe the cluster and the ClusterExtension for which bundles are rendered.
type Settings struct {
	InstallNamespace, watchNamespace, config, certProvider string
	gates                                                  cli.StringSlice
}

// Flags are the flags of every command that renders bundles.
func (o *Settings) Flags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "install-namespace", Category: category, Destination: &o.InstallNamespace,
			Usage:       "`NAMESPACE` of the operator",
			DefaultText: "what the bundle suggests, or PACKAGE-system"},
		&cli.StringFlag{Name: "watch-namespace", Category: category, Destination: &o.watchNamespace,
			Usage: "`NAMESPACE` that the operator watches, in place of all; sets watchNamespace of the configuration " +
				"and the gate " + string(manifests.SingleOwnNamespace)},
		&cli.StringFlag{Name: "config", Category: category, Destination: &o.config,
			Usage: "`FILE` with the configuration of the ClusterExtension (spec.config.inline), YAML or JSON"},
		&cli.StringFlag{Name: "cert-provider", Value: string(manifests.CertManager), Category: category,
			Destination: &o.certProvider,
			Usage: "what makes the certificates of webhooks: `NAME` (" +
				strings.Join(manifests.CertProviders(), "|") + ")"},
		&cli.StringSliceFlag{Name: "gate", Category: category, Destination: &o.gates,
			Usage: "feature gate `NAME` that is on (" + strings.Join(manifests.Gates(), "|") + "); can be repeated"},
	}
}

// Read reads these flags. The install namespace may be empty.
func (o *Settings) Read(ctx context.Context, p *option.Session) (manifests.Settings, error) {
	s := manifests.Settings{InstallNamespace: o.InstallNamespace}
	for _, f := range [][2]string{{"install-namespace", o.InstallNamespace}, {"watch-namespace", o.watchNamespace},
		{"config", o.config}, {"cert-provider", o.certProvider}} {
		if p.Given(f[0]) && f[1] == "" {
			return s, cmdline.Usagef("invalid --%s value %q", f[0], "")
		}
	}
	for _, f := range [][2]string{{"install-namespace", o.InstallNamespace}, {"watch-namespace", o.watchNamespace}} {
		if err := checkNamespace(f[1]); err != nil {
			return s, cmdline.Usagef("invalid --%s value %q: %v", f[0], f[1], err)
		}
	}
	if err := s.Certs.UnmarshalText([]byte(o.certProvider)); err != nil {
		return s, cmdline.Usagef("--cert-provider: %v", err)
	}
	gates, err := cmdline.List(o.gates.Value())
	if err != nil {
		return s, err
	}
	if p.Given("gate") && len(gates) == 0 {
		return s, cmdline.Usagef("invalid --gate value %q", "")
	}
	for _, name := range gates {
		var gate manifests.Gate
		if err := gate.UnmarshalText([]byte(name)); err != nil {
			return s, cmdline.Usagef("--gate: %v", err)
		}
		s.Gates = append(s.Gates, gate)
	}
	if s.Config, err = readConfig(ctx, o.config); err != nil {
		return s, err
	}
	if watch := o.watchNamespace; watch != "" {
		s.Gates = append(s.Gates, manifests.SingleOwnNamespace)
		s.Config, err = withWatchNamespace(s.Config, watch)
	}
	return s, err
}

// checkNamespace returns an error for a name that no namespace can have. The empty name, which stands for no namespace,
// is accepted.
func checkNamespace(name string) error {
	valid := len(name) <= 63 && strings.Trim(name, "-") == name && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if !valid {
		return errors.New("expected at most 63 small letters, digits and dashes, without a dash at the ends")
	}
	return nil
}

// readConfig reads the --config file as it is.
func readConfig(ctx context.Context, path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	text, err := regularfile.ReadNamed(ctx, path, maxConfigFile)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--config: %w", err)
	case len(strings.TrimSpace(string(text))) == 0:
		return nil, &cmdline.Error{Class: cmdline.ClassInput, Object: path,
			Err: fmt.Errorf("--config: %q is empty", path), Hint: "a configuration without fields is {}"}
	}
	return text, nil
}

// withWatchNamespace adds the namespace to a configuration.
func withWatchNamespace(config json.RawMessage, namespace string) (json.RawMessage, error) {
	content := map[string]any{}
	if err := yaml.Unmarshal(config, &content); err != nil {
		return nil, &cmdline.Error{Class: cmdline.ClassInput, Err: fmt.Errorf("--config: %w", err),
			Hint: "the file has an object with the fields watchNamespace and deploymentConfig"}
	}
	if _, ok := content["watchNamespace"]; ok {
		return nil, cmdline.Usagef("--watch-namespace: the --config file sets watchNamespace already")
	}
	if content == nil {
		content = map[string]any{}
	}
	content["watchNamespace"] = namespace
	return json.Marshal(content)
}
