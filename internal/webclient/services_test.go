package webclient

import (
	"strings"
	"testing"
)

// A token goes over https, or to this machine, and errors do not show what may be secret.
func TestParseServiceURL(t *testing.T) {
	for text, message := range map[string]string{
		"https://example.com/path?a=b":       "",
		"http://localhost:8080":              "",
		"http://127.0.0.1:8080/path":         "",
		"http://[::1]":                       "",
		"http://example.com/path?secret":     `"http://example.com/path" is not encrypted`,
		"http://127.0.0.1.example.com":       "is not encrypted",
		"https://user:secret@example.com":    `"https://example.com", expected https://HOST`,
		"ftp://example.com":                  "expected https://HOST",
		"example.com":                        "expected https://HOST",
		"https://":                           "expected https://HOST",
		"https://example.com/secret%zz/?a=b": "it is no URL",
	} {
		_, err := ParseServiceURL(text)
		if message == "" && err != nil || message != "" && (err == nil || !strings.Contains(err.Error(), message)) {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has a secret: %v", err)
		}
	}
}
