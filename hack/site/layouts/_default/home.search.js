{{- $pages := slice -}}
{{- range site.RegularPages -}}
{{- $headings := slice -}}
{{- range .Fragments.HeadingsMap -}}{{- $headings = $headings | append (dict "text" .Title "id" .ID) -}}{{- end -}}
{{- $pages = $pages | append (dict "title" (partial "title.html" .) "url" (strings.TrimPrefix "/" .RelPermalink) "headings" $headings "text" (.Plain | strings.Truncate 20000 "" )) -}}
{{- end -}}
window.docPages = {{ $pages | jsonify }};
