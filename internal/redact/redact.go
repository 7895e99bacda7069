// Package redact removes credentials from texts that leave the program: messages, answers and reports. Content that a
// user gave, such as a catalog, is no such text.
package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// Error returns the error with credentials removed from its text. errors.Is and errors.As still find the errors that it
// wraps.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if _, done := err.(*redacted); done {
		return err
	}
	text := err.Error()
	clean := Text(text)
	if clean == text {
		return err
	}
	return &redacted{text: clean, err: err}
}

type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }

// The parts of patterns: what stands around a value, in plain text, in quoted or escaped JSON, and encoded for URLs.
const (
	// name of a parameter, header or member, such as password, X-Amz-Signature or client_secret.
	password = `(?:pass(?:word|wd|phrase|code)|pwd)`
	secret   = `(?:secret|credentials?|token|api[-_]?key|access[-_]?key(?:id)?|private[-_]?key|signature)`
	headers  = `(?:(?:proxy-)?authorization|x-registry-(?:auth|config)|(?:set-)?cookie|x-api-key)`
	// isValue separates a name from its value, with the quotes of both.
	isValue = `(?:\\*["'])?\s*(?:[:=]|%3[ad])\s*`
	// value ends with the quote that it began with, or with what ends a word.
	value = `(?:"(?:[^"\\]|\\.)*"|\\+"[^"\\]*\\+"|'[^']*'|[^\s"'&,;\\)}\]>]+)`
)

var (
	// ://USER:PASSWORD@HOST, also without a password: tokens are used so.
	inURL = lazyregexp.New(`(?i)(:(?://|%2f%2f))((?:[^/\s"'<>\\%]|%[0-9a-f]{2})*)(@|%40)([a-z0-9]+:)?`)
	// a class of characters, with which the pattern of a URL goes on after ://.
	class = lazyregexp.New(`^[(?:]*\[[^\]]*(?:a-z|A-Z|0-9)`)
	// USER:PASSWORD@HOST in a name without a scheme; not TAG@DIGEST.
	inName = lazyregexp.New(`(^|[\s"'=(\[{<>,;|\\])([^\s"'=(\[{<>,;|\\/@:]+)(:|%3[Aa])([^\s"'<>,;|\\]*)(@|%40)([^\s"'<>,;|\\]*)`)
	// basic VALUE, bearer VALUE.
	inScheme = lazyregexp.New(`(?i)\b(basic|bearer)(\s+|%20|\+)([a-z0-9+/=._~%-]{8,})`)
	// NAME=VALUE and NAME: VALUE. Of the second kind only passwords are certain: a secret: and a token: may be words.
	inPassword  = lazyregexp.New(`(?i)(` + password + isValue + `)(` + value + `)`)
	inParameter = lazyregexp.New(`(?i)(` + secret + isValue + `)(` + value + `)`)
	inHeader    = lazyregexp.New(`(?i)\b(` + headers + isValue + `(?:(?:\\*["'])?(?:basic|bearer|digest|negotiate|token)\s+)?)(` +
		value + `)`)
	// a token (JWT), whose first part is an object in base64url.
	inToken = lazyregexp.New(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_=.-]*`)
	// parameters of URLs with names that elsewhere are words.
	inQuery = lazyregexp.New(`(?i)([?&;]|%3f|%26)((?:sig|key|code|auth|pass|hmac|jwt)(?:=|%3d))([^\s"'&#;\\]+)`)
	digests = lazyregexp.New(`^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{8,}`)
	port    = lazyregexp.New(`^[0-9]{1,5}(?:/|$)`)
	// sentence begins what an error says about a file that is called password, or about a password, or about a field
	// that is called so: the name of a check of schemas.
	sentence = lazyregexp.New(`^(?:[a-z]+:|(?:min|max)[A-Z][a-z]+:|oneOf:|no|not|is|the|an?|must|cannot|permission|invalid|wrong|incorrect|required|` +
		`missing|expired|empty|unexpected|unsupported)$`)
	plain = lazyregexp.New(`^(?:[a-z]+|[A-Z][a-z]+|[A-Z]+)[.!?]?$`)
)

// notUsers are transports of image names and schemes with a colon and no user.
var notUsers = map[string]bool{"oci": true, "oci-archive": true, "docker-archive": true, "docker-daemon": true,
	"containers-storage": true, "dir": true, "file": true, "docker": true, "http": true, "https": true, "mailto": true,
	"pkg": true, "sha256": true, "sha512": true}

const hidden = "***"

// Text removes everything that looks like credentials from a name or a message: users and passwords in names and URLs,
// and values of headers, parameters and members that are called so, also in JSON and encoded for URLs.
func Text(text string) string {
	if findSuspicious(text) == 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		if has := findSuspicious(line); has != 0 {
			line = clean(line, has)
		}
		b.WriteString(line)
	}
	return b.String()
}

// clean is like Text, for one line. It runs only the expressions whose words occur in the line, as they are slow.
func clean(text string, has kind) string {
	if has&aUser != 0 {
		text = inURL().ReplaceAllStringFunc(text, func(s string) string {
			m := inURL().FindStringSubmatch(s)
			if strings.HasPrefix(m[4], "sha") || class().MatchString(m[2]) {
				return s // the digest of a name without a path, or a pattern
			}
			return m[1] + hidden + m[3] + m[4]
		})
		text = inName().ReplaceAllStringFunc(text, withoutUser)
	}
	always := func(string, string) bool { return true }
	if has&aHeader != 0 {
		text = replaceValue(inHeader(), text, always)
	}
	if has&aScheme != 0 {
		text = inScheme().ReplaceAllStringFunc(text, func(s string) string {
			m := inScheme().FindStringSubmatch(s)
			if plain().MatchString(m[3]) {
				return s // basic operations
			}
			return m[1] + m[2] + hidden
		})
	}
	if has&aPassword != 0 {
		text = replaceValue(inPassword(), text, func(name, v string) bool {
			return !strings.ContainsAny(name, ":") || !sentence().MatchString(v)
		})
	}
	if has&aSecret != 0 {
		text = replaceValue(inParameter(), text, func(name, v string) bool {
			return !strings.ContainsAny(name, ":") || strings.ContainsAny(v, `"'`) || !plain().MatchString(v) &&
				!sentence().MatchString(v)
		})
	}
	if has&aToken != 0 {
		text = inToken().ReplaceAllString(text, hidden)
	}
	if has&aQuery != 0 {
		text = inQuery().ReplaceAllString(text, "$1$2"+hidden)
	}
	return text
}

// withoutUser removes the user and the password of a match of inName.
func withoutUser(s string) string {
	m := inName().FindStringSubmatch(s)
	user, secret, host := m[2], m[4], m[6]
	if cut := strings.LastIndex(secret+m[5]+host, "@"); cut > len(secret) && !digests().MatchString(host) {
		secret, host = (secret + m[5] + host)[:cut], host[cut-len(secret)-len(m[5])+1:]
	}
	if i := strings.LastIndex(secret, "@"); i >= 0 && digests().MatchString(host) {
		// USER:PASSWORD@HOST/PATH@DIGEST
		return m[1] + hidden + "@" + secret[i+1:] + m[5] + host
	}
	if host == "" || digests().MatchString(host) || notUsers[strings.ToLower(user)] || strings.HasPrefix(secret, "/") ||
		port().MatchString(secret) && strings.Contains(secret, "/") {
		return s
	}
	return m[1] + hidden + m[5] + host
}

// replaceValue hides the second groups of the matches that are secrets, and leaves their quotes.
func replaceValue(in *regexp.Regexp, text string, is func(name, value string) bool) string {
	return in.ReplaceAllStringFunc(text, func(s string) string {
		m := in.FindStringSubmatch(s)
		v := strings.TrimLeft(m[2], `\"'`)
		open := m[2][:len(m[2])-len(v)]
		bare := strings.TrimRight(v, `\"'`)
		if bare == hidden || bare == "" || !is(m[1], m[2]) {
			return s
		}
		end := ""
		if open != "" {
			end = v[len(bare):]
		}
		return m[1] + open + hidden + end
	})
}

// kind is what a text may have: a set.
type kind uint

const (
	aUser kind = 1 << iota
	aHeader
	aScheme
	aPassword
	aSecret
	aQuery
	aToken
	// aValue is what stands between a name and its value.
	aValue
)

type word struct {
	text string
	kind kind
}

// words begin what clean looks for, in lower case, by their first letter.
var words = func() (by [256][]word) {
	for k, all := range map[kind]string{aUser: "%40", aScheme: "basic bearer", aToken: "eyj", aPassword: "pass pwd",
		aHeader: "authorization x-registry cookie x-api-key", aValue: "%3",
		aSecret: "secret credential token api access private signature", aQuery: "sig= sig%3 key= key%3 code= code%3 " +
			"auth= auth%3 pass= pass%3 hmac= hmac%3 jwt= jwt%3"} {
		for _, w := range strings.Fields(all) {
			by[w[0]] = append(by[w[0]], word{w, k})
		}
	}
	return by
}()

// findSuspicious tells quickly what a text may have; of most there is nothing.
func findSuspicious(text string) (has kind) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '@' && strings.HasPrefix(text[i:], "@sha256:"):
			i += len("@sha256:") - 1
			for i+1 < len(text) && (text[i+1] >= '0' && text[i+1] <= '9' || text[i+1] >= 'a' && text[i+1] <= 'f') {
				i++
			}
		case c == '@':
			has |= aUser
		case c == '=' || c == ':':
			has |= aValue
		default:
			if c >= 'A' && c <= 'Z' {
				c |= 0x20
			}
			for _, w := range words[c] {
				if len(text)-i >= len(w.text) && w.text[1] == text[i+1]|0x20 && strings.EqualFold(text[i:i+len(w.text)], w.text) {
					has |= w.kind
				}
			}
		}
	}
	if has&aValue == 0 {
		return has & (aScheme | aUser | aToken)
	}
	return has &^ aValue
}

// JSON is like Text, for the strings of a text in JSON.
func JSON(text []byte) []byte {
	if findSuspicious(string(text)) == 0 {
		return text
	}
	var b bytes.Buffer
	for len(text) > 0 {
		at := bytes.IndexByte(text, '"')
		if at < 0 {
			break
		}
		end := at + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			break // it is none
		}
		b.Write(text[:at])
		b.Write(jsonString(text[at : end+1]))
		text = text[end+1:]
	}
	b.Write(text)
	return b.Bytes()
}

// jsonString is like Text, for one string.
func jsonString(quoted []byte) []byte {
	var s string
	if !bytes.ContainsRune(quoted, '\\') {
		s = string(quoted[1 : len(quoted)-1])
	} else if json.Unmarshal(quoted, &s) != nil {
		return quoted
	}
	clean := Text(s)
	if clean == s || !utf8.ValidString(clean) {
		return quoted
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(clean) != nil {
		return quoted
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
