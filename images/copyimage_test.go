package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

var (
	everything = referrers.Kinds{Tags: true, Referrers: true}
	plain      = registries.Config{SkipTLSVerify: ptr(true), PlainHTTP: true}
)

func ptr[T any](v T) *T { return &v }

// anyImage is a client without a policy of the machine.
func anyImage(t testing.TB) *Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, []byte(`{"default":[{"type":"insecureAcceptAnything"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: plain}, PolicyFile: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func copyAll(t testing.TB, c *Client, from, to string) CopyResult {
	t.Helper()
	d, err := BuiltIn().Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Copy(t.Context(), from, d, everything, CopyOptions{Options: registries.Options{Registry: plain}})
	if err != nil {
		t.Fatalf("%s to %s: %v", from, to, err)
	}
	return r
}

// hanging returns the digests of all manifests of an image and of what is attached to it, with their tags.
func hanging(t testing.TB, c *Client, name string) []string {
	t.Helper()
	r, err := c.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	image, err := r.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := referrers.ReadTree(t.Context(), r, image, store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	var visit func(*referrers.Tree)
	visit = func(n *referrers.Tree) {
		all = append(all, n.Tag+" "+n.Digest.String())
		for _, p := range n.Problems {
			all = append(all, "problem: "+p.Error())
		}
		for _, below := range slices.Concat(n.Attached, n.Instances) {
			visit(below)
		}
	}
	visit(tree)
	slices.Sort(all)
	return all
}

// Whatever is attached to an image arrives byte for byte, from a layout to a registry, an archive, another registry and
// a layout, with the referrers API and without. A second copy sends nothing.
func TestCopyKeepsAllThatHangsOnAnImage(t *testing.T) {
	for name, tag := range map[string]string{"sig-cimage-index-all": "multi", "bundle-attested-all": "v1",
		"att-min-spdx": "v1", "sig-cimage-two-signers": "v1", "cosign-attest-bundles": "v1"} {
		t.Run(name, func(t *testing.T) {
			c := anyImage(t)
			one, two, dir := testregistry.New(t), testregistry.New(t), t.TempDir()
			one.Separate(false)
			two.Separate(false)
			two.SetReferrers(testregistry.Referrers{API: true, Header: true, Page: 1})
			from := "oci:" + supplytest.Unpack(t, name) + ":" + tag
			want := hanging(t, c, from)
			if len(want) < 2 || strings.Contains(strings.Join(want, ""), "problem") {
				t.Fatalf("the vector has %v", want)
			}
			for _, to := range []string{"docker://" + one.Host() + "/a/b:v1", "oci-archive:" + dir + "/x.tar:v1",
				"docker://" + two.Host() + "/c/d:v1", "oci:" + dir + "/layout:v1"} {
				r := copyAll(t, c, from, to)
				if got := hanging(t, c, to); !slices.Equal(got, want) {
					t.Errorf("%s has %v instead of %v", to, got, want)
				}
				if len(r.Copied) == 0 || len(r.Problems) > 0 {
					t.Errorf("%s: %+v", to, r.Account)
				}
				from = to
			}
			one.Forget()
			r := copyAll(t, c, "oci:"+dir+"/layout:v1", "docker://"+one.Host()+"/a/b:v1")
			if n := one.Count("PUT ") + one.Count("POST "); n > 0 {
				t.Errorf("a second copy writes: %v", one.Requests())
			}
			for _, a := range r.Copied {
				if !a.There {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}

// Signatures that the destination has stay, and those that it does not have are added.
func TestCopyAddsSignatures(t *testing.T) {
	c, r := anyImage(t), testregistry.New(t)
	to := "docker://" + r.Host() + "/a/b:v1"
	image := "00a8352e405c0289f552a59e94682534c793ffa121cd93de0d4c13b5de3f99a8"
	layers := func() (n int) {
		return strings.Count(string(r.Manifest("a/b", "sha256-"+image+".sig")), "application/vnd.dev.cosign.simple")
	}
	for _, step := range []struct {
		vector string
		want   int
		added  bool
	}{{"sig-cimage-p256", 1, false}, {"sig-cimage-rsa2048", 2, true}, {"sig-cimage-p256", 2, false},
		{"sig-cimage-rsa2048", 2, false}, {"sig-cimage-ed25519", 3, true}} {
		done := copyAll(t, c, "oci:"+supplytest.Unpack(t, step.vector)+":v1", to)
		if got := layers(); got != step.want || len(done.Copied) != 1 || done.Copied[0].Added != step.added {
			t.Errorf("%s: %d signatures instead of %d, %+v", step.vector, got, step.want, done.Copied)
		}
	}
}

// attaching is an attachment of a test.
type attaching func(ctx context.Context, to store.Writer, image store.Image) error

func (f attaching) Attach(ctx context.Context, to store.Writer, image store.Image) error {
	return f(ctx, to, image)
}

// Attachments are written beside the image at every destination, under its name there, and before its tags.
func TestAttachments(t *testing.T) {
	r, dir := testregistry.New(t), t.TempDir()
	r.Separate(false)
	src := packages(t, "a")
	old := filepath.Join(dir, "old")
	testregistry.Image{Layers: []map[string]string{{"x": "y"}}}.WriteLayout(t, old, "before")
	dests := []transport.Destination{to(transport.Docker, "", r.Host()+"/a/b:v1"), to(transport.Docker, "", r.Host()+"/a/b:v2"),
		to(transport.OCI, filepath.Join(dir, "new"), "v1"), to(transport.OCI, filepath.Join(dir, "new"), "v2"),
		to(transport.OCI, old, "registry.example.com/a/b:v1"),
		to(transport.OCIArchive, filepath.Join(dir, "x.tar"), "")}
	var names []string
	a := attaching(func(ctx context.Context, to store.Writer, image store.Image) error {
		names = append(names, image.Name)
		if _, _, err := to.Manifest(ctx, image.Top.Digest.String()); err != nil {
			return fmt.Errorf("the image is not there: %w", err)
		}
		if len(r.Tags("a/b")) > 0 {
			return errors.New("the tag is written")
		}
		_, err := referrers.Attach(ctx, to, image.Top, referrers.Artifact{Type: "application/x-test",
			Content: []byte("content")})
		return err
	})
	o := CopyOptions{Options: registries.Options{Registry: plain}, Attachments: []store.Attachment{a}}
	// Without a list of referrers there would be a fallback tag before the image's own.
	r.SetReferrers(testregistry.Referrers{API: true, Header: true})
	results, err := copyOf(t.Context(), of(t, src), dests, o)
	if err != nil || len(results) != len(dests) {
		t.Fatal(results, err)
	}
	slices.Sort(names)
	want := []string{"", "", r.Host() + "/a/b:v1", r.Host() + "/a/b:v2", "registry.example.com/a/b:v1"}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("names %q instead of %q", names, want)
	}
	for _, d := range dests {
		if got := hanging(t, anyImage(t), d.String()); len(got) != 2 {
			t.Errorf("%s has %v", d, got)
		}
	}
}

// If an attachment fails, no tag points to the image, and no file is there.
func TestAttachmentFails(t *testing.T) {
	r, dir := testregistry.New(t), t.TempDir()
	failing := attaching(func(context.Context, store.Writer, store.Image) error { return io.ErrNoProgress })
	for _, d := range []transport.Destination{to(transport.Docker, "", r.Host()+"/a/b:v1"), to(transport.OCI, filepath.Join(dir, "new"), "v1"),
		to(transport.OCIArchive, filepath.Join(dir, "x.tar"), "")} {
		_, err := copyOf(t.Context(), of(t, packages(t, "a")), []transport.Destination{d}, CopyOptions{Options: registries.Options{Registry: plain},
			Attachments: []store.Attachment{failing}})
		if !errors.Is(err, io.ErrNoProgress) || !strings.Contains(err.Error(), d.String()) {
			t.Errorf("%s: %v", d, err)
		}
	}
	left, err := os.ReadDir(dir)
	if len(r.Tags("a/b"))+len(left) > 0 || err != nil {
		t.Errorf("tags %v, files %v", r.Tags("a/b"), left)
	}
}

// Places that keep no attachments are refused before any request and any file.
func TestAttachmentsAreRefused(t *testing.T) {
	r, dir := testregistry.New(t), t.TempDir()
	never := attaching(func(context.Context, store.Writer, store.Image) error {
		t.Error("called")
		return nil
	})
	for _, bad := range []transport.Destination{to(transport.DockerArchive, filepath.Join(dir, "x.tar"), ""),
		to(transport.Directory, filepath.Join(dir, "x"), ""), to(transport.Store, "", "localhost/x:v1")} {
		dests := []transport.Destination{to(transport.Docker, "", r.Host()+"/a/b:v1"), bad}
		o := CopyOptions{Options: registries.Options{Registry: plain}, Attachments: []store.Attachment{never}}
		_, err := copyOf(t.Context(), of(t, packages(t, "a")), dests, o)
		_, checked := o.CheckPush(t.Context(), dests)
		_, opened := o.OpenWriter(t.Context(), bad)
		_, copied := anyImage(t).Copy(t.Context(), r.Host()+"/a/b:v1", bad, everything, o)
		for what, err := range map[string]error{"Copy": err, "CheckPush": checked, "OpenWriter": opened,
			"Client.Copy": copied} {
			if !errors.Is(err, transport.ErrNoAttachments) || !strings.Contains(err.Error(), bad.String()) {
				t.Errorf("%s to %s: %v", what, bad, err)
			}
		}
	}
	if left, err := os.ReadDir(dir); len(left)+len(r.Requests()) > 0 || err != nil {
		t.Errorf("%v %v", left, r.Requests())
	}
	for _, name := range []string{"dir:" + dir, "docker-archive:" + dir + "/x.tar", "containers-storage:x"} {
		asked, err := transports.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := transports.CheckAttached(asked); !errors.Is(err, transport.ErrNoAttachments) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An error of the registry about a list is an error of the copy, and no image without signatures.
func TestCopyWithoutAListFails(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		r := testregistry.New(t)
		r.AddImage(t, "a/b", "v1", testregistry.Image{Layers: []map[string]string{{"x": "y"}}})
		r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
			if strings.Contains(q.URL.Path, "/referrers/") {
				w.WriteHeader(status)
				return true
			}
			return false
		})
		d := to(transport.OCI, filepath.Join(t.TempDir(), "x"), "v1")
		_, err := anyImage(t).Copy(t.Context(), r.Host()+"/a/b:v1", d, everything, CopyOptions{Options: registries.Options{Registry: plain}})
		if !errors.Is(err, ErrRegistry) {
			t.Errorf("%d: %v", status, err)
		}
		if _, err := os.Lstat(d.Path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// An image that is a referrer itself is listed when it is copied.
func TestCopyOfAReferrer(t *testing.T) {
	c, r := anyImage(t), testregistry.New(t)
	layout := supplytest.Unpack(t, "bundle-min-p256")
	from, err := c.Open(t.Context(), "oci:"+layout+":v1")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	listed, err := from.Referrers(t.Context(), from.Top.Digest, nil)
	if err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	copyAll(t, c, "oci:"+layout+":v1", "docker://"+r.Host()+"/a/b:v1")
	r2 := testregistry.New(t)
	to := "docker://" + r2.Host() + "/a/b:bundle"
	copyAll(t, c, r.Host()+"/a/b@"+listed[0].Digest.String(), to)
	tag := strings.Replace(from.Top.Digest.String(), ":", "-", 1)
	if list := string(r2.Manifest("a/b", tag)); !strings.Contains(list, listed[0].Digest.String()) {
		t.Errorf("the fallback tag is %s", list)
	}
}

// A writer of an image that exists adds to it, wherever it is.
func TestOpenWriter(t *testing.T) {
	r, dir := testregistry.New(t), t.TempDir()
	c := anyImage(t)
	from := "oci:" + supplytest.Unpack(t, "multi-unsigned") + ":multi"
	dests := map[string]transport.Destination{"registry": to(transport.Docker, "", r.Host()+"/a/b:v1"),
		"layout": to(transport.OCI, filepath.Join(dir, "layout"), "v1"), "archive": to(transport.OCIArchive, filepath.Join(dir, "x.tar"), "v1")}
	for _, kind := range slices.Sorted(maps.Keys(dests)) {
		d := dests[kind]
		copyAll(t, c, from, d.String())
		w, err := CopyOptions{Options: registries.Options{Registry: plain}}.OpenWriter(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Image.Instances) != 2 || w.Image.Instances[1].Platform.Architecture != "arm64" {
			t.Errorf("%s: %+v", kind, w.Image)
		}
		var want []digest.Digest
		for _, s := range w.Image.Subjects() {
			made, err := referrers.Attach(t.Context(), w, s, referrers.Artifact{Type: "application/x-test",
				Content: []byte(s.Digest)})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, made.Digest)
		}
		if err := errors.Join(w.Commit(t.Context()), w.Discard()); err != nil {
			t.Fatal(err)
		}
		at, err := c.Open(t.Context(), d.String())
		if err != nil {
			t.Fatal(err)
		}
		image, err := at.Entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range image.Subjects() {
			found, err := at.Referrers(t.Context(), s.Digest, nil)
			same := func(l v1.Descriptor) bool { return l.Digest == want[i] }
			if err != nil || len(found) != 1 || !same(found[0]) {
				t.Errorf("%s: %v %v", kind, found, err)
			}
		}
		if err := at.Close(); err != nil {
			t.Error(err)
		}
	}
}
