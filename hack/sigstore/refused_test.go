package sigstore

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// binderyVerify are the arguments to verify with the program.
func binderyVerify(image, root string, who []string, more ...string) []string {
	return append(append([]string{"verify", image, "--trusted-root", root, "--offline"}, who...), more...)
}

// verifiers ask the program and cosign whether they take the only signature of an image. Cosign has to be told that the root
// has no log.
var verifiers = map[string]func(p *place, image, root string, logged bool) result{
	"bindery": func(p *place, image, root string, _ bool) result {
		return p.bindery(options{}, binderyVerify(image, root, byPerson(), "-o", "json")...)
	},
	"cosign": func(p *place, image, root string, logged bool) result {
		return p.cosign(options{}, cosignVerify("verify", image, root, byPerson(), fmt.Sprintf("--insecure-ignore-tlog=%t", !logged))...)
	},
}

// What has been tampered with is refused, by the program and by cosign. Each row is what cosign has signed with the servers,
// and one thing in it that is not as it was.
func TestRefused(t *testing.T) {
	p := newPlace(t)
	image, other := p.newImage("refused/catalog"), p.newImage("refused/other")
	// The same image elsewhere.
	stranger, third := store.host()+"/refused/stranger", store.host()+"/refused/third"
	_, _, digest := split(image)
	for _, copied := range []*string{&stranger, &third} {
		p.does("copy", image, *copied+":v1", "--with", "none")
		*copied += "@" + digest
	}
	p.cosignDoes(cosignSign("sign", other, openid.person(person))...)
	p.cosignDoes(cosignSign("sign", stranger, openid.person("stranger@example.com"))...)
	p.cosignDoes(cosignSign("sign", image, openid.person(person))...)
	good, elsewhere, foreign := bundles(t, image)[0], bundles(t, other)[0], bundles(t, stranger)[0]
	like := referrers(t, image)[0]
	made := newCA(t)
	both := made.root(t)
	second, err := startInstance(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.stop)
	args := cosignSign("sign", third, openid.person(person))
	for i := range args {
		args[i] = strings.ReplaceAll(strings.ReplaceAll(args[i], public.config, second.config), public.root, second.root)
	}
	p.cosignDoes(args...)
	signedBySecond := bundles(t, third)[0]
	noTime, noLog := filepath.Join(t.TempDir(), "root.json"), filepath.Join(t.TempDir(), "root.json")
	otherCA, otherLog := filepath.Join(t.TempDir(), "root.json"), filepath.Join(t.TempDir(), "root.json")
	for file, of := range map[string][]string{
		noLog:   {public.ofFulcio(), "--fulcio=url=https://ca.example.com,certificate-chain=" + made.file, ofAuthority()},
		noTime:  {public.ofFulcio(), public.ofRekor()},
		otherCA: {second.ofFulcio(), public.ofRekor(), ofAuthority()}, otherLog: {public.ofFulcio(), second.ofRekor(), ofAuthority()},
	} {
		if err := makeRoot(file, of...); err != nil {
			t.Fatal(err)
		}
	}
	unlogged := func(b bundle) { delete(b.material(), "tlogEntries") }
	untimed := func(b bundle) { delete(b.material(), "timestampVerificationData") }
	change := func(do func(b bundle)) bundle {
		b := good.clone()
		do(b)
		return b
	}
	for i, row := range []struct {
		name   string
		bundle bundle
		root   string
		// why is the class of the program's refusal; empty if it is taken.
		why string
	}{
		{"nothing is changed", good.clone(), public.root, ""},
		{"a certificate of another authority of the root", made.sign(t, good.statement(), time.Now().Add(-time.Minute)), both, ""},
		{"an authority that the root does not have", made.sign(t, good.statement(), time.Now().Add(-time.Minute)), public.root, "certificate"},
		{"an expired certificate", made.sign(t, good.statement(), time.Now().Add(-time.Hour)), both, "certificate"},
		{"a certificate of the future", made.sign(t, good.statement(), time.Now().Add(time.Hour)), both, "certificate"},
		{"an expired certificate without a log entry and a timestamp", func() bundle {
			b := made.sign(t, good.statement(), time.Now().Add(-time.Hour))
			unlogged(b)
			untimed(b)
			return b
		}(), both, "log"},
		{"no log entry and no timestamp", change(func(b bundle) {
			unlogged(b)
			untimed(b)
		}), public.root, "log"},
		{"no log entry", change(unlogged), public.root, "log"},
		{"no timestamp", change(untimed), public.root, "time"},
		{"no timestamp authority in the root", good.clone(), noTime, "time"},
		{"the root of another instance", good.clone(), second.root, "log"},
		{"the certificates of another instance", good.clone(), otherCA, "certificate"},
		{"the log of another instance", good.clone(), otherLog, "log"},
		{"the log entry of another signature", change(func(b bundle) {
			b.material()["tlogEntries"] = elsewhere.clone().material()["tlogEntries"]
		}), public.root, "log"},
		{"the log entry and the timestamp of another signature", change(func(b bundle) {
			b.material()["tlogEntries"] = elsewhere.clone().material()["tlogEntries"]
			b.material()["timestampVerificationData"] = elsewhere.clone().timestamps()
		}), public.root, "log"},
		{"the timestamp of another signature", change(func(b bundle) {
			b.material()["timestampVerificationData"] = elsewhere.clone().timestamps()
		}), public.root, "time"},
		{"the certificate of another signature", change(func(b bundle) {
			b.material()["certificate"] = elsewhere.clone().material()["certificate"]
		}), public.root, "log"},
		{"the signature of another statement", change(func(b bundle) {
			b.envelope()["signatures"] = elsewhere.clone().envelope()["signatures"]
		}), public.root, "log"},
		{"a signature of another image", elsewhere.clone(), public.root, "other-subject"},
		{"a signature of another person", foreign.clone(), public.root, "other-signer"},
		{"a statement that is written otherwise", change(func(b bundle) { b.state(append(good.statement(), ' ')) }), public.root, "log"},
		{"a statement with the digest of this image", func() bundle {
			b := elsewhere.clone()
			_, _, of := split(other)
			b.state(bytes.ReplaceAll(b.statement(), []byte(strings.TrimPrefix(of, "sha256:")), []byte(strings.TrimPrefix(digest, "sha256:"))))
			return b
		}(), public.root, "log"},
		{"another position in the log", change(func(b bundle) {
			b.entry()["logIndex"], b.proof()["logIndex"] = elsewhere.entry()["logIndex"], elsewhere.proof()["logIndex"]
		}), public.root, "log"},
		{"the checkpoint of another log", change(func(b bundle) {
			b.proof()["checkpoint"] = signedBySecond.clone().proof()["checkpoint"]
		}), public.root, "log"},
		{"a proof of another tree", change(func(b bundle) {
			b.proof()["rootHash"], b.proof()["checkpoint"] = elsewhere.proof()["rootHash"], elsewhere.clone().proof()["checkpoint"]
			b.proof()["treeSize"] = elsewhere.proof()["treeSize"]
		}), public.root, "log"},
		{"no log in the root", change(unlogged), noLog, ""},
		{"no log in the root, and no timestamp", change(func(b bundle) {
			unlogged(b)
			untimed(b)
		}), noLog, "time"},
		{"no log in the root, and an expired certificate", func() bundle {
			b := made.sign(t, good.statement(), time.Now().Add(-time.Hour))
			unlogged(b)
			return b
		}(), noLog, "certificate"},
		{"no log in the root, and the timestamp of another signature", change(func(b bundle) {
			unlogged(b)
			b.material()["timestampVerificationData"] = elsewhere.clone().timestamps()
		}), noLog, "time"},
		{"no log in the root, and a statement that is written otherwise", change(func(b bundle) {
			unlogged(b)
			b.state(append(good.statement(), ' '))
		}), noLog, "other-key"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t)
			copied := fmt.Sprintf("%s/refused/row%d", store.host(), i)
			p.does("copy", image, copied+":v1", "--with", "none")
			copied += "@" + digest
			hang(t, copied, row.bundle, like)
			for name, verify := range verifiers {
				r := verify(p, copied, row.root, row.root != noLog)
				switch taken := r.status == 0; {
				case row.why == "" && !taken:
					t.Errorf("%s refuses it: status %d\n%s%s", name, r.status, r.out, r.log)
				case row.why != "" && taken:
					t.Errorf("%s takes it:\n%s%s", name, r.out, r.log)
				case row.why != "" && name == "bindery" && (r.status != 1 || !strings.Contains(r.out, `"class": "`+row.why+`"`)):
					t.Errorf("status %d for %s:\n%s%s", r.status, row.why, r.out, r.log)
				}
			}
		})
	}
}
