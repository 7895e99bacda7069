package manifests

import (
	"errors"
	"fmt"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/operator-bindery/bindery/internal/problem"
)

// The ids of problems. Those of the other validators are "validator:" and their number in the list validators.
const (
	IDUnreadable      = "unreadable"
	IDAPIService      = "api-service"
	IDWebhook         = "webhook-needs-cert-provider"
	IDInstallMode     = "install-mode"
	IDConversionModes = "conversion-install-modes" // validator 6
	IDConfig          = "config"
	IDRender          = "render"
)

// Problem is a reason why a bundle cannot be installed.
type Problem struct {
	// ID is one of the constants, or "validator:" and a number.
	ID string `json:"id"`
	// File is the file in the bundle, if it is known.
	File string `json:"file,omitempty"`
	// Object is KIND NAME of the object, if one is meant.
	Object string `json:"object,omitempty"`
	// Message is the text of operator-controller.
	Message string `json:"message"`
}

// String returns FILE: MESSAGE.
func (p Problem) String() string {
	return problem.Join(p.File, p.Message)
}

// Unreadable returns the problem of an error of [Read] or [FromObjects].
func Unreadable(err error) Problem {
	p := Problem{ID: IDUnreadable, Message: err.Error()}
	var read *ReadError
	if errors.As(err, &read) {
		p.File = read.File
	}
	return p
}

// Problems returns every reason why the bundle cannot be installed with these settings: where operator-controller
// stops at the first, it goes on, but it names no two for one mistake. There is none if and only if [Bundle.Manifests]
// succeeds. The order is that of operator-controller's checks.
func (b *Bundle) Problems(s Settings) []Problem {
	var out []Problem
	seen := map[string]bool{}
	add := func(p Problem) {
		if key := p.ID + "\x00" + p.Message; !seen[key] {
			seen[key] = true
			out = append(out, p)
		}
	}
	csv := Problem{File: b.csvFile, Object: kindCSV + " " + b.csv.Name}
	for _, r := range b.refusals(s) {
		seen[r.id] = true
		add(Problem{r.id, csv.File, csv.Object, r.message})
	}
	c, err := b.configuration(s)
	if err != nil && !seen[IDInstallMode] {
		add(Problem{ID: IDConfig, Message: err.Error()})
	}
	clean := len(out) == 0
	for _, v := range validators {
		if v.number == 6 && seen[IDInstallMode] {
			continue // the same mistake: the bundle lacks AllNamespaces
		}
		for _, f := range v.check(b) {
			clean = false
			add(b.located(v.number, f))
		}
	}
	if !clean {
		for _, p := range b.conversionProblems() {
			add(p)
		}
		return out
	}
	o := RenderOptions{InstallNamespace: s.InstallNamespace, TargetNamespaces: c.targets, Certs: s.Certs,
		DeploymentConfig: c.deployment}
	targets, err := b.targets(s.InstallNamespace, c.targets)
	if err != nil {
		add(Problem{IDInstallMode, csv.File, csv.Object, err.Error()})
		return out
	}
	for _, p := range b.conversionProblems() {
		add(p)
	}
	if len(out) > 0 {
		return out
	}
	if _, err := b.generate(o, targets); err != nil {
		add(Problem{ID: IDRender, Message: err.Error()})
	}
	return out
}

// located returns the problem of a validator's finding.
func (b *Bundle) located(number int, f finding) Problem {
	p := Problem{ID: fmt.Sprintf("validator:%d", number), Message: f.message}
	if number == 6 {
		p.ID = IDConversionModes
	}
	switch f.kind {
	case "":
		p.File = annotationsFile
		return p
	case kindCSV:
		p.File = b.csvFile
	case kindCRD:
		for _, d := range b.crds {
			if d.Name == f.name {
				p.File = d.file // the last one is the one that is too many
			}
		}
	default:
		for _, o := range b.others {
			if o.GetKind() == f.kind && o.GetName() == f.name {
				p.File = o.file
				break
			}
		}
	}
	p.Object = strings.TrimSpace(f.kind + " " + f.name)
	return p
}

// conversionProblems returns the definitions that cannot have a conversion webhook.
func (b *Bundle) conversionProblems() []Problem {
	converted := map[string]bool{}
	for _, w := range b.webhooks() {
		if w.Type == v1alpha1.ConversionWebhook {
			for _, crd := range w.ConversionCRDs {
				converted[crd] = true
			}
		}
	}
	var out []Problem
	for _, d := range b.crds {
		if converted[d.Name] && d.preservesUnknown {
			out = append(out, Problem{IDRender, d.file, kindCRD + " " + d.Name, preservesUnknown(d.Name)})
		}
	}
	return out
}
