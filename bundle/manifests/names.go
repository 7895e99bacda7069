package manifests

import (
	"crypto/sha256"
	"encoding/json"
	"math/big"
	"strings"
)

const maxLabel = 63

// short joins a base and a suffix with a dash. The base is cut so that the name has at most 63 bytes; at exactly 63
// bytes without the dash it is not cut (OLMV1 section 3.4).
func short(base, suffix string) string {
	if len(base)+len(suffix) > maxLabel {
		base = base[:max(maxLabel-len(suffix)-1, 0)]
	}
	return base + "-" + suffix
}

// uniqueName returns a name for what is made of a value: the base with a hash of the value's JSON, in base 36.
func uniqueName(base string, value any) (string, error) {
	h := sha256.New224()
	if err := json.NewEncoder(h).Encode(value); err != nil {
		return "", err
	}
	return short(base, new(big.Int).SetBytes(h.Sum(nil)).Text(36)), nil
}

// webhookNames are the names of what serves the webhooks of a deployment.
type webhookNames struct{ service, certificate, issuer string }

func namesFor(deployment string) webhookNames {
	n := webhookNames{service: short(strings.ReplaceAll(deployment, ".", "-"), "service")}
	n.certificate = short(n.service, "cert")
	n.issuer = short(n.certificate, "selfsigned-issuer")
	return n
}
