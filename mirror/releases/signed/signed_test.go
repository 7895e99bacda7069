package signed_test

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/webclient"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/releases/signed"
)

// repository is that of the releases of the fixture.
const repository = "registry.example.com/openshift-release-dev/ocp-release"

// world is a server with the signatures of synthetic releases.
type world struct {
	files map[string][]byte
	info  struct {
		Releases map[string]digest.Digest
	}
	url    string
	mu     sync.Mutex
	asked  []string
	answer func(w http.ResponseWriter, r *http.Request) bool // unless nil, answers in place of the files
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{files: recorded.Archive(t, "testdata/fixture.tar.zst")}
	if err := json.Unmarshal(w.files["fixture.json"], &w.info); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r.URL.Path)
		w.mu.Unlock()
		if w.answer != nil && w.answer(rw, r) {
			return
		}
		text, ok := w.files[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(rw, r)
			return
		}
		_, _ = rw.Write(text)
	}))
	t.Cleanup(s.Close)
	w.url = s.URL + "/signatures/"
	return w
}

func (w *world) keys(t testing.TB, name string) *signed.Keys {
	t.Helper()
	k, err := signed.ReadKeys(w.files["keys/"+name+".asc"])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// image is the payload of a release.
func (w *world) image(t testing.TB, version string) imageset.Ref {
	t.Helper()
	d, ok := w.info.Releases[version+" amd64"]
	if !ok {
		t.Fatalf("no release %s", version)
	}
	return ref(t, repository+"@"+d.String())
}

// message is a signature of a release.
func (w *world) message(t testing.TB, version, number string) []byte {
	t.Helper()
	return w.files["signatures/sha256="+w.image(t, version).Digest.Encoded()+"/signature-"+number]
}

func (w *world) options(t testing.TB) signed.Options {
	t.Helper()
	c, err := webclient.NewClient(t.Context(), webclient.Options{Retries: 1, Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return signed.Options{Keys: w.keys(t, "release"), URL: w.url, Client: c,
		Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func ref(t testing.TB, name string) imageset.Ref {
	t.Helper()
	r, err := imageset.ParseRef(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Each rule of verification, for a signature of the server and for one that is stored.
func TestRules(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		version, rule string
		// tag is that of the signature; why is in the error.
		tag, why string
		class    fault.Class
	}{
		{version: "4.16.1", rule: "a good signature", tag: "4.16.1-x86_64"},
		{version: "4.16.2", rule: "a compressed one", tag: "4.16.2-x86_64"},
		{version: "4.17.0", rule: "the key is unknown", why: "none of those that may sign", class: fault.Integrity},
		{version: "4.17.1", rule: "there is none", why: "no signature", class: fault.Input},
		{version: "4.17.5", rule: "the signature is damaged", why: "its signature is damaged", class: fault.Integrity},
		{version: "4.17.6", rule: "it is that of another release", why: "it is about another image",
			class: fault.Integrity},
		{version: "4.17.7", rule: "it has expired", why: "has expired on 2020-01-02", class: fault.Integrity},
		{version: "4.17.10", rule: "good, of a release with an empty reference", tag: "4.17.10-x86_64"},
		{version: "4.17.11", rule: "the content was exchanged", why: "not that of its content", class: fault.Integrity},
		{version: "4.17.12", rule: "the second is good", tag: "4.17.12-x86_64"},
		{version: "4.17.13", rule: "the tag was moved at the source", tag: "4.17.13-x86_64"},
		{version: "4.17.14", rule: "it names the image by digest", tag: ""},
		{version: "4.17.15", rule: "it is no message", why: "no OpenPGP message", class: fault.Integrity},
	} {
		image := w.image(t, c.version)
		online := w.options(t)
		atRest := online
		files := fstest.MapFS{"4.16.0-x86_64-sha256-" + strings.Repeat("0", 64): {Data: []byte("another one")}}
		for n, number := range []string{"2", "1"} {
			if text := w.message(t, c.version, number); text != nil {
				tag := c.version + "-x86_64"
				if c.version == "4.17.14" {
					tag = ""
				} else if n == 1 && c.version == "4.17.12" {
					tag = "0" // the bad one comes first
				}
				files[tag+"-sha256-"+image.Digest.Encoded()] = &fstest.MapFile{Data: text, Mode: 0o600}
			}
		}
		atRest.Stored, atRest.Client = files, nil
		for place, o := range map[string]signed.Options{"server": online, "files": atRest} {
			t.Run(c.version+" "+place, func(t *testing.T) {
				s, err := o.Find(t.Context(), image)
				if c.why != "" {
					var e *signed.Error
					if !errors.As(err, &e) || !strings.Contains(err.Error(), c.why) || fault.ClassOf(err) != c.class {
						t.Fatalf("%s: class %d: %v", c.rule, fault.ClassOf(err), err)
					}
					at := "sha256=" + image.Digest.Encoded() + "/signature-1"
					if place == "files" {
						at = "sha256-" + image.Digest.Encoded()
					}
					if !strings.Contains(err.Error(), image.Name()) || !strings.Contains(err.Error(), at) {
						t.Errorf("the error names neither the release nor the place: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatalf("%s: %v", c.rule, err)
				}
				if s.Reference.Tag != c.tag || s.Reference.Repository() != repository || s.Digest != image.Digest {
					t.Errorf("%s: %s, %s", c.rule, s.Reference, s.Digest)
				}
				if want := c.tag + "-sha256-" + image.Digest.Encoded(); s.FileName() != want {
					t.Errorf("%s: stored as %s", c.rule, s.FileName())
				}
				if s.Key != o.Keys.Fingerprints()[0] || !s.Expired.IsZero() {
					t.Errorf("%s: key %s, expired %s", c.rule, s.Key, s.Expired)
				}
			})
		}
	}
}

// A release whose signature names no tag has the HEX of its digest as tag.
func TestTag(t *testing.T) {
	w := newWorld(t)
	for version, want := range map[string]string{"4.16.1": "4.16.1-x86_64",
		"4.17.14": w.image(t, "4.17.14").Digest.Encoded()} {
		s, err := w.options(t).Find(t.Context(), w.image(t, version))
		if err != nil || s.Tag() != want {
			t.Errorf("%s: %v, %v", version, s, err)
		}
	}
}

// What has expired is accepted on demand, and says when.
func TestExpired(t *testing.T) {
	w := newWorld(t)
	o := w.options(t)
	o.AllowExpired = true
	s, err := o.Find(t.Context(), w.image(t, "4.17.7"))
	if err != nil || s.Expired.UTC().Format(time.DateOnly) != "2020-01-02" {
		t.Errorf("%+v, %v", s, err)
	}
	o.AllowExpired, o.Now = false, time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC)
	if s, err = o.Find(t.Context(), w.image(t, "4.17.7")); err != nil || !s.Expired.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
}

// The repository that a signature names is that of the release, the vendor's, or allowed.
func TestRepositories(t *testing.T) {
	w := newWorld(t)
	message, of := w.message(t, "4.16.1", "1"), "@"+w.image(t, "4.16.1").Digest.String()
	o := w.options(t)
	for name, good := range map[string]bool{
		repository: true, strings.Replace(repository, ".com", ".com:443", 1): true,
		"registry.example.com/copy/ocp-release": false, "other.example.com/openshift-release-dev/ocp-release": false,
	} {
		_, err := o.Verify(message, ref(t, name+of))
		if (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "--release-source "+repository) {
			t.Errorf("%s: no advice: %v", name, err)
		}
	}
	o.Sources = []imageset.Target{{Host: "registry.example.com", Path: "openshift-release-dev/ocp-release"}}
	if _, err := o.Verify(message, ref(t, "registry.example.com/copy/ocp-release"+of)); err != nil {
		t.Error(err)
	}
}

// The vendor's keys are those that clusters have, and verify what the vendor has signed: an image of April 2019 that is
// no release, which is why the repository matters.
func TestVendor(t *testing.T) {
	w := newWorld(t)
	keys, err := signed.VendorKeys()
	if err != nil {
		t.Fatal(err)
	}
	const release2 = "567E347AD0044ADE55BA8A5F199E2F91FD431D51"
	if got := strings.Join(keys.Fingerprints(), " "); got != release2+" B08B659EE86AF623BC90E8DB938A80CAF21541EB" {
		t.Error(got)
	}
	const hex = "e3f12513a4b22a2d7c0e7c9207f52128113758d9d68c7d06b11a0ac7672966f7"
	message := w.files["vendor/sha256="+hex+"/signature-1"]
	image := ref(t, "quay.io/openshift-release-dev/ocp-release@sha256:"+hex)
	o := signed.Options{Keys: keys}
	_, err = o.Verify(message, image)
	if err == nil || !strings.Contains(err.Error(), `"registry.access.redhat.com/rhel7:7.6", of another repository`) {
		t.Error(err)
	}
	o.Sources = []imageset.Target{{Host: "registry.access.redhat.com", Path: "rhel7"}}
	s, err := o.Verify(message, image)
	if err != nil || s.Reference.Tag != "7.6" || s.Key != release2 {
		t.Errorf("%+v, %v", s, err)
	}
	o.Keys = w.keys(t, "release")
	if _, err = o.Verify(message, image); err == nil || !strings.Contains(err.Error(), "199E2F91FD431D51") {
		t.Errorf("accepted with other keys: %v", err)
	}
}

// Messages and keys that GnuPG 2.2 has made, by the name of what is special about them, or about what is signed.
func TestGnuPG(t *testing.T) {
	w := newWorld(t)
	for name, why := range map[string]string{
		"plain": "", "uncompressed": "", "zlib": "", "bzip2": "", "sha512": "", "ec": "", "subkey": "",
		"sha1":           "the hash SHA-1, which is no longer safe",
		"text":           "of type 0x01",
		"clear":          "no OpenPGP message",
		"armored":        "no OpenPGP message",
		"detached":       "not an OpenPGP message with one signature",
		"two":            "not an OpenPGP message with one signature",
		"expires":        "has expired on 2024-12-31",
		"expired-key":    "has expired on 2024-12-31",
		"expired-subkey": "has expired on 2024-12-31",
		"revoked-key":    "is revoked",
		"revoked-subkey": "is revoked",

		"said-both":           "",
		"said-nothing":        "no statement on an image",
		"said-text":           "no statement on an image",
		"said-null":           `type "", not "atomic`,
		"said-type":           `type "cosign container image signature"`,
		"said-transport":      "in no registry",
		"said-tagless":        "tag and digest are empty",
		"said-other-digest":   "which has another digest",
		"said-unknown-member": `unknown object member name "until"`,
		"said-twice":          `duplicate object member name "type"`,
	} {
		o := w.options(t)
		var err error
		if o.Keys, err = signed.ReadKeys(w.files["gpg/"+name+"/key.asc"]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s, err := o.Verify(w.files["gpg/"+name+"/message"], w.image(t, "4.16.1"))
		if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && s.Key != o.Keys.Fingerprints()[0] {
			t.Errorf("%s: signed by %s", name, s.Key)
		}
		if o.AllowExpired = true; strings.Contains(why, "expired") {
			if s, err := o.Verify(w.files["gpg/"+name+"/message"], w.image(t, "4.16.1")); err != nil || s.Expired.IsZero() {
				t.Errorf("%s, allowed: %v, %v", name, s, err)
			}
		}
	}
	if _, err := signed.ReadKeys(w.files["gpg/ed/key.asc"]); err == nil || !strings.Contains(err.Error(), "unsupported") {
		t.Errorf("a key of Ed25519: %v", err)
	}
	both := append(bytes.Clone(w.files["gpg/ed/key.asc"]), w.files["gpg/plain/key.asc"]...)
	if k, err := signed.ReadKeys(both); err != nil || len(k.Fingerprints()) != 1 {
		t.Errorf("one of two keys can be used: %v, %v", k, err)
	}
}

// A message is read to its end: whichever byte is changed, whatever is cut off or added, it is refused, unless it still
// says and proves the same.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	o := w.options(t)
	for _, version := range []string{"4.16.1", "4.16.2"} {
		image, message := w.image(t, version), w.message(t, version, "1")
		for i := range message {
			if _, err := o.Verify(message[:i], image); err == nil {
				t.Errorf("%s: cut off at %d of %d", version, i, len(message))
			}
			damaged := bytes.Clone(message)
			damaged[i] ^= 0x10
			if s, err := o.Verify(damaged, image); err == nil && s.Reference.Tag != version+"-x86_64" {
				t.Errorf("%s: byte %d changed: %s", version, i, s.Reference)
			}
		}
		for what, more := range map[string][]byte{"a byte": {'x'}, "a NUL": {0}, "NULs": {0, 0, 0}, "the message again": message} {
			_, err := o.Verify(append(bytes.Clone(message), more...), image)
			if err == nil || !strings.Contains(err.Error(), "something follows") {
				t.Errorf("%s, and %s: %v", version, what, err)
			}
		}
	}
}

// A compressed packet in parts ends with its last part, which may be empty, and nothing follows that, nor what is
// compressed in it, whatever the length of the packet.
func TestPacketsInParts(t *testing.T) {
	w := newWorld(t)
	o, image := w.options(t), w.image(t, "4.16.1")
	for _, name := range []string{"plain", "zlib", "bzip2"} {
		var err error
		if o.Keys, err = signed.ReadKeys(w.files["gpg/"+name+"/key.asc"]); err != nil {
			t.Fatal(err)
		}
		message := w.files["gpg/"+name+"/message"]
		if message[0] != 0xa3 { // a compressed packet of the old format that goes to the end
			t.Fatalf("%s: %x", name, message[:2])
		}
		content := message[1:]
		const part = 128
		inParts := slices.Concat([]byte{0xc8, 224 + 7}, content[:part], []byte{255, 0, 0, 0, byte(len(content) - part)}, content[part:])
		if len(content)-part > 255 {
			inParts[2+part+3], inParts[2+part+4] = byte((len(content)-part)>>8), byte(len(content)-part)
		}
		aligned := slices.Concat([]byte{0xc8}, func() (parts []byte) {
			for rest := content; ; {
				size := 512
				for ; size > len(rest); size /= 2 {
				}
				if size == 0 {
					return append(parts, 0)
				}
				parts = append(append(parts, 224+byte(bits.Len(uint(size))-1)), rest[:size]...)
				rest = rest[size:]
			}
		}())
		for form, text := range map[string][]byte{"to the end": message, "in parts": inParts, "in parts, the last empty": aligned} {
			if _, err := o.Verify(text, image); err != nil {
				t.Errorf("%s, %s: %v", name, form, err)
			}
			_, err := o.Verify(append(bytes.Clone(text), 0), image)
			if err == nil {
				t.Errorf("%s, %s: a NUL behind it is accepted", name, form)
			}
		}
	}
}

// A signature of the future is not good.
func TestFuture(t *testing.T) {
	w := newWorld(t)
	o := w.options(t)
	o.Now, o.AllowExpired = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC), true
	for _, version := range []string{"4.16.1", "4.16.2"} {
		if _, err := o.Verify(w.message(t, version, "1"), w.image(t, version)); err == nil ||
			!strings.Contains(err.Error(), "which is in the future") || fault.ClassOf(err) != fault.Integrity {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// packed is a compressed packet with some content.
func packed(t testing.TB, content io.Reader) []byte {
	t.Helper()
	b := bytes.NewBuffer([]byte{0xa3, 1})
	z, err := flate.NewWriter(b, 9)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(z, content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// What is not a signature of the expected form is refused with a sentence.
func TestForms(t *testing.T) {
	w := newWorld(t)
	image, message := w.image(t, "4.16.1"), w.message(t, "4.16.1", "1")
	for why, text := range map[string][]byte{
		"no OpenPGP message: EOF":   {},
		"more than 16384 bytes":     make([]byte, 1<<20),
		"unpacks to more":           packed(t, io.LimitReader(zeros{}, 10<<20)),
		"compressed in it":          packed(t, bytes.NewReader(nil)),
		"not an OpenPGP message":    packed(t, bytes.NewReader(packed(t, bytes.NewReader(message)))),
		"no content that is signed": append(bytes.Clone(message[:15]), message[:15]...),
		"is signed (EOF)":           message[:15],
		"with one signature":        message[15:],
	} {
		if _, err := w.options(t).Verify(text, image); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// A server is asked until one signature is good or none is left; what it answers otherwise is reported.
func TestServer(t *testing.T) {
	w := newWorld(t)
	image := w.image(t, "4.16.1")
	at := "/signatures/sha256=" + image.Digest.Encoded() + "/signature-"
	bad := func(rw http.ResponseWriter, _ *http.Request) bool { _, _ = rw.Write([]byte("bad")); return true }
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
		why    string
		asked  int
		class  fault.Class
	}{
		{"good", nil, "", 1, 0},
		{"only bad ones", bad, "signature-10", 10, fault.Integrity},
		{"too large", func(rw http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "-1") {
				_, _ = rw.Write(make([]byte, 1<<20))
			} else {
				http.NotFound(rw, r)
			}
			return true
		}, "limit exceeded", 2, fault.Limit},
		{"refused", func(rw http.ResponseWriter, _ *http.Request) bool {
			http.Error(rw, "not for you", http.StatusForbidden)
			return true
		}, `status 403, text/plain; charset=utf-8: "not for you"`, 1, fault.Network},
		{"none", func(rw http.ResponseWriter, r *http.Request) bool { http.NotFound(rw, r); return true },
			"--ignore-release-signature", 1, fault.Input},
	} {
		w.asked, w.answer = nil, c.answer
		o := w.options(t)
		o.URL = strings.TrimSuffix(o.URL, "/") // the slash is added
		_, err := o.Find(t.Context(), image)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) ||
			fault.ClassOf(err) != c.class {
			t.Errorf("%s: class %d: %v", c.name, fault.ClassOf(err), err)
		}
		if len(w.asked) != c.asked || w.asked[0] != at+"1" {
			t.Errorf("%s: asked for %q", c.name, w.asked)
		}
	}
	o := w.options(t)
	for _, url := range []string{"no-url", "ftp://example.com/"} {
		o.URL = url
		if _, err := o.Find(t.Context(), image); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", url, err)
		}
	}
	o.URL = "http://127.0.0.1:1/"
	if _, err := o.Find(t.Context(), image); fault.ClassOf(err) != fault.Network {
		t.Errorf("unreachable: %v", err)
	}
}

// A file is found by its exact name, what is bad among the files is made up for by the server, and without a server
// there is none.
func TestStored(t *testing.T) {
	w := newWorld(t)
	image, message := w.image(t, "4.16.1"), w.message(t, "4.16.1", "1")
	end := "-sha256-" + image.Digest.Encoded()
	for _, c := range []struct {
		name string
		file *fstest.MapFile
		good bool
		why  string
	}{
		{"4.16.1-x86_64" + end, &fstest.MapFile{Data: message}, true, ""},
		{end, &fstest.MapFile{Data: message}, false, "it is the signature of 4.16.1-x86_64" + end},
		{"4.16.2-x86_64" + end, &fstest.MapFile{Data: message}, false, "it is the signature of 4.16.1"},
		{"4.16.1-x86_64" + end + ".bak", &fstest.MapFile{Data: message}, false, "no file TAG" + end},
		{"4.16.1-x86_64" + end, &fstest.MapFile{Data: []byte("x"), Mode: fs.ModeSymlink}, false, "no signature"},
		{"4.16.1-x86_64" + end, &fstest.MapFile{Data: make([]byte, 1<<20)}, false, "more than 16384 bytes"},
	} {
		w.asked = nil
		o := w.options(t)
		client := o.Client
		o.Stored, o.Client = fstest.MapFS{c.name: c.file}, nil
		_, err := o.Find(t.Context(), image)
		if (err == nil) != c.good || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.name, err)
		}
		o.Client = client
		if _, err := o.Find(t.Context(), image); err != nil || len(w.asked) != 0 == c.good {
			t.Errorf("%s: %v, asked for %q", c.name, err, w.asked)
		}
	}
	o := w.options(t)
	o.Stored, o.Client = fstest.MapFS{}, nil
	if _, err := o.Find(t.Context(), image); err == nil || fault.ClassOf(err) != fault.Input {
		t.Errorf("nothing stored: %v", err)
	}
	if _, err := o.Find(t.Context(), ref(t, repository+":4.16.1-x86_64")); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("without a digest: %v", err)
	}
}

// Keys are armored, and at least one can be used.
func TestReadKeys(t *testing.T) {
	w := newWorld(t)
	release, other := w.files["keys/release.asc"], w.files["keys/other.asc"]
	k, err := signed.ReadKeys(append(append([]byte("A key:\n\n"), release...), other...))
	if err != nil || len(k.Fingerprints()) != 2 {
		t.Errorf("%v, %v", k, err)
	}
	for name, text := range map[string][]byte{"empty": w.files["keys/empty.asc"], "no keys": w.files["fixture.json"],
		"cut off": release[:len(release)/2], "damaged": bytes.Replace(release, []byte("\nxsB"), []byte("\nAAA"), 1),
		"secret": bytes.ReplaceAll(release, []byte("PUBLIC"), []byte("PRIVATE"))} {
		if k, err := signed.ReadKeys(text); err == nil || fault.ClassOf(err) == 0 {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	w := newWorld(f)
	o := w.options(f)
	image := w.image(f, "4.16.2")
	for name, text := range w.files {
		if strings.Contains(name, "/signature-") || strings.HasSuffix(name, "/message") {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := o.Verify(text, image)
		if err == nil && s.Reference.Name() != repository+":4.16.2-x86_64" {
			t.Errorf("accepted: %s", s.Reference)
		}
		if err != nil && fault.ClassOf(err) != fault.Integrity {
			t.Errorf("class %d: %v", fault.ClassOf(err), err)
		}
	})
}

func FuzzReadKeys(f *testing.F) {
	w := newWorld(f)
	for name, text := range w.files {
		if strings.HasSuffix(name, ".asc") {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if k, err := signed.ReadKeys(text); err == nil && len(k.Fingerprints()) == 0 {
			t.Error("no keys")
		}
	})
}
