package serve

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/api"
)

func isObject(p declcfg.Property) bool { return p.Type == declcfg.PropertyBundleObject }

// TestSynthesizedCSV compares with recorded JSON of the Operator Lifecycle Manager's type.
func TestSynthesizedCSV(t *testing.T) {
	conn := startServer(t, sampleServer(t, Limits{}))
	b, err := api.NewRegistryClient(conn).GetBundle(t.Context(),
		&api.GetBundleRequest{PkgName: "a", ChannelName: "stable", CsvName: "a.v1.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"a.v1.1.0","annotations":{"x":"\u003cy\u003e"}},"spec":{"install":{"strategy":"deployment","spec":{"deployments":null}},"version":"1.1.0","customresourcedefinitions":{"owned":[{"name":"as.a.test","version":"v1","kind":"A"}]},"apiservicedefinitions":{},"displayName":"A","description":"About a.","provider":{"name":"Someone"},"icon":[{"base64data":"iVBORw0KGgo=","mediatype":"image/png"}],"cleanup":{"enabled":false},"relatedImages":[{"name":"operator","image":"example.test/operator:v1"}]},"status":{"cleanup":{}}}`
	if b.GetCsvJson() != want {
		got, want := clip(b.GetCsvJson(), want)
		t.Errorf("csvJson:\n got …%s\nwant …%s", got, want)
	}
	if len(b.GetObject()) != 1 || b.GetObject()[0] != b.GetCsvJson() {
		t.Errorf("object is not the CSV alone: %d objects", len(b.GetObject()))
	}
	if b.GetReplaces() != "" || len(b.GetSkips()) != 0 {
		t.Error("a single bundle shows its edges")
	}
	if b.GetSkipRange() != ">=1.0.0 <1.1.0" || b.GetChannelName() != "stable" || b.GetVersion() != "1.1.0" {
		t.Errorf("skipRange %q, channelName %q, version %q", b.GetSkipRange(), b.GetChannelName(), b.GetVersion())
	}
}

func TestListBundles(t *testing.T) {
	conn := startServer(t, sampleServer(t, Limits{}))
	answers, err := call(t, conn, "ListBundles", json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range answers {
		var b struct {
			PackageName, ChannelName, CSVName, CSVJSON, Replaces string
			Skips                                                []string
		}
		if err := json.Unmarshal(a, &b); err != nil {
			t.Fatal(err)
		}
		got = append(got,
			strings.Join([]string{b.ChannelName, b.PackageName, b.CSVName, b.Replaces, strings.Join(b.Skips, "+"),
				b.CSVJSON}, " "))
	}
	// By channel, package and name; manifests only of bundles without an image.
	want := []string{
		`beta a a.v1.1.0  a.v1.0.1 `,
		`only b b.v1.0.0   {"kind":"ClusterServiceVersion","metadata":{"name":"b.v1.0.0"}}`,
		`stable a a.v1.0.0   `,
		`stable a a.v1.1.0 a.v1.0.0 a.v1.0.1+a.v1.0.0 `,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func customSchemas(t *testing.T, conn *grpc.ClientConn, header string,
	req *api.ExperimentalListPackageCustomSchemasRequest) ([]string, error) {
	t.Helper()
	ctx := t.Context()
	if header != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, acknowledgeHeader, header)
	}
	s, err := api.NewExperimentalRegistryClient(conn).ExperimentalListPackageCustomSchemas(ctx, req)
	if err != nil {
		return nil, err
	}
	var names []string
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return names, err
		}
		names = append(names, m.GetFields()["name"].GetStringValue())
	}
}

func TestCustomSchemas(t *testing.T) {
	conn := startServer(t, sampleServer(t, Limits{}))
	for _, test := range []struct {
		name, header, schema, pkg string
		want                      string
		code                      codes.Code
	}{
		{name: "of a package, in order", header: "true", schema: "example.notes", pkg: "a", want: "one two"},
		{name: "of no package", header: "true", schema: "example.notes", want: "free"},
		{name: "not acknowledged", schema: "example.notes", pkg: "a"},
		{name: "acknowledged with something else", header: "yes", schema: "example.notes", pkg: "a"},
		{name: "unknown package", header: "true", schema: "example.notes", pkg: "nosuch"},
		{name: "unknown schema", header: "true", schema: "example.other", pkg: "a"},
		{name: "a schema with an answer of its own", header: "true", schema: "olm.bundle", pkg: "a"},
		{name: "no schema", header: "true", pkg: "a", code: codes.InvalidArgument},
		{name: "no name of a schema", header: "true", schema: "a/b", code: codes.InvalidArgument},
		{name: "no name of a package", header: "true", schema: "a", pkg: "../x", code: codes.InvalidArgument},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := customSchemas(t, conn, test.header,
				&api.ExperimentalListPackageCustomSchemasRequest{Schema: test.schema, PackageName: test.pkg})
			if status.Code(err) != test.code || strings.Join(got, " ") != test.want {
				t.Errorf("got %q, %v; want %q, %v", got, err, test.want, test.code)
			}
		})
	}
}

func TestErrorsAreNotFound(t *testing.T) {
	conn := startServer(t, sampleServer(t, Limits{}))
	for _, test := range []struct{ rpc, req, want string }{
		{"GetPackage", `{"name":"x"}`, `package "x" not found`},
		{"GetBundle", `{"pkgName":"a","channelName":"stable","csvName":"x"}`,
			`package "a", channel "stable", bundle "x" not found`},
		{"GetBundleForChannel", `{"pkgName":"a","channelName":"x"}`, `package "a", channel "x" not found`},
		{"GetBundleThatReplaces", `{"pkgName":"a","channelName":"stable","csvName":"x"}`,
			`no entry found for package "a", channel "stable"`},
		{"GetChannelEntriesThatReplace", `{"csvName":"x"}`, `no channel entries found that replace x`},
	} {
		_, err := call(t, conn, test.rpc, json.RawMessage(test.req))
		if status.Code(err) != codes.NotFound || status.Convert(err).Message() != test.want {
			t.Errorf("%s: %v", test.rpc, err)
		}
	}
}
