{{- define "syncwright.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- end }}

{{- define "syncwright.account" -}}
{{- .Values.serviceAccount.name | default (include "syncwright.name" .) -}}
{{- end }}

{{- define "syncwright.selector" -}}
app.kubernetes.io/name: syncwright
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "syncwright.labels" -}}
{{ include "syncwright.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "syncwright.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
