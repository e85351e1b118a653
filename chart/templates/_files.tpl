{{/* The definitions of the operators that are switched on, and those of the values. */}}
{{- define "syncwright.controllers" -}}
{{- $on := .Values.operators -}}
{{- range $text := splitList "\n---\n" (.Files.Get "files/controllers.yaml") -}}
{{- if get $on (fromYaml $text).metadata.name }}
---
{{ trim $text }}
{{ end -}}
{{- end -}}
{{- with .Values.controllers }}
---
{{ trim . }}
{{ end -}}
{{- end }}

{{/* Templates by their path below the hooks folder, as JSON: a path is no key of a ConfigMap. */}}
{{- define "syncwright.hooks" -}}
{{- $hooks := dict -}}
{{- $root := . -}}
{{- range $operator, $on := .Values.operators -}}
{{- if $on -}}
{{- range $path, $_ := $root.Files.Glob (printf "files/hooks/%s/**.yaml" $operator) -}}
{{- if ne (base $path) "crd.yaml" -}}
{{- $_ := set $hooks (trimPrefix "files/hooks/" $path) ($root.Files.Get $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $path, $text := .Values.hooks -}}
{{- $_ := set $hooks $path $text -}}
{{- end -}}
{{- toJson $hooks -}}
{{- end }}

{{/* The ConfigMap's data, and below which path each key is mounted. */}}
{{- define "syncwright.data" -}}
controllers.yaml: {{ include "syncwright.controllers" . | trim | toJson }}
{{- range $path, $text := include "syncwright.hooks" . | fromJson }}
hooks.{{ $path | replace "/" "." }}: {{ $text | toJson }}
{{- end }}
{{- end }}

{{- define "syncwright.items" -}}
- {key: controllers.yaml, path: controllers.yaml}
{{- range $path, $_ := include "syncwright.hooks" . | fromJson }}
- {key: hooks.{{ $path | replace "/" "." }}, path: hooks/{{ $path }}}
{{- end }}
{{- end }}
