package edit_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

func TestAccount(t *testing.T) {
	from := catalog(t, "p = a", "p/a: 1.0.0, 1.1.0 >1.0.0", "p/b: 1.0.0", "q = a", "q/a: 1.0.0")
	_, account, err := edit.Add(from, additionsOf(t, "p 1.2.0 >1.1.0 !1.1.5 ~<1.2.0 @a,c =c"), edit.AddOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	for _, c := range account.Changes {
		changes = append(changes, c.String())
	}
	want := `added bundle p/p.v1.2.0: img.example/p:v1.2.0
changed default channel p: a -> c (bundle p.v1.2.0 declares it, which is the highest version that declares one)
added entry p/a/p.v1.2.0
changed head p/a: p.v1.1.0 -> p.v1.2.0 (1.2.0 is the highest version among the former head of the channel and the bundles that are added to it)
added replace p/a/p.v1.2.0: p.v1.1.0 (its ClusterServiceVersion says so)
added skip p/a/p.v1.2.0: p.v1.1.5 (its ClusterServiceVersion says so)
added skipRange p/a/p.v1.2.0: <1.2.0 (its ClusterServiceVersion says so)
added channel p/c
added entry p/c/p.v1.0.0
added entry p/c/p.v1.1.0
added entry p/c/p.v1.2.0
added head p/c: p.v1.2.0 (1.2.0 is the highest version among the former head of the channel and the bundles that are added to it)
added replace p/c/p.v1.1.0: p.v1.0.0 (the bundle has this edge in other channels, or says so itself)
added replace p/c/p.v1.2.0: p.v1.1.0 (its ClusterServiceVersion says so)
added skip p/c/p.v1.2.0: p.v1.1.5 (its ClusterServiceVersion says so)
added skipRange p/c/p.v1.2.0: <1.2.0 (its ClusterServiceVersion says so)`
	if got := strings.Join(changes, "\n"); got != want {
		t.Errorf("got\n%s", got)
	}
	facts := map[string]string{}
	for _, f := range account.Facts {
		facts[string(f.Kind)+" "+f.Channel+" "+f.Bundle+" "+f.Value] = f.Why
	}
	for fact, why := range map[string]string{
		"head b  p.v1.0.0":            "no other entry of the channel replaces or skips it",
		"replace a p.v1.1.0 p.v1.0.0": "the catalog has it so",
		"default channel   c":         "bundle p.v1.2.0 declares it, which is the highest version that declares one",
		"replace c p.v1.1.0 p.v1.0.0": "the bundle has this edge in other channels, or says so itself",
		"skip a p.v1.2.0 p.v1.1.5":    "its ClusterServiceVersion says so",
		"skipRange a p.v1.2.0 <1.2.0": "its ClusterServiceVersion says so",
	} {
		if facts[fact] != why {
			t.Errorf("%s: %q", fact, facts[fact])
		}
	}
	if got := account.Packages(); len(got) != 1 || got[0] != "p" {
		t.Errorf("got %v", got)
	}
	if o := account.Origins[edit.Name{Package: "p", Bundle: "p.v1.2.0"}]; o.Replaces != "p.v1.1.0" ||
		len(account.Origins) != 1 {
		t.Errorf("got %v", account.Origins)
	}
	if text, err := json.Marshal(account); err != nil || !strings.Contains(string(text),
		`{"action":"added","kind":"channel","package":"p","channel":"c"}`) {
		t.Errorf("got %s, %v", text, err)
	}
}

// TestOriginsAreUsed uses information that a file-based catalog lacks: what a bundle replaced before it was skipped.
func TestOriginsAreUsed(t *testing.T) {
	from := catalog(t, "p = a", "p/a: 1.0.0, 1.1.0, 1.1.1 >1.0.0 !1.1.0")
	list := additionsOf(t, "p 1.2.0 >1.1.0 !1.1.1 @a")
	got, account, err := edit.Add(from, list, edit.AddOptions{})
	if err != nil || show(got) != "p = a\np/a: 1.1.0, 1.1.1, 1.2.0 >1.1.0 !1.1.1" || len(account.Notes) != 1 ||
		account.Notes[0].Message !=
			"bundle p.v1.0.0 of package p is removed: nothing leads to it from the head of a channel any more" {
		t.Errorf("got %v, %v\n%s", err, account.Notes, show(got))
	}
	origins := edit.Origins{edit.Name{Package: "p", Bundle: "p.v1.1.0"}: {Replaces: "p.v1.0.0"}}
	got, _, err = edit.Add(from, list, edit.AddOptions{Origins: origins})
	if err != nil || show(got) != "p = a\np/a: 1.0.0, 1.1.0 >1.0.0, 1.1.1, 1.2.0 >1.1.0 !1.1.1" {
		t.Errorf("got %v\n%s", err, show(got))
	}
	// The manifests contain it too, if the catalog has them.
	for i := range from.Bundles {
		if b := &from.Bundles[i]; b.Name == "p.v1.1.0" {
			b.Properties = append(b.Properties,
				declcfg.NewBundleObject([]byte(`{"kind":"ClusterServiceVersion","spec":{"replaces":"p.v1.0.0"}}`)))
		}
	}
	got, _, err = edit.Add(from, list, edit.AddOptions{})
	if err != nil || show(got) != "p = a\np/a: 1.0.0, 1.1.0 >1.0.0, 1.1.1, 1.2.0 >1.1.0 !1.1.1" {
		t.Errorf("got %v\n%s", err, show(got))
	}
}

func TestErrorTexts(t *testing.T) {
	from := catalog(t, "p = a", "p/a: 1.0.0")
	_, _, err := edit.Add(from, additionsOf(t, "p 1.0.0 @a"), edit.AddOptions{})
	var e *edit.Error
	if !errors.As(err, &e) || e.OpmMessage() !=
		"[Bundle img.example/p:v1.0.0 already exists, Bundle already added that provides package and csv: p/p.v1.0.0]" {
		t.Errorf("got %v", err)
	}
	var p edit.Problem
	if !errors.As(err, &p) || p.Image != "img.example/p:v1.0.0" || p.Package != "p" {
		t.Errorf("got %+v", p)
	}
	_, _, err = edit.Remove(from, []string{"x"}, edit.RemoveOptions{})
	if !errors.As(err, &e) || e.OpmMessage() != err.Error() || e.ExitStatus() != 1 {
		t.Errorf("got %v", err)
	}
	if _, _, err = edit.Add(from, []edit.Addition{{}}, edit.AddOptions{}); !errors.Is(err, edit.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	broken := catalog(t, "p = a", "p/a: 1.0.0", "p/a: 1.0.0", "q = a", "q/a: 1.0.0")
	if _, _, err = edit.Add(broken, additionsOf(t, "p 1.1.0 >1.0.0 @a"), edit.AddOptions{}); !errors.Is(err,
		edit.ErrInvalid) || !strings.Contains(err.Error(), `package "p" has duplicate olm.channel "a"`) {
		t.Errorf("got %v", err)
	}
	if _, _, err = edit.Add(broken, additionsOf(t, "q 1.1.0 >1.0.0 @a"), edit.AddOptions{}); err != nil {
		t.Errorf("a broken package keeps others from being edited: %v", err)
	}
}
