package option

import (
	"context"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// PublicKeys reads the public keys in the files of a flag, and returns the files by the fingerprints of their keys. A
// flag without a file, such as one whose value is a variable that is not set, is an error: without keys every image
// would be accepted.
func PublicKeys(ctx context.Context, p *Session, flag string, values []string) (keys []signature.PublicKey, files map[string]string, err error) {
	names, err := cmdline.List(values)
	if err != nil {
		return nil, nil, err
	}
	if p.Given(flag) && len(names) == 0 {
		return nil, nil, cmdline.Usagef("--%s names no key", flag)
	}
	files = map[string]string{}
	for _, file := range names {
		text, err := regularfile.ReadMounted(ctx, file)
		var found []signature.PublicKey
		if err == nil {
			found, err = signature.ParsePublicKeys(text)
		}
		if err != nil {
			return nil, nil, ofFile(flag, file, err)
		}
		for _, key := range found {
			keys, files[key.Fingerprint()] = append(keys, key), file
		}
	}
	return keys, files, nil
}
