package ocmirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/mirror"
)

// vendorCatalogs are the repositories of the catalogs of OpenShift, whose tags are versions vX.Y; marketplaceCatalog is
// one until 4.22.
var vendorCatalogs = []string{"registry.redhat.io/redhat/redhat-operator-index", "registry.redhat.io/redhat/certified-operator-index",
	"registry.redhat.io/redhat/community-operator-index"}

const marketplaceCatalog = "registry.redhat.io/redhat/redhat-marketplace-index"

// listCatalogs lists the catalogs of a version of OpenShift, each as the registry has it. One that cannot be asked for is
// an error, after the others.
func (o *options) listCatalogs(ctx context.Context, p *option.Session) error {
	version, err := openshift.Parse(o.version)
	if err != nil {
		return cmdline.Usagef("--version: %v", err)
	}
	names := vendorCatalogs
	if version.Compare(openshift.Version{Major: 4, Minor: 22}) < 0 {
		names = append(names[:len(names):len(names)], marketplaceCatalog)
	}
	var with mirror.Options
	if err := o.createClients(ctx, p, &with, program.Source); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Available OpenShift OperatorHub catalogs:\nOpenShift %s:\n", version)
	var failed []error
	for _, name := range names {
		_, err := with.Render.Images.UnverifiedHead(ctx, name+":v"+version.String())
		var answer *registries.StatusError
		switch {
		case errors.As(err, &answer) && answer.Status == http.StatusNotFound:
			fmt.Fprintf(&b, "Invalid catalog reference %q, please check version\n", name+":v"+version.String())
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		default:
			fmt.Fprintf(&b, "%s:v%s\n", name, version)
		}
	}
	if len(failed) < len(names) {
		_, err = io.WriteString(p.Stdout, b.String())
	}
	return errors.Join(append(failed, err)...)
}
