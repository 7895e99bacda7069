package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Token removes an identity token (JWT), or another secret, and what it consists of from texts of a server that has it:
// its parts and pieces of them, also encoded once more, and the values that it claims. Its zero value removes nothing.
type Token struct {
	pieces map[string]bool // of the lengths rawPiece and claimPiece
	values []string        // claims that are shorter than a piece
}

const (
	// rawPiece is how many characters in a row are taken for a piece of the token. They hardly occur in words.
	rawPiece = 8
	// claimPiece is how many of a value that it claims are. Those are words and addresses.
	claimPiece = 16
	// minClaim is the length of the shortest value that is removed.
	minClaim = 4
	// maxToken bounds what is looked for.
	maxToken = 64 << 10
)

// NewToken returns what removes a token.
func NewToken(token string) Token {
	t := Token{pieces: map[string]bool{}}
	token = token[:min(len(token), maxToken)]
	raw := []string{token, strings.NewReplacer("-", "+", "_", "/").Replace(token), hex.EncodeToString([]byte(token)),
		base64.StdEncoding.EncodeToString([]byte(token))}
	parts := strings.Split(token, ".")
	for n, part := range parts {
		plain, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
		if err != nil {
			continue
		}
		raw = append(raw, hex.EncodeToString(plain))
		var claims any
		if n < 2 && json.Unmarshal(plain, &claims) == nil {
			t.addClaims(claims)
		}
	}
	for _, text := range raw {
		t.add(text, rawPiece)
	}
	return t
}

// add adds the pieces of a text, or all of it if it is shorter than one.
func (t *Token) add(text string, size int) {
	text = lower(text)
	if len(text) < size {
		if len(text) >= minClaim {
			t.values = append(t.values, text)
		}
		return
	}
	for i := range len(text) - size + 1 {
		t.pieces[text[i:i+size]] = true
	}
}

// addClaims adds the values of claims. The audience is no secret, but a word of messages.
func (t *Token) addClaims(value any) {
	switch v := value.(type) {
	case string:
		t.add(v, claimPiece)
	case []any:
		for _, e := range v {
			t.addClaims(e)
		}
	case map[string]any:
		for name, e := range v {
			if name != "aud" && name != "alg" && name != "typ" {
				t.addClaims(e)
			}
		}
	}
}

// lower is strings.ToLower for ASCII, which keeps the length.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Text returns a text without the token.
func (t Token) Text(text string) string {
	secret, folded := make([]bool, len(text)), lower(text)
	found := false
	mark := func(from, to int) {
		found = true
		for i := from; i < to; i++ {
			secret[i] = true
		}
	}
	for i := range folded {
		for _, size := range []int{rawPiece, claimPiece} {
			if i+size <= len(folded) && t.pieces[folded[i:i+size]] {
				mark(i, i+size)
			}
		}
	}
	for _, value := range t.values {
		for at := 0; ; {
			i := strings.Index(folded[at:], value)
			if i < 0 {
				break
			}
			at += i
			end := at + len(value)
			if (at == 0 || !isWord(folded[at-1])) && (end == len(folded) || !isWord(folded[end])) {
				mark(at, end)
			}
			at++
		}
	}
	if !found {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !secret[i]:
			b.WriteByte(text[i])
		case i == 0 || !secret[i-1]:
			b.WriteString(hidden)
		}
	}
	return b.String()
}

// In reports whether a text has a piece of the token itself, not only of what it claims.
func (t Token) In(text string) bool {
	folded := lower(text)
	for i := range max(len(folded)-rawPiece+1, 0) {
		if t.pieces[folded[i:i+rawPiece]] {
			return true
		}
	}
	return false
}

func isWord(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' }

// Error is like [Error], without the token.
func (t Token) Error(err error) error {
	if err == nil {
		return nil
	}
	if text := t.Text(err.Error()); text != err.Error() {
		return Error(&redacted{text: text, err: err})
	}
	return Error(err)
}
