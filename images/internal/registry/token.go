package registry

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/webclient"
)

const (
	// maxToken bounds the answer of a token service.
	maxToken = 1 << 20
	// defaultTokenLife is the lifetime of a token without one (distribution's token specification).
	defaultTokenLife = time.Minute
	// tokenMargin is how long before its expiry a token is not used any more.
	tokenMargin = 5 * time.Second
)

// authorize returns the Authorization header of a request; empty if the registry has sent no challenge. The value
// refused is not used again unless there is no other.
func (p *repository) authorize(ctx context.Context, base *url.URL, refused string) (string, error) {
	wanted := p.host.wanted()
	bearer := slices.IndexFunc(wanted, func(c challenge) bool { return c.scheme == "bearer" })
	basic := slices.IndexFunc(wanted, func(c challenge) bool { return c.scheme == "basic" })
	if bearer < 0 && basic < 0 {
		return "", nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.findCredentials(ctx); err != nil {
		return "", err
	}
	if bearer < 0 {
		if p.creds.user == "" && p.creds.secret == "" {
			return "", nil
		}
		return p.creds.basic(), nil
	}
	if p.creds.registryToken != "" {
		return "Bearer " + p.creds.registryToken, nil
	}
	if refused == "Bearer "+p.token || time.Now().After(p.tokenEnd) {
		if err := p.fetchToken(ctx, base, wanted[bearer]); err != nil {
			return "", err
		}
	}
	return "Bearer " + p.token, nil
}

// findCredentials finds the credentials of the repository, once.
func (p *repository) findCredentials(ctx context.Context) (err error) {
	if p.known {
		return nil
	}
	p.creds, err = p.host.r.creds.find(ctx, p.name)
	p.known = err == nil
	return err
}

// credentials returns the credentials of the repository, and whether they have been looked up.
func (p *repository) credentials() (known bool, _ credentials) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.creds
}

func (c credentials) basic() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.user+":"+c.secret))
}

// fetchToken requests a token from the token service of the challenge.
func (p *repository) fetchToken(ctx context.Context, base *url.URL, c challenge) error {
	realm, err := url.Parse(c.params["realm"])
	if err != nil || realm.Host == "" {
		return Wrap(fmt.Errorf("registry %s: invalid realm %.200q of its tokens", p.host.name,
			redact.Text(c.params["realm"])))
	}
	if err := checkRealm(base, realm, p.creds); err != nil {
		realm.RawQuery = ""
		return Wrap(fmt.Errorf("registry %s: realm %.200q: %w", p.host.name, realm.Redacted(), err))
	}
	realm.User = nil
	query := realm.Query()
	q := &request{url: realm}
	if p.creds.identityToken != "" {
		query = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {p.creds.identityToken},
			"client_id": {"bindery"}}
		q.form = query
	} else if p.creds.user != "" {
		q.authorization = p.creds.basic()
		query.Set("account", p.creds.user)
	}
	if service := c.params["service"]; service != "" {
		query.Set("service", service)
	}
	scopes := p.scopes
	if len(scopes) == 0 && p.path != "" {
		scopes = []string{"repository:" + p.path + ":pull"}
	}
	if q.form != nil {
		if len(scopes) > 0 {
			query.Add("scope", strings.Join(scopes, " "))
		}
	} else {
		for _, scope := range scopes {
			query.Add("scope", scope)
		}
		realm.RawQuery = query.Encode()
	}
	resp, err := p.host.send(ctx, q)
	if err != nil {
		return fmt.Errorf("token of registry %s: %w", p.host.name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("token of registry %s: %w", p.host.name, refusal(resp, true, p.creds, true))
	}
	return p.readToken(resp.Body)
}

// readToken reads the answer of a token service. Errors do not quote it.
func (p *repository) readToken(r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxToken+1))
	if err != nil {
		return fmt.Errorf("token of registry %s: %w", p.host.name, err)
	}
	if len(text) > maxToken {
		return Wrap(fmt.Errorf("token of registry %s: the answer is longer than %d bytes", p.host.name, maxToken))
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if json.Unmarshal(text, &answer) != nil {
		return Wrap(fmt.Errorf("token of registry %s: the answer is not what the specification says",
			p.host.name))
	}
	answer.Token = cmp.Or(answer.Token, answer.AccessToken)
	if answer.Token == "" || !printable.NoControl(answer.Token) {
		return Wrap(fmt.Errorf("token of registry %s: the answer has no token", p.host.name))
	}
	life := defaultTokenLife
	if answer.ExpiresIn > 0 {
		life = time.Duration(min(answer.ExpiresIn, 24*3600)) * time.Second
	}
	p.token, p.tokenEnd = answer.Token, time.Now().Add(life-tokenMargin)
	return nil
}

// checkRealm decides whether a token service may be used, and whether it may receive the credentials. A registry with
// TLS may name a service with TLS on any host, since it could ask for the credentials itself. A registry without TLS
// may be forged, so only its own address receives credentials.
func checkRealm(base, realm *url.URL, creds credentials) error {
	if realm.Scheme != "https" && realm.Scheme != "http" {
		return errors.New("refusing its scheme")
	}
	if base.Scheme == "https" && realm.Scheme != "https" {
		return errors.New("refusing http for a registry with https")
	}
	if base.Scheme == "http" && realm.Scheme == "http" && webclient.HostPort(base) != webclient.HostPort(
		realm) && creds != (credentials{}) {
		return errors.New("refusing to send credentials without TLS to another host than the registry's")
	}
	return webclient.CheckAddress(base.Hostname(), realm.Hostname())
}
