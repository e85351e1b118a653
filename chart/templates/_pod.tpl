{{/* What the pod security standard `restricted` asks for. */}}
{{- define "syncwright.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "syncwright.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Who may see and change what: for each operator what `syncwright rbac` prints for it. */}}
{{- define "syncwright.rules" -}}
{{ .Files.Get "files/rules/definitions.yaml" | trim }}
{{- $root := . }}
{{- range $operator, $on := .Values.operators }}
{{- if $on }}
{{ $root.Files.Get (printf "files/rules/%s.yaml" $operator) | trim }}
{{- end }}
{{- end }}
{{- with .Values.rbac.rules }}
{{ toYaml . }}
{{- end }}
{{- end }}
