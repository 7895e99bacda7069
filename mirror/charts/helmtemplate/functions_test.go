package helmtemplate_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/operator-bindery/bindery/mirror/charts/helmtemplate"
)

// expressions call every function, one in each line, with arguments that fit and that do not.
const expressions = `
{{ abbrev 5 "hello world" }} {{ abbrev 1 "x" }} {{ abbrevboth 5 10 "1234 5678 9123" }}
{{ add 1 2 "3" 4.5 }} {{ add1 2 }} {{ add1f 1.5 }} {{ addf 1 "2.5" 3 }} {{ sub 5 "2" }} {{ subf 5 2.5 }} {{ mul 2 3 "4" }} {{ mulf 1.5 2 }} {{ div 7 2 }} {{ divf 7 2 3 }} {{ mod 7 2 }}
{{ div 1 0 }}
{{ mod 1 0 }}
{{ divf 1 0 }}
{{ adler32sum "x" }} {{ sha1sum "x" }} {{ sha256sum "x" }} {{ sha512sum "x" }}
{{ all 1 "x" true }} {{ all 1 "" }} {{ any "" 0 }} {{ any "" 1 }} {{ and 1 0 }} {{ or 0 "x" }} {{ not 1 }} {{ and .Values.no .Values.no.no }}
{{ append (list 1 2) 3 }} {{ mustAppend (list 1) (list 2) }} {{ push (list 1) "x" }} {{ mustPush (list 1) nil }} {{ prepend (list 1) 0 }} {{ mustPrepend (list 1) 0 }}
{{ append "x" 1 }}
{{ mustAppend 1 1 }}
{{ atoi "12" }} {{ atoi "x" }} {{ int "12" }} {{ int "0x10" }} {{ int 1.9 }} {{ int true }} {{ int64 "7" }} {{ float64 "1.5" }} {{ toDecimal "777" }} {{ int .Values.no }} {{ int64 "010" }}
{{ b32enc "abc" }} {{ b32dec "MFRGG===" }} {{ b64enc "abc" }} {{ b64dec "YWJj" }} {{ b64dec "!" }} {{ b32dec "!" }}
{{ base "a/b.c" }} {{ dir "a/b.c" }} {{ clean "a/../b" }} {{ ext "a/b.c" }} {{ isAbs "/a" }} {{ osBase "a/b.c" }} {{ osDir "a/b" }} {{ osClean "a//b" }} {{ osExt "a.b" }} {{ osIsAbs "a" }}
{{ biggest 1 3 2 }} {{ max 1 "5" }} {{ min 3 1 }} {{ maxf 1 2.5 }} {{ minf 1 2.5 }} {{ ceil 1.2 }} {{ floor 1.8 }} {{ round 1.256 2 }} {{ round 1.5 0 0.6 }} {{ round "1.255" 2 }}
{{ call .Values.no }}
{{ camelcase "http_server" }} {{ snakecase "FirstName" }} {{ kebabcase "FirstName" }} {{ swapcase "aB" }} {{ title "a b" }} {{ untitle "A B" }} {{ upper "a" }} {{ lower "A" }} {{ initials "a b" }} {{ nospace " a b " }} {{ plural "one" "many" 2 }}
{{ cat 1 "a" nil true }} {{ coalesce 0 "" "x" }} {{ coalesce nil }} {{ compact (list 1 0 "" "x") }} {{ mustCompact (list "" 1) }}
{{ compact 1 }}
{{ chunk 2 (list 1 2 3) }} {{ mustChunk 3 (list 1 2 3 4) }}
{{ chunk 0 (list 1) }}
{{ concat (list 1) (list 2 3) }}
{{ concat 1 }}
{{ contains "a" "abc" }} {{ hasPrefix "a" "abc" }} {{ hasSuffix "c" "abc" }}
{{ date "2006-01-02" 0 }} {{ dateInZone "2006" 0 "UTC" }} {{ date_in_zone "2006" 0 "UTC" }} {{ htmlDate 0 }} {{ htmlDateInZone 0 "UTC" }} {{ duration 95 }} {{ durationRound "2h10m5s" }} {{ toDate "2006-01-02" "2017-12-31" }} {{ mustToDate "2006" "2017" }} {{ unixEpoch (toDate "2006-01-02" "2017-12-31") }}
{{ mustToDate "2006" "x" }}
{{ dateModify "1h" (toDate "2006" "2017") }} {{ date_modify "-1h" (toDate "2006" "2017") }} {{ mustDateModify "1h" (toDate "2006" "2017") }} {{ must_date_modify "1h" (toDate "2006" "2017") }}
{{ mustDateModify "x" (toDate "2006" "2017") }}
{{ kindOf now }} {{ ago (now) | empty }}
{{ decryptAES "k" "x" }}
{{ encryptAES "secretkey" "plain" | decryptAES "secretkey" }}
{{ deepCopy (dict "a" (list 1)) }} {{ mustDeepCopy (dict "a" 1) }} {{ deepEqual (list 1) (list 1) }} {{ deepEqual 1 2 }}
{{ deepCopy nil }}
{{ default "x" "" }} {{ default "x" 0 }} {{ default "x" "y" }} {{ default "x" .Values.no }} {{ .Values.no | default (dict "a" 1) }}
{{ derivePassword 1 "long" "password" "user" "example.com" }}
{{ dict "a" 1 "b" (dict "c" 2) }} {{ dict 1 2 }} {{ dict "odd" }} {{ dict }}
{{ dig "a" "b" "x" (dict "a" (dict "b" 1)) }} {{ dig "a" "c" "x" (dict "a" (dict "b" 1)) }}
{{ dig "a" }}
{{ dig "a" "b" "x" (dict "a" 1) }}
{{ empty "" }} {{ empty (list) }} {{ empty .Values }} {{ empty .Values.no }}
{{ env "HOME" }}
{{ expandenv "$HOME" }}
{{ eq 1 1 }} {{ eq "a" "b" "a" }} {{ ne 1 2 }} {{ lt 1 2 }} {{ le 1 1 }} {{ gt 1 2 }} {{ ge 2 1 }}
{{ eq 1 "1" }}
{{ lt 1 1.5 }}
{{ eq .Values.map .Values.map }}
{{ fail "no" }}
{{ first (list 1 2) }} {{ mustFirst (list 1) }} {{ rest (list 1 2) }} {{ mustRest (list 1 2) }} {{ last (list 1 2) }} {{ mustLast (list 1) }} {{ initial (list 1 2) }} {{ mustInitial (list 1 2) }} {{ reverse (list 1 2) }} {{ mustReverse (list 1 2) }} {{ first (list) }}
{{ first 1 }}
{{ mustReverse 1 }}
{{ fromYaml "a: [1, x, 1.5, yes, 0o7, 010, ~]" }} {{ fromYaml "a: [" }} {{ fromYaml "[1]" }} {{ (fromYaml "a: &x {b: 1}\nc: *x").c }} {{ fromYaml "x: <<" }}
{{ fromYamlArray "[1, {a: 2}]" }} {{ fromYamlArray "a: 1" }} {{ fromJson "{\"a\":1.0}" }} {{ fromJson "[" }} {{ fromJsonArray "[1,2]" }} {{ fromJsonArray "{" }} {{ fromToml "a = 1\n[b]\nc = \"d\"" }} {{ fromToml "a = " }} {{ mustFromJson "[1]" }}
{{ mustFromJson "x" }}
{{ toYaml .Values }} {{ toYaml "a\nb\n" }} {{ toYaml (list) }} {{ toYaml nil }} {{ toYaml 12345678 }} {{ toYaml 1.0 }} {{ toYaml "yes" }} {{ toYaml "1e3" }} {{ toYaml .Chart.Version }} {{ toYaml "- x" }}
{{ toYamlPretty .Values }} {{ toYamlPretty (dict "a" (list 1 2)) }} {{ toJson .Values }} {{ toJson "<&>" }} {{ toPrettyJson (dict "a" 1) }} {{ toRawJson "<&>" }} {{ mustToJson 1 }} {{ mustToPrettyJson (list 1) }} {{ mustToRawJson "<" }} {{ toToml (dict "a" 1 "b" (dict "c" "d")) }} {{ toToml 1 }}
{{ toToml nil }}
{{ toJson .Chart }} {{ toYaml .Capabilities.KubeVersion }} {{ toYaml .Release }} {{ toJson .Template }} {{ toYaml .Subcharts }}
{{ genPrivateKey "none" }}
{{ genCAWithKey "x" 1 "none" }}
{{ buildCustomCert "!" "x" }}
{{ genSelfSignedCertWithKey "x" nil nil 1 "none" }}
{{ get (dict "a" 1) "a" }} {{ get (dict) "a" }} {{ set (dict) "a" 1 }} {{ unset (dict "a" 1) "a" }} {{ hasKey (dict "a" 1) "a" }} {{ pluck "a" (dict "a" 1) (dict "a" 2) }} {{ keys (dict "a" 1) }} {{ values (dict "a" 1) }} {{ pick (dict "a" 1 "b" 2) "a" }} {{ omit (dict "a" 1 "b" 2) "a" }}
{{ get .Values.no "a" }}
{{ set 1 "a" 1 }}
{{ getHostByName "localhost" }}
{{ has 1 (list 1 2) }} {{ mustHas 3 (list 1) }} {{ has "x" nil }} {{ without (list 1 2 3) 2 }} {{ mustWithout (list 1) 1 }} {{ uniq (list 1 1 2) }} {{ mustUniq (list "a" "a") }}
{{ has 1 1 }}
{{ hello }} {{ html "<a>" }} {{ js "'<" }} {{ urlquery "a b&" }} {{ print 1 2 "x" "y" 3 }} {{ printf "%05d %s %v %q %T %x %.2f %t %%" 7 "a" (list 1) "q" 1 255 1.234 true }} {{ println "x" 1 }} {{ printf "%d" "x" }} {{ printf "%s" }} {{ printf "%[2]s %[1]s" "a" "b" }} {{ printf "%*d" 5 1 }} {{ printf "%s" .Values.no }}
{{ htpasswd "u:" "p" }}
{{ include "named" . }} {{ include "named" (dict "a" 1) | indent 2 }} {{ include "empty" . }}
{{ include "missing" . }}
{{ template "named" . }}
{{ template "missing" . }}
{{ indent 4 "a\nb" }} {{ nindent 2 "a\nb" }} {{ indent 0 "" }} {{ nindent 0 "x" }}
{{ indent -1 "a" }}
{{ index (list 1 2) 1 }} {{ index .Values "map" "a" }} {{ index .Values.list 0 }} {{ len "abc" }} {{ len (list 1) }} {{ slice (list 1 2 3) 1 }} {{ mustSlice (list 1 2 3) 0 2 }}
{{ slice "abc" 1 2 }}
{{ index (list 1) 5 }}
{{ index .Values.no "a" }}
{{ len 1 }}
{{ join "," (list 1 "a" nil) }} {{ join "," "x" }} {{ sortAlpha (list "b" "a" 1) }} {{ toStrings (list 1 nil "a") }} {{ splitList "," "a,b" }} {{ split "," "a,b" }} {{ splitn "," 2 "a,b,c" }} {{ (split "," "a,b")._1 }}
{{ kindIs "map" .Values }} {{ kindOf .Values.list }} {{ typeIs "string" "a" }} {{ typeIsLike "string" "a" }} {{ typeOf 1.0 }} {{ typeOf .Values.int }} {{ kindOf nil }} {{ typeOf .Values.list }}
{{ typeOf nil }}
{{ list 1 "a" nil }} {{ tuple 1 2 }} {{ list }}
{{ lookup "v1" "Secret" "a" "b" }} {{ (lookup "v1" "Secret" "a" "b").data }} {{ range (lookup "v1" "Pod" "" "").items }}x{{ end }}
{{ merge (dict "a" 1) (dict "a" 2 "b" 3) }} {{ mergeOverwrite (dict "a" 1) (dict "a" 2) }} {{ mustMerge (dict) (dict "a" (dict "b" 1)) }} {{ mustMergeOverwrite (dict "a" (dict "b" 1)) (dict "a" (dict "c" 1)) }} {{ merge .Values.map (dict "z" 1) }}
{{ mustMerge (dict "a" 1) (dict "a" (dict)) }}
{{ quote "a\"b" 1 nil }} {{ squote "a" 1 }} {{ quote .Values.no }}
{{ randInt 1 2 }} {{ len (randAlpha 5) }} {{ len (randAlphaNum 5) }} {{ len (randNumeric 5) }} {{ len (randAscii 5) }} {{ len (randBytes 6) }} {{ len uuidv4 }} {{ len (shuffle "abc") }} {{ randAlpha 0 }}
{{ randInt 2 1 }}
{{ regexMatch "a.c" "abc" }} {{ mustRegexMatch "a" "b" }} {{ regexFind "b+" "abbc" }} {{ mustRegexFind "x" "a" }} {{ regexFindAll "[0-9]" "1a2" -1 }} {{ mustRegexFindAll "a" "aa" 1 }} {{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }} {{ mustRegexReplaceAll "a" "aba" "" }} {{ regexReplaceAllLiteral "a" "aba" "$1" }} {{ mustRegexReplaceAllLiteral "a" "aba" "x" }} {{ regexSplit "z+" "pizza" -1 }} {{ mustRegexSplit "z" "pizza" 2 }} {{ regexQuoteMeta "1.2" }} {{ regexReplaceAll "" "abc" "-" }}
{{ regexMatch "(" "a" }}
{{ mustRegexMatch "(" "a" }}
{{ regexFind "(" "a" }}
{{ repeat 3 "ab" }} {{ repeat 0 "a" }}
{{ repeat -1 "a" }}
{{ replace "a" "b" "aXa" }} {{ replace "" "-" "ab" }}
{{ required "needed" "x" }} {{ required "needed" 0 }} {{ required "needed" false }}
{{ required "needed" .Values.no }}
{{ required "needed" "" }}
{{ semver "1.2.3-a+b" }} {{ (semver "v1.2").Minor }} {{ semverCompare "^1.2" "1.3.0" }} {{ semverCompare ">=1.20-0" .Capabilities.KubeVersion.Version }} {{ semverCompare ">=1.19-0" .Capabilities.KubeVersion.GitVersion }}
{{ semver "x" }}
{{ semverCompare "x" "1" }}
{{ seq 3 }} {{ seq 2 4 }} {{ seq 0 2 10 }} {{ seq 5 -2 0 }} {{ seq -2 }} {{ seq 0 0 0 }} {{ seq 1 0 2 }} {{ seq }} {{ seq 1 1 1 1 }}
{{ ternary 1 2 true }} {{ false | ternary "a" "b" }}
{{ ternary 1 2 "x" }}
{{ toString 1 }} {{ toString nil }} {{ toString (list 1) }} {{ toString .Values.map }}
{{ tpl "{{ .Values.int }} {{ include \"named\" . }}" . }} {{ tpl "{{ define \"inner\" }}i{{ end }}{{ include \"inner\" . }}" . }} {{ tpl "plain" . }} {{ tpl (toYaml .Values.map) . }} {{ tpl "{{ tpl \"{{ .Values.int }}\" . }}" . }} {{ tpl "" . }} {{ tpl "{{ .Values.no }}" . }} {{ tpl "{{/* c */}}" . }}
{{ tpl "{{" . }}
{{ tpl "{{ .Values.no.no }}" . }}
{{ tpl "{{ include \"x\" . }}" . }}
{{ tpl "{{ define \"inner\" }}i{{ end }}" . }}{{ include "inner" . }}
{{ tpl 1 . }}
{{ trim " a " }} {{ trimAll "$" "$5$" }} {{ trimall "$" "$5$" }} {{ trimPrefix "a" "abc" }} {{ trimSuffix "c" "abc" }} {{ trunc 2 "abc" }} {{ trunc -2 "abc" }} {{ substr 0 2 "abc" }} {{ substr 1 -1 "abc" }} {{ substr -1 2 "abc" }}
{{ until 3 }} {{ untilStep 0 6 2 }} {{ until -2 }} {{ untilStep 5 0 -2 }} {{ untilStep 0 5 0 }} {{ range until 3 }}{{ . }}{{ end }} {{ range 3 }}{{ . }}{{ end }}
{{ urlParse "https://u:p@h:1/p?q#f" }} {{ urlJoin (dict "host" "h" "scheme" "https" "path" "/p") }} {{ get (urlParse "http://h/p") "host" }}
{{ urlParse "://" }}
{{ wrap 5 "hello world" }} {{ wrapWith 5 "\t" "hello world" }}
{{ genPrivateKey "ecdsa" | len | lt 100 }} {{ genPrivateKey "ed25519" | empty }} {{ $ca := genCA "c" 1 }}{{ $c := genSignedCert "x" nil (list "a.b") 1 $ca }}{{ empty $c.Cert }} {{ (genSelfSignedCert "x" (list "1.2.3.4") (list "a") 1).Key | empty }} {{ (buildCustomCert (b64enc $ca.Cert) (b64enc $ca.Key)).Cert | eq $ca.Cert }} {{ $k := genPrivateKey "ecdsa" }}{{ (genCAWithKey "c" 1 $k).Key | eq $k }} {{ (genSelfSignedCertWithKey "x" nil nil 1 $k).Key | eq $k }} {{ (genSignedCertWithKey "x" nil nil 1 $ca $k).Key | eq $k }} {{ bcrypt "p" | len }} {{ htpasswd "u" "p" | len }}
{{ .Files.Get "config/a.txt" }} {{ .Files.Get "no" }} {{ .Files.GetBytes "config/a.txt" }} {{ .Files.Lines "config/a.txt" }} {{ range .Files.Lines "config/a.txt" }}[{{ . }}]{{ end }} {{ len (.Files.Lines "no") }}
{{ range $name, $data := .Files.Glob "config/*" }}{{ $name }}={{ toString $data }};{{ end }} {{ (.Files.Glob "**.txt").AsConfig }} {{ (.Files.Glob "{config,x}/*").AsSecrets }} {{ (.Files.Glob "no").AsConfig }} {{ (.Files.Glob "[").AsConfig | len }} {{ index .Files "config/a.txt" | toString }} {{ (.Files.Glob "config/[ab].*") | len }} {{ .Files | kindOf }}
{{ range $path, $_ := .Files.Glob "**/*.txt" }}{{ $path }}{{ $.Files.Get $path | indent 2 }}{{ end }}
{{ .Chart.Name }} {{ .Chart.Version }} {{ .Chart.AppVersion }} {{ .Chart.IsRoot }} {{ .Chart.Keywords }} {{ .Chart.Annotations }} {{ range .Chart.Maintainers }}{{ .Name }}{{ end }} {{ .Chart.Type }} {{ .Chart.Metadata.Name }} {{ .Chart.Home }} {{ .Chart.Deprecated }}
{{ .Chart.NoSuch }}
{{ .Release.Name }}|{{ .Release.Namespace }}|{{ .Release.Revision }}|{{ .Release.IsInstall }}|{{ .Release.IsUpgrade }}|{{ .Release.Service }}|{{ .Release.Time }}
{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion.Major }} {{ .Capabilities.KubeVersion.Minor }} {{ .Capabilities.HelmVersion.Version }} {{ .Capabilities.HelmVersion.GoVersion }} {{ .Capabilities.APIVersions.Has "batch/v1" }} {{ .Capabilities.APIVersions.Has "route.openshift.io/v1" }} {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }} {{ .Capabilities.APIVersions }} {{ .Capabilities.Copy.KubeVersion.Version }} {{ .Capabilities }}
{{ .Capabilities.TillerVersion }}
{{ .Template.Name }} {{ .Template.BasePath }} {{ .Template }} {{ include (print .Template.BasePath "/_named.tpl") . }}
{{ .Values }} {{ .Values.int }} {{ .Values.float }} {{ .Values.big }} {{ .Values.bool }} {{ .Values.null }} {{ .Values.no }} {{ .Values.string }} {{ .Values.list }} {{ .Values.map }} {{ .Values.date }} {{ .Values.octal }} {{ .Values.empty }}
{{ .Values.YAML }} {{ .Values.AsMap }} {{ .Values.Table "map" }} {{ .Values.PathValue "map.a" }}
{{ .Values.Table "no" }}
{{ .Values.PathValue "map" }}
{{ .Values.no.no }}
{{ .Values.int.no }}
{{ .NoSuch }} {{ .NoSuch | quote }}
{{ with .Values.map }}{{ .a }}{{ $.Values.int }}{{ else }}x{{ end }} {{ with .Values.no }}x{{ else with .Values.int }}{{ . }}{{ end }} {{ if and .Values.bool (not .Values.no) }}y{{ else if 1 }}z{{ end }} {{ range $k, $v := .Values.map }}{{ $k }}={{ $v }},{{ end }} {{ range $i, $e := .Values.list }}{{ $i }}{{ $e }}{{ if eq $i 1 }}{{ break }}{{ end }}{{ else }}none{{ end }} {{ range .Values.list }}{{ if eq . "b" }}{{ continue }}{{ end }}{{ . }}{{ end }} {{ range .Values.no }}x{{ else }}none{{ end }}
{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }} {{- /* comment */ -}} {{ "trim" -}}  
{{ block "blocked" . }}b{{ .Values.int }}{{ end }} {{ define "defined" }}d{{ end }}{{ template "defined" }}
{{ template "loop" . }}
{{ include "loop" . }}
{{ $undefined }}
{{ nosuch 1 }}
{{ if }}
{{ end }}
{{ "unclosed
{{ upper 1 }}
{{ upper }}
{{ upper .Values.no }}
{{ upper .Values.null | quote }}
{{ (index .Values.list 0) | upper | printf "%s-%s" "a" }} {{ .Values.string | trunc 3 | trimSuffix "-" }}
{{ .Values.int | toString | b64enc | quote }} {{ 5000000 }} {{ 1e9 }} {{ .Values.big | int64 }} {{ .Values.float | int }}
{{ nil }}
{{ guardTick }}
{{ guardLeave }}
{{ range guardEnter }}{{ end }}
plain text: <no value>, {{ "<no value>" }}, \u00e9 é
`

// chartOf returns a chart with a template.
func chartOf(t testing.TB, template string) []byte {
	return pack(t, "c", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.2.3\nappVersion: '4.5'\nkeywords: [a, b]\nannotations: {k: v}\n" +
			"maintainers: [{name: m, email: m@example.com}]\nhome: https://example.com\n",
		"values.yaml": "int: 7\nfloat: 1.5\nbig: 12345678901\nbool: true\n'null':\nstring: abc-def\nlist: [a, b, c]\nmap: {a: 1, b: {c: x}}\n" +
			"date: 2020-01-02\noctal: 0777\nempty: {}\n",
		"config/a.txt":         "one\ntwo\n",
		"config/b.txt":         "x",
		"templates/_named.tpl": `{{ define "named" }}named {{ .Values | kindOf }}{{ end }}{{ define "empty" }}{{ end }}{{ define "loop" }}{{ include "loop" . }}{{ end }}`,
		"templates/t.txt":      template,
	})
}

// compareArchive compares an archive.
func compareArchive(t *testing.T, data []byte, o helmtemplate.Options, seen *outcome) []string {
	t.Helper()
	return compare(t, func() (*chart.Chart, error) { return loader.LoadArchive(bytes.NewReader(data)) },
		func() (*helmtemplate.Chart, error) {
			return helmtemplate.Parse(t.Context(), data, "c.tgz", helmtemplate.Limits{})
		}, o, seen)
}

// Every function and every object of templates means what it means in the library.
func TestFunctions(t *testing.T) {
	var seen outcome
	for line := range strings.Lines(expressions) {
		t.Run(line, func(t *testing.T) {
			if random := compareArchive(t, chartOf(t, line), helmtemplate.Options{}, &seen); len(random) > 0 {
				t.Error("it is random")
			}
		})
	}
	t.Logf("%+v", seen)
	if seen.rendered < 60 || seen.failed < 40 {
		t.Errorf("%+v", seen)
	}
	called := regexp.MustCompile(`\w+`).FindAllString(expressions, -1)
	for _, name := range helmtemplate.Functions() {
		if !slices.Contains(called, name) {
			t.Errorf("no expression calls %s", name)
		}
	}
}
