package registry

import "strings"

// challenge is one way to authenticate that a server offers (RFC 9110, section 11.6.1).
type challenge struct {
	scheme string // in lower case
	params map[string]string
}

// maxChallenges and maxChallengeText bound what is read of the headers.
const (
	maxChallenges    = 8
	maxChallengeText = 8 << 10
)

// parseChallenges reads WWW-Authenticate headers. A header is read up to the first part that is invalid.
func parseChallenges(headers []string) (out []challenge) {
	for _, h := range headers {
		if len(h) > maxChallengeText {
			continue
		}
		p := &challengeParser{rest: h}
		for len(out) < maxChallenges {
			c, ok := p.challenge()
			if !ok {
				break
			}
			out = append(out, c)
		}
	}
	return out
}

type challengeParser struct {
	rest string
	next string // the scheme of the next challenge, which has been read
}

// challenge reads a scheme and the parameters up to the next one.
func (p *challengeParser) challenge() (challenge, bool) {
	scheme := p.next
	if p.next = ""; scheme == "" {
		scheme = p.token()
	}
	if scheme == "" {
		return challenge{}, false
	}
	c := challenge{scheme: strings.ToLower(scheme), params: map[string]string{}}
	for {
		name := p.token()
		if name == "" {
			return c, true
		}
		if rest := strings.TrimLeft(p.rest, " \t"); !strings.HasPrefix(rest, "=") {
			p.next = name
			return c, true
		} else {
			p.rest = strings.TrimLeft(rest[1:], " \t")
		}
		c.params[strings.ToLower(name)] = p.value()
	}
}

// token reads a word, after spaces and commas.
func (p *challengeParser) token() string {
	p.rest = strings.TrimLeft(p.rest, " \t,")
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// value reads a word or a quoted text.
func (p *challengeParser) value() string {
	if !strings.HasPrefix(p.rest, `"`) {
		return p.token()
	}
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		switch c := p.rest[i]; c {
		case '"':
			p.rest = p.rest[i+1:]
			return b.String()
		case '\\':
			if i++; i < len(p.rest) {
				b.WriteByte(p.rest[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	p.rest = ""
	return ""
}
