package signature_test

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"testing"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
)

func TestGeneratedKeys(t *testing.T) {
	for _, a := range signature.Algorithms() {
		private, public, err := a.GenerateKey([]byte("secret"))
		if err != nil {
			t.Fatal(err)
		}
		key, err := signature.ParseKey(private, []byte("secret"), false)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := signature.ParsePublicKeys(public)
		if err != nil || len(keys) != 1 {
			t.Fatal(keys, err)
		}
		if keys[0].Fingerprint() != key.Public().Fingerprint() {
			t.Errorf("%s: the two keys do not belong to each other", a)
		}
		if keys[0].TakenByAll() != (a == signature.ECDSAP256) {
			t.Errorf("%s: TakenByAll %v", a, keys[0].TakenByAll())
		}
	}
	text := supplytest.Vectors(t)["keys"]["p256.key"]
	if _, err := signature.ParseKey(text, []byte("wrong"), false); !errors.Is(err, signature.ErrPassphrase) {
		t.Error(err)
	}
	if _, _, err := signature.Algorithm("dsa").GenerateKey(nil); err == nil {
		t.Error("a key of an unknown kind")
	}
}

// Keys that cosign encrypted open.
func TestEncryptedKeys(t *testing.T) {
	for _, name := range []string{"p256", "ed25519"} {
		text := supplytest.Vectors(t)["keys"][name+".key"]
		key, err := signature.ParseKey(text, []byte(supplytest.Passphrase), false)
		if err != nil || !signature.IsEncrypted(text) {
			t.Fatal(err)
		}
		if got, want := key.Public().Fingerprint(), publicKey(t, name)[0].Fingerprint(); got != want {
			t.Errorf("%s: key %s, expected %s", name, got, want)
		}
	}
}

func TestPlainKeysNeedConsent(t *testing.T) {
	text := supplytest.Vectors(t)["keys"]["p256.pkcs8.pem"]
	if _, err := signature.ParseKey(text, nil, false); !errors.Is(err, signature.ErrPlainKey) {
		t.Error(err)
	}
	if _, err := signature.ParseKey(text, nil, true); err != nil {
		t.Error(err)
	}
}

// Parameters that take much memory are refused before they are used.
func TestKeyThatNeedsMuchMemory(t *testing.T) {
	block, _ := pem.Decode(supplytest.Vectors(t)["keys"]["p256.key"])
	for _, c := range []struct {
		name  string
		value float64
	}{{"N", 1 << 30}, {"r", 1 << 20}, {"p", 1 << 20}, {"N", 1 << 14}} {
		var sealed map[string]any
		if err := json.Unmarshal(block.Bytes, &sealed); err != nil {
			t.Fatal(err)
		}
		sealed["kdf"].(map[string]any)["params"].(map[string]any)[c.name] = c.value
		text, err := json.Marshal(sealed)
		if err != nil {
			t.Fatal(err)
		}
		text = pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: text})
		if _, err := signature.ParseKey(text, []byte(supplytest.Passphrase), false); err == nil {
			t.Errorf("%s = %v is accepted", c.name, c.value)
		}
	}
}

func TestKeysThatAreNone(t *testing.T) {
	keys := supplytest.Vectors(t)["keys"]
	for name, text := range map[string][]byte{
		"empty": nil, "text": []byte("key"), "private": keys["p256.pkcs8.pem"],
		"something after it": append([]byte(string(keys["p256.pub"])), "x"...),
		"certificate":        keys["pki-ca.pem"],
	} {
		if got, err := signature.ParsePublicKeys(text); err == nil {
			t.Errorf("%s: %d keys", name, len(got))
		}
	}
	for name, text := range map[string][]byte{
		"empty": nil, "public": keys["p256.pub"],
		"two keys": append([]byte(string(keys["p256.key"])), keys["p256.key"]...),
	} {
		if _, err := signature.ParseKey(text, []byte(supplytest.Passphrase), true); err == nil {
			t.Errorf("%s: a key", name)
		}
	}
}
