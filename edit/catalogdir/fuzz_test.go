package catalogdir

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
)

// FuzzRewrite drops, changes and adds documents of any readable file. The edit is refused or gives the expected
// catalog.
func FuzzRewrite(f *testing.F) {
	for _, text := range []string{
		"{\"schema\":\"a\",\"n\":1}\n{\"schema\": \"b\"}{\"schema\":\"c\"}",
		"---\nschema: a\n--- # x\n# y\nschema: b\n# z\n\n---\n# none\n---\nschema: c",
		"schema: a\r\nt: |+\r\n  x\r\n\r\n# c\r\n---\r\nschema: b\r\n",
		"{\"schema\": \"a\"}\n---\nschema: b\n---\n{schema: c}\n", "{schema: a}\n---\n{\"schema\": \"b\"}\n",
		" \n\t{\n\t\"schema\": \"a\"\n}\n\n\n{\"schema\":\"b\"}\n",
		"# c\n---\nschema: a\n...\n---\n---\nschema: b\nt: \"x\n  # y\n  \"\n",
		"---\n? schema\n: a\nb: &x [1]\nc: *x\n---\nschema: b\n",
	} {
		for how := range byte(9) {
			f.Add([]byte(text), how, "t: x\n\n")
		}
	}
	dir := f.TempDir()
	f.Add([]byte("---\nschema: a\n--- # \x00\xff\nschema: b\n---\nschema: c"), byte('\u0088'), "x")
	f.Fuzz(func(t *testing.T, data []byte, how byte, value string) {
		path := filepath.Join(dir, "file")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file := &file{name: "file"}
		c, err := declcfg.Read(context.Background(), bytes.NewReader(data), "file",
			declcfg.LoadOptions{Lazy: true, Document: func(b declcfg.Blob, d declcfg.Document) {
				file.docs = append(file.docs, &document{file: file, n: len(file.docs), schema: b.BlobSchema(),
					pkg: b.BlobPackage(), name: b.BlobName(), start: d.Start, end: d.End, json: d.JSON})
			}})
		if err != nil || len(file.docs) == 0 || len(file.docs) != len(c.Others) {
			return
		}
		if file.info, err = os.Stat(path); err != nil {
			t.Fatal(err)
		}
		e := (&edits{byName: map[string]*fileEdit{}}).editOf(file)
		n := int(how/9) % len(file.docs)
		text, err := (&declcfg.Channel{Name: strings.ToValidUTF8(value, "?")}).MarshalJSON()
		if err == nil {
			text, err = canon.AppendJSON(nil, bytes.Replace(text, []byte(declcfg.SchemaChannel), []byte("new"), 1),
				canon.Limits{}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		meta := &declcfg.Meta{Schema: "new", Name: strings.ToValidUTF8(value, "?"), Blob: text}
		var want []string
		for i := range c.Others {
			blob := string(c.Others[i].Blob)
			if i == n && how%3 == 1 {
				e.drop(file.docs[i])
				blob = ""
			}
			if i == n && how%3 == 2 {
				e.change(file.docs[i], meta)
				blob = string(meta.Blob)
			}
			want = append(want, blob)
			if i == n && how/3%3 > 0 {
				for range how / 3 % 3 {
					e.add(i, meta)
					want = append(want, string(meta.Blob))
				}
			}
		}
		if e.empty() {
			return
		}
		open, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		var out bytes.Buffer
		spans, err := rewrite(context.Background(), &out, e, &documentReader{File: open, parser: newParser()}, form{},
			&declcfg.Texts{})
		if err == nil {
			err = verify(bytes.NewReader(out.Bytes()), spans)
		}
		if err != nil {
			if how%3 == 0 && how/3%3 == 0 {
				t.Errorf("nothing changes, and %v", err)
			}
			t.Skip(err) // refused
		}
		back, err := declcfg.Read(context.Background(), bytes.NewReader(out.Bytes()), "file",
			declcfg.LoadOptions{Lazy: true})
		if err != nil {
			t.Fatalf("%v\n%q\nof\n%q", err, out.Bytes(), data)
		}
		var got []string
		for i := range back.Others {
			got = append(got, string(back.Others[i].Blob))
		}
		want = slices.DeleteFunc(want, func(blob string) bool { return blob == "" })
		if !slices.Equal(got, want) {
			t.Errorf("got\n%q\nof\n%q", out.Bytes(), data)
		}
		if how%3 == 0 && how/3%3 == 0 && !bytes.Equal(out.Bytes(), data) {
			t.Errorf("nothing changes, but the bytes: %q of %q", out.Bytes(), data)
		}
	})
}
