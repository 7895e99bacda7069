package images

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

func TestPolicies(t *testing.T) {
	reg := testregistry.New(t)
	put(reg, "a/b", "v1", simple(t, "x"))
	key := filepath.Join(t.TempDir(), "key.gpg")
	write(t, key, "no key")
	layout := "oci:" + filepath.Join(t.TempDir(), "layout")
	mustCopy(t, simple(t, "x"), layout)
	signed := fmt.Sprintf(`{"default":[{"type":"signedBy","keyType":"GPGKeys","keyPath":%q}]}`, key)
	for name, c := range map[string]struct {
		policy, text    string
		remote, onLocal bool
	}{
		"accept":       {`{"default":[{"type":"insecureAcceptAnything"}]}`, "", true, true},
		"reject":       {`{"default":[{"type":"reject"}]}`, "rejected", false, false},
		"by transport": {`{"default":[{"type":"reject"}],"transports":{"oci":{"":[{"type":"insecureAcceptAnything"}]}}}`, "rejected", false, true},
		"by repository": {`{"default":[{"type":"reject"}],"transports":{"docker":{"` + reg.Host() +
			`/a":[{"type":"insecureAcceptAnything"}]}}}`, "rejected", true, false},
		"wants signatures": {signed, "signature was required", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "policy.json")
			write(t, file, c.policy)
			yes := insecure()
			for from, ok := range map[string]bool{"docker://" + reg.Host() + "/a/b:v1": c.remote, layout: c.onLocal} {
				_, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: yes}, PolicyFile: file}), from)
				if ok && err != nil || !ok && (!errors.Is(err, trust.ErrPolicy) || !strings.Contains(err.Error(), c.text)) {
					t.Errorf("%s: got %v", from, err)
				}
			}
			// The one in the place where the containers tools look is enforced too.
			t.Setenv("CONTAINERS_POLICY_JSON", file)
			if _, err := read(t.Context(), quick(t, ClientOptions{Options: registries.Options{Registry: yes}}),
				reg.Host()+"/a/b:v1"); (err == nil) != c.remote {
				t.Errorf("the system's policy: got %v", err)
			}
		})
	}
}

func TestPoliciesThatCannotBeUnderstood(t *testing.T) {
	layout := "oci:" + filepath.Join(t.TempDir(), "layout")
	mustCopy(t, simple(t, "x"), layout)
	open := func(o ClientOptions) error {
		_, err := quick(t, o).Image(t.Context(), layout, v1.Platform{})
		return err
	}
	file := filepath.Join(t.TempDir(), "policy.json")
	for name, text := range map[string]string{
		"empty":         "",
		"not JSON":      "{",
		"no default":    "{}",
		"duplicate key": `{"default":[{"type":"reject"}],"default":[{"type":"insecureAcceptAnything"}]}`,
		"unknown type":  `{"default":[{"type":"hope"}]}`,
		"unknown field": `{"default":[{"type":"reject"}],"defualt":[]}`,
	} {
		write(t, file, text)
		for _, o := range []ClientOptions{{PolicyFile: file}, {}} {
			if o.PolicyFile == "" {
				t.Setenv("CONTAINERS_POLICY_JSON", file)
			}
			if err := open(o); !errors.Is(err, trust.ErrPolicy) || !strings.Contains(err.Error(), file) {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	if err := open(ClientOptions{PolicyFile: file + "x"}); !errors.Is(err, trust.ErrPolicy) || !strings.Contains(err.Error(),
		file+"x") {
		t.Errorf("a missing policy that is named: %v", err)
	}
}

// A client that was given nothing that evaluates policies does not pass over one that is there.
func TestPoliciesAreNotPassedOver(t *testing.T) {
	layout := "oci:" + filepath.Join(t.TempDir(), "layout")
	mustCopy(t, simple(t, "x"), layout)
	file := filepath.Join(t.TempDir(), "policy.json")
	write(t, file, `{"default":[{"type":"insecureAcceptAnything"}]}`)
	t.Setenv("CONTAINERS_POLICY_JSON", file)
	for want, o := range map[bool]ClientOptions{true: {NoPolicy: true}, false: {}} {
		c, err := NewClient(o)
		if err != nil {
			t.Fatal(err)
		}
		src, err := c.Open(t.Context(), layout)
		var about *trust.PolicyFileError
		if (err == nil) != want || err != nil && (!errors.As(err, &about) || about.File != file ||
			!strings.Contains(err.Error(), "NoPolicy: true") || !strings.Contains(err.Error(), "policy.Read")) {
			t.Errorf("%+v: %v", o, err)
		}
		if err == nil {
			err = src.Close()
		}
		if err := errors.Join(err, c.Close()); want && err != nil {
			t.Error(err)
		}
	}
}
