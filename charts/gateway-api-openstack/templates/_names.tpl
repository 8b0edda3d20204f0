{{/* One release per namespace; the name of every object, and of the lease that the replicas share. */}}
{{- define "name" -}}openstack-gateway-controller{{- end }}

{{/* Cluster-wide names carry the namespace unless it is the usual one, so that two releases do not meet. */}}
{{- define "clusterName" -}}
{{- if eq .Release.Namespace "gateway-api-openstack-system" -}}openstack-gateway-controller{{- else -}}{{ printf "openstack-gateway-controller-%s" .Release.Namespace | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: openstack-gateway-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/part-of: gateway-api-openstack
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}
