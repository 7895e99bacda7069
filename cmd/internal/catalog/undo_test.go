package catalog_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// The command that an edit names gives back what was there: the same files of a directory, the same content of a
// database. An edit without such a command says so.
func TestUndo(t *testing.T) {
	const ref = " --image-ref-template " + clitest.RefTemplate
	const none = "no command brings back what was removed: "
	for name, c := range map[string]struct {
		first string // lines of "catalog" before the edit; CAT is the catalog
		edit  string
		undo  string // without "bindery catalog"; empty: there is none
		no    string // why a database cannot have the edit
	}{
		"add a package": {edit: "add CAT constraint-1" + ref, undo: "rm CAT synth-constraint"},
		"add bundles of an old and a new package": {edit: "add CAT constraint-1 etcd" + ref,
			undo: "rm CAT synth-constraint etcd/singlenamespace-alpha/etcdoperator.v0.9.5"},
		"add a head": {first: "add CAT constraint-1" + ref, edit: "add CAT constraint-2" + ref,
			undo: "rm CAT synth-constraint/alpha/synth-constraint.v0.2.0 " +
				"synth-constraint/beta/synth-constraint.v0.1.0 synth-constraint/beta/synth-constraint.v0.2.0"},
		"promote": {edit: "promote CAT silicom-sts-operator.v0.0.6 --channel beta",
			undo: "demote CAT silicom-sts-operator/silicom-sts-operator.v0.0.6 --channel beta"},
		"promote to new channels": {edit: "promote CAT silicom-sts-operator.v0.0.6 --channel fast --channel 'slow one'",
			undo: "demote CAT silicom-sts-operator/silicom-sts-operator.v0.0.6 --channel fast --channel 'slow one'"},
		"promote two": {edit: "promote CAT silicom-sts-operator.v0.0.3 silicom-sts-operator.v0.0.4 --channel beta",
			undo: "demote CAT silicom-sts-operator/silicom-sts-operator.v0.0.3 " +
				"silicom-sts-operator/silicom-sts-operator.v0.0.4 --channel beta"},
		"promote to the default channel": {edit: "promote CAT silicom-sts-operator.v0.0.6 --channel beta --default",
			undo: "promote CAT silicom-sts-operator/silicom-sts-operator.v0.0.6 --channel alpha --default && " +
				"demote CAT silicom-sts-operator/silicom-sts-operator.v0.0.6 --channel beta"},
		"change the default channel alone": {
			edit: "promote CAT silicom-sts-operator.v0.0.2 --channel beta --default",
			undo: "promote CAT silicom-sts-operator/silicom-sts-operator.v0.0.6 --channel alpha --default"},
		"demote a head": {edit: "demote CAT silicom-sts-operator.v0.0.2 --channel beta",
			undo: "promote CAT silicom-sts-operator/silicom-sts-operator.v0.0.2 --channel beta"},
		"demote two heads, the higher one first": {
			first: "promote CAT silicom-sts-operator.v0.0.3 silicom-sts-operator.v0.0.4 --channel beta",
			edit:  "demote CAT silicom-sts-operator.v0.0.4 silicom-sts-operator.v0.0.3 --channel beta",
			undo: "promote CAT silicom-sts-operator/silicom-sts-operator.v0.0.3 " +
				"silicom-sts-operator/silicom-sts-operator.v0.0.4 --channel beta"},
		"demote the tail": {edit: "demote CAT silicom-sts-operator.v0.0.1 --channel beta"},
		"demote the last bundle of the default channel": {
			first: "promote CAT silicom-sts-operator.v0.0.6 --channel fast --default",
			edit:  "demote CAT silicom-sts-operator.v0.0.6 --channel fast",
			undo:  "promote CAT silicom-sts-operator/silicom-sts-operator.v0.0.6 --channel fast --default"},
		"deprecate a bundle": {edit: "deprecate CAT etcdoperator.v0.9.2 --message old",
			undo: "deprecate CAT etcd/etcdoperator.v0.9.2 --undo", no: "cannot hold the whole catalog"},
		"deprecate a package and a channel": {
			edit: "deprecate CAT --package etcd --channel etcd/alpha --message \"it's old\"",
			undo: "deprecate CAT --package etcd --channel etcd/alpha --undo", no: "cannot hold the whole catalog"},
		"deprecate with another message": {
			first: "deprecate CAT etcdoperator.v0.9.2 --message \"it's old\"",
			edit:  "deprecate CAT etcdoperator.v0.9.2 --message new",
			undo:  "deprecate CAT etcd/etcdoperator.v0.9.2 --message 'it'\\''s old'",
			no:    "cannot hold the whole catalog"},
		"deprecate what is so in part": {
			first: "deprecate CAT etcdoperator.v0.9.2 --message old",
			edit:  "deprecate CAT etcdoperator.v0.9.2 etcdoperator.v0.9.0 --message old",
			undo:  "deprecate CAT etcd/etcdoperator.v0.9.0 --undo", no: "cannot hold the whole catalog"},
		"deprecate what has several messages": {
			first: "deprecate CAT etcdoperator.v0.9.2 --message old",
			edit:  "deprecate CAT etcdoperator.v0.9.2 etcdoperator.v0.9.0 --message new",
			undo: "deprecate CAT etcd/etcdoperator.v0.9.0 --undo && deprecate CAT etcd/etcdoperator.v0.9.2 " +
				"--message old",
			no: "cannot hold the whole catalog"},
		"take back a deprecation": {
			first: "deprecate CAT etcdoperator.v0.9.2 --message old",
			edit:  "deprecate CAT etcdoperator.v0.9.2 --undo",
			undo:  "deprecate CAT etcd/etcdoperator.v0.9.2 --message old", no: "cannot hold the whole catalog"},
		"truncate":                       {edit: "deprecate CAT etcdoperator.v0.9.2 --truncate"},
		"remove a package":               {edit: "rm CAT etcd"},
		"remove a channel":               {edit: "rm CAT etcd/alpha"},
		"remove a bundle from a channel": {edit: "rm CAT etcd/singlenamespace-alpha/etcdoperator.v0.9.2"},
		"keep one package":               {edit: "prune CAT --keep etcd"},
	} {
		for _, cat := range []string{"catalog", "index.db"} {
			t.Run(name+"/"+cat, func(t *testing.T) {
				t.Parallel()
				dir := clitest.EditDir(t)
				shell := func(lines string) clitest.Result {
					cmd := clitest.Command(dir, "bindery")
					cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", lines}
					cmd.Env = append(cmd.Env, "PATH="+clitest.BinDir+":/usr/bin:/bin")
					return clitest.Finish(t, cmd)
				}
				line := func(text string) string {
					text = strings.ReplaceAll(text, "CAT", cat)
					return "bindery catalog " + strings.ReplaceAll(text, "&& ", "&& bindery catalog ")
				}
				content := func() string {
					if cat == "catalog" {
						return treeText(t, filepath.Join(dir, cat))
					}
					return clitest.Done(t, dir, "bindery", "render", cat)
				}
				if c.first != "" {
					if got := shell(line(c.first)); c.no != "" && got.Status != 0 && cat == "index.db" {
						return
					} else if got.Status != 0 {
						t.Fatalf("%+v", got)
					}
				}
				before := content()
				got := shell(line(c.edit))
				if c.no != "" && cat == "index.db" {
					if got.Status == 0 || !strings.Contains(got.Stderr, c.no) || strings.Contains(got.Stderr, "undo") {
						t.Errorf("%+v, want %q", got, c.no)
					}
					return
				}
				_, undo, ok := strings.Cut(got.Stderr, "\nundo: ")
				undo = strings.TrimSpace(undo)
				switch {
				case got.Status != 0 || !ok || content() == before:
					t.Fatalf("%+v", got)
				case c.undo == "":
					if !strings.HasPrefix(undo, none) {
						t.Errorf("undo: %s", undo)
					}
					return
				case undo != line(c.undo):
					t.Errorf("undo: %s\nwant  %s", undo, line(c.undo))
				}
				if got := shell(undo); got.Status != 0 {
					t.Fatalf("%s: %+v", undo, got)
				}
				if content() != before {
					t.Errorf("%s does not give back what was there", undo)
				}
			})
		}
	}
}

// treeText returns the names and the contents of the files in a directory.
func treeText(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	tree := os.DirFS(dir)
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		b.WriteString(name + "\n" + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
