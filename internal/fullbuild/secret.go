package fullbuild

import (
	"fmt"
	"os"
	"strings"
)

// checkSecret refuses a secret that has no name, or that cannot be read, before the build begins. It never tells the value
// of a secret.
func checkSecret(text string) error {
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(field, "=")
		if !ok || value == "" {
			return fmt.Errorf("--secret %q: expected id=NAME,src=FILE or id=NAME,env=VARIABLE", text)
		}
		switch key {
		case "source":
			key = "src"
		case "id", "src", "env", "type":
		default:
			return fmt.Errorf("--secret %q: unknown field %q (id, src, env, type)", text, key)
		}
		fields[key] = value
	}
	id, src, env := fields["id"], fields["src"], fields["env"]
	switch {
	case id == "":
		return fmt.Errorf("--secret %q: no id=NAME", text)
	case strings.ContainsAny(id, "/\x00"):
		return fmt.Errorf("--secret %q: a name has no slash", text)
	case fields["type"] != "" && fields["type"] != "file" && fields["type"] != "env":
		return fmt.Errorf("--secret %q: unknown type %q (file, env)", text, fields["type"])
	case src != "" && env != "":
		return fmt.Errorf("--secret %q: give either src or env", text)
	case src != "":
		f, err := os.Open(src)
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
