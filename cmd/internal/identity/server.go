package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/webclient"
)

// github returns the source of the tokens that GitHub gives a job.
func (o Options) github(address, bearer string) (*Source, error) {
	u, err := webclient.ParseServiceURL(address)
	if err != nil {
		return nil, cmdline.Usagef("$%s: %w", githubURL, err)
	}
	query := u.Query()
	query.Set("audience", audience)
	u.RawQuery = query.Encode()
	return &Source{Name: "GitHub Actions", fetch: func(ctx context.Context) (string, error) {
		var answer struct{ Value string }
		err := o.get(ctx, u, http.Header{"Authorization": {"bearer " + strings.TrimSpace(bearer)}}, &answer)
		if err == nil && answer.Value == "" {
			err = errors.New("its answer has no token")
		}
		return answer.Value, failed(u, "the job needs the permission \"id-token: write\"", err)
	}}, nil
}

// device returns the source of tokens for which somebody logs in, with a browser on any machine (RFC 8628).
func (o Options) device() (*Source, error) {
	o.Issuer, o.ClientID = cmp.Or(o.Issuer, defaultIssuer), cmp.Or(o.ClientID, defaultClientID)
	u, err := webclient.ParseServiceURL(strings.TrimSuffix(o.Issuer, "/") + "/.well-known/openid-configuration")
	if err != nil {
		return nil, cmdline.Usagef("--oidc-issuer: %w", err)
	}
	return &Source{Name: "the issuer " + u.Host, fetch: func(ctx context.Context) (string, error) {
		token, err := o.login(ctx, u)
		return token, failed(u, "a token from elsewhere is given with --identity-token", err)
	}}, nil
}

// login runs the device flow.
func (o Options) login(ctx context.Context, configuration *url.URL) (string, error) {
	var server struct {
		Issuer string
		Device string `json:"device_authorization_endpoint"`
		Token  string `json:"token_endpoint"`
	}
	if err := o.get(ctx, configuration, http.Header{}, &server); err != nil {
		return "", err
	}
	if server.Issuer != o.Issuer {
		return "", fmt.Errorf("it is the issuer %q, not %q", server.Issuer, o.Issuer)
	}
	if server.Device == "" || server.Token == "" {
		return "", errors.New("it offers no login by a code (device flow)")
	}
	asking := context.WithValue(ctx, oauth2.HTTPClient, o.transport(ctx).Client())
	config := oauth2.Config{ClientID: o.ClientID, Scopes: []string{"openid", "email"}, Endpoint: oauth2.Endpoint{
		DeviceAuthURL: server.Device, TokenURL: server.Token, AuthStyle: oauth2.AuthStyleInParams}}
	verifier := oauth2.GenerateVerifier()
	code, err := config.DeviceAuth(asking, oauth2.S256ChallengeOption(verifier))
	if err != nil {
		return "", err
	}
	if code.UserCode == "" || code.VerificationURI == "" || code.Interval < 0 || code.Interval > 60 {
		return "", errors.New("its answer has no code, or an interval beyond a minute")
	}
	o.Tell(printable.Cell("to sign, log in at " + code.VerificationURI + " with the code " + code.UserCode))
	token, err := config.DeviceAccessToken(asking, code, oauth2.VerifierOption(verifier))
	if err != nil && !code.Expiry.IsZero() && time.Now().After(code.Expiry) {
		return "", errors.New("nobody has logged in while the code was valid")
	}
	if err != nil {
		return "", err
	}
	id, ok := token.Extra("id_token").(string)
	if !ok {
		return "", errors.New("its answer has no identity token")
	}
	return id, nil
}

func (o Options) transport(ctx context.Context) *webclient.Service {
	return &webclient.Service{Context: ctx, Most: secret.MaxSize, Pause: o.pause}
}

// get asks for a JSON document.
func (o Options) get(ctx context.Context, u *url.URL, header http.Header, to any) error {
	header.Set("Accept", "application/json")
	r, err := o.transport(ctx).RoundTrip(&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: header})
	if err != nil {
		return err
	}
	if r.StatusCode != http.StatusOK {
		return answers(r)
	}
	if json.NewDecoder(r.Body).Decode(to) != nil {
		return errors.New("its answer is not the JSON that is expected")
	}
	return nil
}

// answers is the error of an answer that is none.
func answers(r *http.Response) error {
	return fmt.Errorf("it answers %d %s", r.StatusCode, http.StatusText(r.StatusCode))
}

// failed is an error of asking a host for a token; nil without one. It has the host and the kind of refusal, but neither
// the URL nor what else the server has answered, which may be secret.
func failed(u *url.URL, hint string, err error) error {
	var refused *oauth2.RetrieveError
	var request *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.ErrorCode != "":
		err = fmt.Errorf("it refuses: %s", refused.ErrorCode)
	case errors.As(err, &refused):
		err = answers(refused.Response)
	case errors.As(err, &request):
		err = request.Err
	}
	return &cmdline.Error{Class: cmdline.ClassNetwork, Object: u.Host, Hint: hint,
		Err: fmt.Errorf("asking %s for an identity token: %w", u.Host, err)}
}
