package sigstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// bundle is a Sigstore bundle as JSON.
type bundle map[string]any

// clone returns a bundle that can be changed.
func (b bundle) clone() (out bundle) {
	must(0, json.Unmarshal(must(json.Marshal(b)), &out))
	return out
}

// material is what a bundle has to verify its signature with.
func (b bundle) material() map[string]any { return b["verificationMaterial"].(map[string]any) }

// timestamps is the part of the material with timestamps.
func (b bundle) timestamps() map[string]any {
	return b.material()["timestampVerificationData"].(map[string]any)
}

func (b bundle) envelope() map[string]any { return b["dsseEnvelope"].(map[string]any) }

// statement is the statement that the bundle has the signature of.
func (b bundle) statement() []byte {
	return must(base64.StdEncoding.DecodeString(b.envelope()["payload"].(string)))
}

// state changes the statement.
func (b bundle) state(statement []byte) {
	b.envelope()["payload"] = base64.StdEncoding.EncodeToString(statement)
}

// entry is the entry of the log.
func (b bundle) entry() map[string]any {
	return b.material()["tlogEntries"].([]any)[0].(map[string]any)
}

// proof proves that the entry is in the log.
func (b bundle) proof() map[string]any { return b.entry()["inclusionProof"].(map[string]any) }

// split returns the parts of an image's name with a digest.
func split(image string) (host, repository, digest string) {
	image, digest, _ = strings.Cut(image, "@")
	host, repository, _ = strings.Cut(image, "/")
	return host, repository, digest
}

// bundles returns the bundles that hang on an image, in a registry with the referrers API.
func bundles(t *testing.T, image string) (out []bundle) {
	t.Helper()
	for _, m := range referrers(t, image) {
		host, repository, _ := split(image)
		layer := m["layers"].([]any)[0].(map[string]any)
		var b bundle
		ask(t, http.MethodGet, "http://"+host+"/v2/"+repository+"/blobs/"+layer["digest"].(string), "", nil, &b)
		out = append(out, b)
	}
	return out
}

// referrers returns the manifests that hang on an image.
func referrers(t *testing.T, image string) (out []map[string]any) {
	t.Helper()
	host, repository, digest := split(image)
	base := "http://" + host + "/v2/" + repository
	var index struct{ Manifests []struct{ Digest string } }
	ask(t, http.MethodGet, base+"/referrers/"+digest, "", nil, &index)
	for _, d := range index.Manifests {
		var m map[string]any
		ask(t, http.MethodGet, base+"/manifests/"+d.Digest, "", nil, &m)
		out = append(out, m)
	}
	return out
}

// hang hangs a bundle on an image, with a manifest like that of another bundle.
func hang(t *testing.T, image string, b bundle, like map[string]any) {
	t.Helper()
	host, repository, digest := split(image)
	base := "http://" + host + "/v2/" + repository
	var m map[string]any
	must(0, json.Unmarshal(must(json.Marshal(like)), &m))
	upload := func(content []byte) (digest string, size int) {
		digest = fmt.Sprintf("sha256:%x", sha256.Sum256(content))
		ask(t, http.MethodPost, base+"/blobs/uploads/?digest="+url.QueryEscape(digest), "application/octet-stream", content, nil)
		return digest, len(content)
	}
	layer := m["layers"].([]any)[0].(map[string]any)
	layer["digest"], layer["size"] = upload(must(json.Marshal(b)))
	upload([]byte("{}"))
	m["subject"].(map[string]any)["digest"] = digest
	manifest := must(json.Marshal(m))
	ask(t, http.MethodPut, fmt.Sprintf("%s/manifests/sha256:%x", base, sha256.Sum256(manifest)), m["mediaType"].(string), manifest, nil)
}

// ask sends a request to a registry, and decodes the answer.
func ask(t *testing.T, method, url, kind string, body []byte, into any) {
	t.Helper()
	q := must(http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body)))
	if kind != "" {
		q.Header.Set("Content-Type", kind)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s %v\n%s", method, url, answer.Status, err, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v\n%s", url, err, text)
		}
	}
}
