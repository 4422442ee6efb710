{{- define "paceline.name" -}}
{{ printf "%s-operator" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "paceline.labels" -}}
app.kubernetes.io/name: paceline-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "paceline.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "paceline.server" -}}
{{ printf "%s-server" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "paceline.serverLabels" -}}
app.kubernetes.io/name: paceline-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
