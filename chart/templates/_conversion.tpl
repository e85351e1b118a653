{{/* The names of the shipped CRDs whose objects are converted by a hook, as JSON. */}}
{{- define "syncwright.converted" -}}
{{- $names := list -}}
{{- $root := . -}}
{{- range $operator, $on := .Values.operators -}}
{{- if $on -}}
{{- $crd := $root.Files.Get (printf "files/hooks/%s/crd.yaml" $operator) | fromYaml -}}
{{- if eq (dig "conversion" "strategy" "None" $crd.spec) "Webhook" -}}
{{- $names = append $names $crd.metadata.name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{/* Changes the CRD in place: this release's pods are asked, and whoever makes their certificate has the API server trust it. */}}
{{- define "syncwright.convertedHere" -}}
{{- $values := .root.Values -}}
{{- if not $values.webhooks.enabled -}}
{{- $kind := .crd.spec.names.kind -}}
{{- fail (printf "%s has several versions, between which a webhook converts; leave webhooks.enabled on, or switch operators.%s off, or crds.operators where the CRD comes from elsewhere" $kind (lower $kind)) -}}
{{- end -}}
{{- $service := printf "%s-webhook" (include "syncwright.name" .root) -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $client := .crd.spec.conversion.webhook.clientConfig -}}
{{- $_ := set $client "service" (merge (dict "name" $service "namespace" $namespace) $client.service) -}}
{{- if $values.webhooks.certManager.enabled -}}
{{- $_ := unset .crd.metadata.labels "syncwright.io/inject-ca-from" -}}
{{- $_ := set .crd.metadata "annotations" (dict "cert-manager.io/inject-ca-from" (printf "%s/%s" $namespace $service)) -}}
{{- else -}}
{{- $_ := set .crd.metadata.labels "syncwright.io/inject-ca-from" (printf "%s.%s" $namespace $service) -}}
{{- end -}}
{{- end }}
