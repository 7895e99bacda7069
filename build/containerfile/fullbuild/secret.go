package fullbuild

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/operator-bindery/bindery/internal/regularfile"
)

// CheckSecrets refuses unusable secrets, all together. Messages never contain values.
func CheckSecrets(all []string) error {
	var errs []error
	for _, s := range all {
		errs = append(errs, checkSecret(s))
	}
	return errors.Join(errs...)
}

// checkSecret refuses a secret without a name, or one that cannot be read, before the build begins. Messages never
// contain the value.
func checkSecret(text string) error {
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(field, "=")
		if !ok || value == "" {
			// the message does not quote the text, which may contain the secret
			return errors.New("--secret: expected id=NAME,src=FILE or id=NAME,env=VARIABLE")
		}
		switch key {
		case "source":
			key = "src"
		case "id", "src", "env", "type":
		default:
			return fmt.Errorf("--secret: unknown field %q (id, src, env, type)", key)
		}
		fields[key] = value
	}
	id, src, env := fields["id"], fields["src"], fields["env"]
	switch {
	case id == "":
		return errors.New("--secret: no id=NAME")
	case strings.ContainsAny(id, "/\x00"):
		return fmt.Errorf("--secret id=%s: a name has no slash", id)
	case fields["type"] != "" && fields["type"] != "file" && fields["type"] != "env":
		return fmt.Errorf("--secret id=%s: unknown type %q (file, env)", id, fields["type"])
	case src != "" && env != "":
		return fmt.Errorf("--secret id=%s: give either src or env", id)
	case src != "":
		f, err := regularfile.OpenSeekable(src) // each RUN reads it
		if err != nil {
			return fmt.Errorf("--secret id=%s: %w", id, err)
		}
		return f.Close()
	case env != "":
		if _, ok := os.LookupEnv(env); !ok {
			return fmt.Errorf("--secret id=%s: the variable %s is not set", id, env)
		}
	}
	return nil
}
