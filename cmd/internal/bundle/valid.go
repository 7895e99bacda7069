package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// validation says how a bundle is validated.
type validation struct {
	labels map[string]string
	plain  bool
	// strict refuses a bundle with any error; otherwise only unreadable bundles are refused.
	strict bool
}

// validBundle refuses a bundle with errors and logs its warnings.
func validBundle(p *option.Session, ctx context.Context, object string, fsys fs.FS, v validation) error {
	o := bundle.ReadOptions{Labels: v.labels}
	if v.plain {
		o.MediaType = bundle.PlainV0
	}
	b, readErr := bundle.Read(ctx, fsys, o)
	var refused *bundle.ReadError
	if readErr != nil && !errors.As(readErr, &refused) {
		return readErr
	}
	report, err := bundlecheck.Run(ctx, fsys, b, bundlecheck.Options{OLMv1: !p.Opm, OPM: p.Opm, Plain: v.plain, Labels: v.labels})
	if err != nil {
		return err
	}
	var wrong, odd []string
	for _, problem := range report.Problems {
		if v.plain && (problem.Rule == bundle.RuleDocuments || problem.Rule == "namespace") {
			continue // plain+v0 bundles may have both
		}
		if problem.Severity == bundle.SeverityError && (v.strict || refused != nil) {
			wrong = append(wrong, placed(p, object, problem))
			continue
		}
		odd = append(odd, placed(p, object, problem))
	}
	for _, line := range firstProblems(odd, "warnings") {
		if !strings.HasPrefix(line, object) {
			line = object + ": " + line
		}
		p.Log.Warn(line)
	}
	if refused != nil && len(wrong) == 0 {
		wrong = append(wrong, refused.Error())
	}
	if len(wrong) == 0 {
		return nil
	}
	class := cmdline.ClassInput
	if errors.Is(readErr, bundle.ErrLimit) {
		class = cmdline.ClassLimit
	}
	return &cmdline.Error{Class: class, Object: object, Hint: "--skip-validation ignores these errors",
		Err: fmt.Errorf("%s: the bundle has %s:\n%s", object, program.Count(len(wrong), "error"),
			strings.Join(firstProblems(wrong, "errors"), "\n"))}
}
