// Package hint has the advice that follows an error, and the classes of errors of libraries.
package hint

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.podman.io/image/v5/docker"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/render"
)

// OfCatalog returns a hint for a directory that was read as a catalog and is a bundle, or a part of one; otherwise it
// is empty.
func OfCatalog(dir string) string {
	if IsBundle(dir) {
		return fmt.Sprintf("%q is a bundle: check it with \"bundle validate\"", filepath.Clean(dir))
	}
	return OfBundle(dir)
}

// OfBundle returns a hint for a directory that is a part of a bundle; otherwise it is empty.
func OfBundle(dir string) string {
	dir = filepath.Clean(dir)
	if parent := filepath.Join(dir, ".."); IsBundle(parent) {
		return fmt.Sprintf("%q is a part of the bundle %q", dir, parent)
	}
	return ""
}

// IsBundle reports whether a path is that of a bundle directory.
func IsBundle(dir string) bool {
	kind, err := render.Classify(dir)
	return err == nil && kind == render.BundleDirectory
}

// Add adds advice for the user to an error of a library: what a flag of the command does about it, else the hint of the
// error itself ([fault.AdvisorOf]), else what its class has in common. What is here names flags, or is about errors of
// the system and of other modules; other hints are methods of their errors.
func Add(p *program.Program, err error) error {
	var known *cmdline.Error
	if class := cmdline.Classify(err); class != cmdline.ClassNetwork && namesAddress(err.Error()) {
		return &cmdline.Error{Class: class, Err: err,
			Hint: "names of images have no IPv6 addresses: use a name for the registry, from DNS or /etc/hosts"}
	}
	if errors.As(err, &known) && known.Hint != "" {
		return err
	}
	text, object := "", ""
	own := fault.AdvisorOf(err)
	var limit *images.LimitError
	var authority x509.UnknownAuthorityError
	var expired x509.CertificateInvalidError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var host x509.HostnameError
	var reference *render.ReferenceError
	var answer *registries.StatusError
	var unauthorized docker.ErrUnauthorizedForCredentials
	var conflict *store.ConflictError
	var invalid *declcfg.ValidationError
	var empty *declcfg.EmptyError
	var policy *images.PolicyError
	switch {
	case registryHint(err) != "":
		text = registryHint(err)
	case errors.As(err, &policy) && policyHint(policy) != "":
		text = policyHint(policy)
	case errors.As(err, &conflict):
		text, object = conflictHint(conflict), conflict.Name
	case editHint(p, err) != "":
		text = editHint(p, err)
	case errors.As(err, &empty):
		text, object = "--allow-empty accepts a catalog without packages", empty.Catalog
	case errors.As(err, &invalid) && p.HasFlag("repair") && slices.ContainsFunc(invalid.Problems, isAboutImage):
		text = "--repair drops or normalizes related images that are no pull specs; --keep-going skips invalid packages"
	case own != nil: // after what flags can do
		text = own.Hint()
		if of, ok := own.(interface{ Object() string }); ok {
			object = of.Object()
		}
	case errors.Is(err, http.ErrSchemeMismatch), errors.Is(err, registries.ErrPlainHTTP):
		text = "the registry uses plain HTTP: set --use-http"
	case errors.As(err, &record):
		text = "the registry does not answer with TLS; if it uses plain HTTP: set --use-http"
	case errors.As(err, &expired) && expired.Reason == x509.Expired:
		text = "the certificate has to be renewed, or the clock of this machine is wrong; --tls-verify=false goes on " +
			"without verification"
	case errors.As(err, &host):
		text = hostHint(host)
	case errors.As(err, &authority), errors.As(err, &certificate):
		text = "trust a certificate authority with --ca-file FILE, or disable verification with --tls-verify=false"
	case errors.As(err, &answer) && answer.Status == http.StatusForbidden && answer.Credentials != "":
		return err // the registry knows the user and explains the refusal
	case errors.As(err, &answer) && answer.Status == http.StatusUnauthorized && answer.Credentials != "":
		text = "the registry refused the user name or the password from " + answer.Credentials +
			"; \"" + loginCommand(answer) + "\" writes new ones"
	case errors.As(err, &unauthorized), registries.IsUnauthorized(err):
		text = "provide credentials with --authfile FILE or $REGISTRY_AUTH_FILE; \"" + loginCommand(answer) + "\" writes them"
	case errors.As(err, &limit) && p.HasFlag(string(limit.Limit)):
		text = fmt.Sprintf("--%s raises the limit", limit.Limit)
	case errors.Is(err, library.ErrStore):
		text = "without podman's storage: --to oci-archive:FILE and \"podman load -i FILE\"; to read \"podman " +
			"save --format oci-archive -o FILE NAME\" and oci-archive:FILE"
	case errors.Is(err, build.ErrTooFewLayers) && p.HasFlag("max-layers"):
		text = "--max-layers allows more"
	case errors.As(err, &reference) && OfBundle(reference.Reference) != "":
		text, object = OfBundle(reference.Reference), reference.Reference
	default:
		if text = machineHint(p, err); text == "" {
			return err
		}
	}
	return &cmdline.Error{Class: cmdline.Classify(err), Object: object, Hint: p.WordsFor(text, registries.EndOf(err)), Err: err}
}

// hostHint advises on a certificate that is for another host, or for none: it has no subject alternative name.
func hostHint(e x509.HostnameError) string {
	var names []string
	if e.Certificate != nil {
		names = append(names, e.Certificate.DNSNames...)
		for _, ip := range e.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
	}
	const insecure = "; --tls-verify=false goes on without verification"
	if len(names) == 0 {
		return "no authority helps: the certificate has to be issued again with the host as a subject alternative name (SAN)" + insecure
	}
	return "no authority helps: name the registry as the certificate does (" + printable.Text(fault.Clip(strings.Join(names, ", "), 200)) +
		"), or have it issued again for this host" + insecure
}

// bracketed is what may be an IPv6 address as the registry of an image.
var bracketed = regexp.MustCompile(`(^|[ "/])\[([0-9a-fA-F:.]+)(%[^\]]*)?\](:[0-9]+)?([/" ]|$)`)

// namesAddress tells whether a text has an IPv6 address where a registry is named.
func namesAddress(text string) bool {
	for _, found := range bracketed.FindAllStringSubmatch(text, -1) {
		if addr, err := netip.ParseAddr(found[2]); err == nil && addr.Is6() {
			return true
		}
	}
	return false
}

func isAboutImage(p declcfg.Problem) bool { return p.Rule == declcfg.RuleImage }

// conflictHint explains how to proceed if the image's name refers to another digest than --if-digest.
func conflictHint(e *store.ConflictError) string {
	switch {
	case e.Got == "":
		return "the tag does not exist: use --if-digest none to create it"
	case e.Want == "":
		return "the tag already exists: inspect the image, and set --if-digest to its digest to replace it"
	default:
		return "the tag was changed concurrently: inspect the image, and set --if-digest to its digest"
	}
}

// loginCommand is the command that logs in to the registry that has answered; answer may be nil.
func loginCommand(answer *registries.StatusError) string {
	if answer != nil && answer.Host() != "" {
		return "bindery login " + answer.Host()
	}
	return "bindery login REGISTRY"
}
