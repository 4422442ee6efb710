{{- define "paceline.name" -}}
{{ printf "%s-operator" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The namespaces that it looks after, joined by commas; none: all. */}}
{{- define "paceline.namespaces" -}}
{{ if .Values.namespaced }}{{ .Release.Namespace }}{{ else }}{{ join "," .Values.namespaces }}{{ end }}
{{- end }}

{{- define "paceline.labels" -}}
app.kubernetes.io/name: paceline-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "paceline.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "paceline.agentFiles" -}}
{{ .Values.image.repository }}-agent:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The file of thresholds in the state folder, for the pods of the operator and of the server. */}}
{{- define "paceline.thresholds" -}}
apiVersion: paceline.dev/v1alpha1
kind: Thresholds
spec: {{- toYaml .Values.thresholds | nindent 2 }}
{{- end }}

{{- define "paceline.server" -}}
{{ printf "%s-server" .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "paceline.serverLabels" -}}
app.kubernetes.io/name: paceline-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What it may do in each namespace: as in deploy/kustomize/rbac.yaml. */}}
{{- define "paceline.rules" -}}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
- apiGroups: [paceline.dev]
  resources: [trainingjobs]
  verbs: [get, list, watch, delete, patch]
- apiGroups: [paceline.dev]
  resources: [trainingjobs/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, create, delete]
- apiGroups: [""]
  resources: [pods/proxy, pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [pods/resize]
  verbs: [patch]
- apiGroups: [""]
  resources: [services]
  verbs: [get, create]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, update]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, create]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end }}
