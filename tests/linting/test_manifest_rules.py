"""Kubernetes manifests: what each rule finds, what it leaves alone, and documents that cannot be read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline import linting
from paceline.model.explanations.findings import Finding

SANE = """\
apiVersion: v1
kind: Service
metadata: {name: clicks-ps-0, namespace: ads}
spec:
  clusterIP: None
  selector: {job-name: clicks, role: ps}
  ports: [{port: 2222}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: clicks-worker-0, namespace: ads}
spec:
  template:
    metadata:
      labels: {job-name: clicks, role: worker}
    spec:
      imagePullSecrets: [{name: registry.login}]
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchExpressions:
                - {key: role, operator: In, values: [ps]}
                - {key: job-name, operator: In, values: [clicks]}
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
              - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      containers:
      - name: worker
        image: registry.example.com:5000/clicks:1.4
        command: [python, train.py, "--ps_hosts=clicks-ps-0:2222"]
        resources:
          requests: {cpu: 2, memory: 4Gi}
          limits: {cpu: 2, memory: 4Gi}
      restartPolicy: OnFailure
"""


def lint(text: str | bytes) -> tuple[Finding, ...]:
    return linting.lint_manifests(text, "m.yaml")


CASES = [
    ("K8S001", "kind: Service\n", "kind: Service\n  x: 1\n", 3, "this is not YAML"),
    ("K8S002", "  clusterIP: None", "  clusterIP: None\n  clusterIP: None", 6, "given twice"),
    ("K8S002", "  clusterIP: None", "  clusterIP: None\n  8080: x", 6, "is an integer to YAML"),
    ("K8S003", "kind: Job\n", "", 9, "no kind"),
    ("K8S101", "{key: role, operator: In, values: [ps]}", "{key: role, operator: NotIn, values: [ps]}",
     26, "repels"),
    ("K8S101", "{key: role, operator: In, values: [ps]}", "{key: role, operator: DoesNotExist}",
     26, "repels"),
    ("K8S102", "job-name: clicks, role: ps", "role: ps", 6, "only at role"),
    ("K8S102", "                - {key: job-name, operator: In, values: [clicks]}\n", "", 24, "only at role"),
    ("K8S103", "key: kubernetes.io/arch", "key: rack", 28, "rack"),
    ("K8S104", "      containers:", "      nodeName: node-7\n      containers:", 33,
     "bound to the node 'node-7'"),
    ("K8S201", "          limits: {cpu: 2, memory: 4Gi}\n", "", 38, "never gets exclusive cores"),
    ("K8S202", "limits: {cpu: 2, memory: 4Gi}", "limits: {cpu: 2}", 37, "no memory limit"),
    ("K8S203", "requests: {cpu: 2, ", "requests: {cpu: 1500m, ", 38, "'1500m' CPU"),
    ("K8S203", "limits: {cpu: 2, ", "limits: {cpu: 0.5, ", 39, "'0.5' CPU"),
    ("K8S204", "limits: {cpu: 2, ", "limits: {cpu: 4, ", 38, "requests '2' CPU and is limited to '4'"),
    ("K8S204", "requests: {cpu: 2, memory: 4Gi}", "requests: {cpu: 2, memory: 1Gi}", 38, "of memory"),
    ("K8S205", "limits: {cpu: 2, memory: 4Gi}", "limits: {cpu: 2, memory: 512m}", 39, "512Mi is meant?"),
    ("K8S205", "limits: {cpu: 2, memory: 4Gi}", "limits: {cpu: 2, memory: 4GB}", 39, "is not a quantity"),
    ("K8S205", "limits: {cpu: 2, memory: 4Gi}", "limits: {cpu: 2, memory: 4096}", 39, "too few"),
    ("K8S205", "limits: {cpu: 2, memory: 4Gi}", "limits: {cpu: 2, memory: 20Mi}", 39, "too few"),
    ("K8S205", "limits: {cpu: 2, ", "limits: {cpu: 2000, ", 39, "no node has so many"),
    ("K8S301", "apiVersion: batch/v1\nkind: Job", "apiVersion: apps/v1\nkind: Deployment", 40, "never ends"),
    ("K8S301", "batch/v1\nkind: Job\nmetadata: {name: clicks-worker-0, namespace: ads}\nspec:\n  template:",
     "v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  x:", None, None),
    ("K8S401", "labels: {job-name", "labels: {repilca: a, job-name", 15, "misspelt replica"),
    ("K8S401", "kubernetes.io/hostname", "kubernetes.io/hostnme", None, None),
    ("K8S401", "key: kubernetes.io/arch", "key: kubernets.io/arch", 32, "kubernetes.io/arch"),
    ("K8S501", "apiVersion: batch/v1\nkind: Job", "apiVersion: batch/v1beta1\nkind: CronJob", 9, "1.25"),
    ("K8S501", "apiVersion: batch/v1\nkind: Job", "apiVersion: kubeflow.org/v1beta2\nkind: TFJob", 9,
     "Kubeflow 1.0"),
    ("K8S502", "limits: {cpu: 2, ", "limits: {alpha.kubernetes.io/nvidia-gpu: 1, cpu: 2, ", 39,
     "in Kubernetes 1.11"),
    ("K8S502", "key: kubernetes.io/arch", "key: node-role.kubernetes.io/master", 32, "in Kubernetes 1.25"),
    ("K8S601", "registry.login", "Registry_Login", 17, "cannot be the name"),
    ("K8S602", "clusterIP: None", "clusterIP: none", 5, "only None"),
    ("K8S602", "clusterIP: None", "clusterIP: null", 5, "only None"),
    ("K8S603", "[python, train.py,",
     '[sh, -c, "wget http://x/a.tgz && tar xf a.tgz && python a/train.py",', 36, "wget"),
    ("K8S604", "clicks:1.4", "clicks:latest", 35, "latest"),
    ("K8S604", "clicks:1.4", "clicks", 35, "no tag"),
    ("K8S605", "{name: clicks-ps-0, namespace: ads}", "{name: '{{ name }}-ps', namespace: '{{ name }}'}",
     3, "own name"),
]  # fmt: skip


def test_the_sane_manifests_have_no_findings() -> None:
    assert lint(SANE) == ()
    assert lint(SANE.replace("\n", "\r\n")) == ()
    assert lint("%YAML 1.2\n---\n" + SANE) == ()
    assert lint("") == ()
    assert lint("---\n---\n# nothing\n...\n") == ()


@pytest.mark.parametrize(("code", "old", "new", "line", "said"), CASES)
def test_each_rule_finds_what_it_is_for(
    code: str, old: str, new: str, line: int | None, said: str | None
) -> None:
    assert old in SANE
    found = [finding for finding in lint(SANE.replace(old, new, 1)) if finding.code == code]
    if said is None:
        assert not found
        return
    assert found
    assert said in found[0].message
    assert found[0].position is not None
    assert found[0].position.line == line


def test_every_manifest_rule_has_a_case() -> None:
    rules = {rule.code for rule in linting.catalogue() if rule.code.startswith("K8S")}
    assert rules == {case[0] for case in CASES}


@pytest.mark.parametrize(
    "text",
    [
        SANE.replace("clusterIP: None", 'clusterIP: "None"'),
        SANE.replace("clusterIP: None", "clusterIP: 10.0.0.3"),
        SANE.replace("clusterIP: None", "clusterIP:"),
        SANE.replace("kubernetes.io/arch", "node.kubernetes.io/instance-type"),
        SANE.replace(
            "labels: {job-name", "labels: {state: a, servers: b, tasks: c, worker: d, owned: e, job-name"
        ),
        SANE.replace("[python, train.py,", '[sh, -c, "curl -fsS http://localhost:8080/health",'),
        SANE.replace("cpu: 2", "cpu: 2000m"),
        SANE.replace("image: registry.example.com:5000/clicks:1.4", "image: '{{ image }}'"),
        SANE.replace("kind: Job", "kind: Job  # {{ not yaml }}"),
        SANE
        + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n"
        "      containers:\n      - name: web\n        image: web:1\n"
        "        resources: {limits: {cpu: 1, memory: 1Gi}}\n",
        SANE + "---\napiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {rack: b}}\n",
    ],
)
def test_sane_manifests(text: str) -> None:
    assert lint(text) == ()


def test_labels_that_a_node_of_the_file_has_are_not_hand_made() -> None:
    text = SANE.replace("kubernetes.io/arch", "rack")
    assert [finding.code for finding in lint(text)] == ["K8S103"]
    assert lint(text + "---\napiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {rack: b}}\n") == ()


def test_a_key_that_is_rarer_than_its_twin() -> None:
    text = "".join(
        f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{i}, labels: {{{key}: a}}}}\n"
        for i, key in enumerate(["tenantry", "tenantry", "tenatnry"])
    )
    (finding,) = lint(text)
    assert finding.code == "K8S401"
    assert "tenantry" in finding.message


def test_one_unreadable_document_does_not_hide_the_others() -> None:
    text = f"a: [\n---\n{SANE.replace('clusterIP: None', 'clusterIP: none')}---\njust text\n"
    found = [(finding.position.line, finding.code) for finding in lint(text) if finding.position]
    assert (7, "K8S602") in found
    assert [code for _, code in found].count("K8S001") == 2


def test_items_of_a_list() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: extensions/v1beta1\n  kind: Ingress\n"
    (finding,) = lint(text)
    assert (finding.code, finding.position and finding.position.line) == ("K8S501", 4)
    assert "1.22" in finding.message
    assert finding.path == "items[0].apiVersion"


@pytest.mark.parametrize(
    ("api", "kind", "version"),
    [
        ("extensions/v1beta1", "DaemonSet", "1.16"),
        ("apps/v1beta2", "StatefulSet", "1.16"),
        ("rbac.authorization.k8s.io/v1beta1", "Role", "1.22"),
        ("policy/v1beta1", "PodSecurityPolicy", "1.25"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.26"),
        ("storage.k8s.io/v1beta1", "CSIStorageCapacity", "1.27"),
        ("flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema", "1.29"),
        ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", "1.32"),
    ],
)
def test_removed_versions(api: str, kind: str, version: str) -> None:
    (finding,) = lint(f"apiVersion: {api}\nkind: {kind}\n")
    assert finding.message.endswith(f"removed in Kubernetes {version}")


PS = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: clicks-ps}
spec:
  selector: {matchLabels: {job-name: clicks, role: ps}}
  template:
    metadata: {labels: {job-name: clicks, role: ps}}
    spec:
      containers:
      - name: main
        image: team/clicks:1
        command: [python, main.py]
        resources: {limits: {cpu: 1, memory: 1Gi}}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("team/clicks:1", "tensorflow/tensorflow:1.4.0"),
        ("team/clicks:1", "registry.example.com:5000/ml/tf-clicks:1"),
        (
            "command: [python, main.py]",
            "command: [python, main.py]\n        args: [--ps_hosts=a, --task_index=0]",
        ),
        ("command: [python, main.py]", "command: [sh, -c, 'python main.py --job_name ps']"),
        ("command: [python, main.py]", "env: [{name: TF_CONFIG, value: '{}'}]"),
        (
            "command: [python, main.py]",
            "env: [{name: PS_HOSTS, valueFrom: {configMapKeyRef: {name: c, key: k}}}]",
        ),
    ],
)
def test_what_trains_is_known_by_its_containers(old: str, new: str) -> None:
    assert [finding.code for finding in lint(PS)] == []
    assert [finding.code for finding in lint(PS.replace(old, new))] == ["K8S301"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: clicks-ps", "name: tensorflow-ps, annotations: {note: '--ps_hosts of TF_CONFIG'}"),
        ("apiVersion", "# tensorflow, --job_name=ps\napiVersion"),
        ("team/clicks:1", "nginx:1.27"),
        ("team/clicks:1", "tensorflow/serving:2.8.0"),
        ("team/clicks:1", "tensorflow/tensorflow:2.4.0-jupyter"),
        ("team/clicks:1", "kubeflow/tf-job-operator:v1"),
        (
            "team/clicks:1\n        command: [python, main.py]",
            "tensorflow/tensorflow:2.4.0\n        command: [tensorboard]",
        ),
        ("- name: main", "- name: tensorflow"),
    ],
)
def test_words_elsewhere_make_no_training(old: str, new: str) -> None:
    assert old in PS
    assert lint(PS.replace(old, new)) == ()


@pytest.mark.parametrize(
    ("selector", "is_scoped"),
    [
        ('{job: ps, task: "0"}', False),
        ("{job: ps}", False),
        ("{name: ps-0}", False),
        ("{app: tf-worker, index: '3'}", False),
        ("{app: tensorflow, tier: ps}", False),
        ("{job: clicks, task: '0'}", True),
        ("{app: clicks, role: ps}", True),
        ("{job: '{{ name }}', role: ps}", True),
        ("{role: '{{ role }}'}", False),
        ("{app: redis, role: master}", True),
        ("{role: parameter-server}", False),
        ("{example.com/component: ads-operator}", True),
    ],
)
def test_selectors_are_judged_by_their_values(selector: str, is_scoped: bool) -> None:
    text = SANE.replace("{job-name: clicks, role: ps}", selector, 1)
    assert [finding.code for finding in lint(text)] == ([] if is_scoped else ["K8S102"])


@pytest.mark.parametrize(
    ("head", "selector", "is_scoped"),
    [
        (
            '{% for job in ["worker", "ps"] %}{% for i in range(3) %}',
            'job: {{ job }}\n    task: "{{ i }}"',
            False,
        ),
        ('{% for job in ["worker", "ps"] %}', "job: {{ job }}\n    name: {{ name }}", True),
        ('{% for job in ["clicks", "views"] %}', "job: {{ job }}\n    role: ps", True),
        ("{{- range $i := until 3 }}", "job: ps\n    task: {{ $i | quote }}", False),
        ("{{- range $i, $job := .Values.jobs }}", "job: {{ $job }}\n    role: ps", True),
    ],
)
def test_variables_of_loops_have_the_values_that_stand_there(
    head: str, selector: str, is_scoped: bool
) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  selector:\n"
    text = f"{head}\n---\n{service}    {selector}\n"
    assert [finding.code for finding in lint(text)] == ([] if is_scoped else ["K8S102"])


def test_forty_alike_are_one_with_their_number() -> None:
    pod = "---\n" + SANE.partition("---\n")[2].replace("limits: {cpu: 2, memory: 4Gi}", "limits: {cpu: 2}")
    found = lint(pod * 40)
    assert [finding.code for finding in found] == ["K8S202"]
    assert found[0].message == "the container has no memory limit (40 alike, the last at line 1317)"
    assert found[0].position is not None
    assert found[0].position.line == 30
    assert len(lint(pod * 3)) == 3


def test_nothing_of_a_file_acts_on_the_terminal() -> None:
    text = r"""
apiVersion: v1
kind: Service
metadata: {name: a}
spec:
  clusterIP: "None "
  selector: {"role\e[31m\u202e": ps}
  podAntiAffinity:
    x: {labelSelector: {matchExpressions: [{key: "a\e[2J", operator: NotIn, values: ["b\a"]}]}}
  nodeAffinity: {key: "rack\e[2J", operator: In}
  containers: [{name: a, image: "x:latest\e[2J", resources: {limits: {memory: "4\eG"}}}]
"""
    found = linting.lint_manifests(text, "a\x1b[2J.yaml")
    assert {"K8S101", "K8S102", "K8S103", "K8S205"} <= {finding.code for finding in found}
    for finding in found:
        assert all(
            each.isprintable() for each in (finding.message, finding.fix, finding.path, str(finding.position))
        )


@pytest.mark.parametrize("memory", ["16Mi", "1Gi"])
def test_a_small_program_beside_may_have_little_memory(memory: str) -> None:
    assert lint(PS.replace("memory: 1Gi", f"memory: {memory}")) == ()


@pytest.mark.parametrize(
    ("requests", "limits", "severities"),
    [
        ("{cpu: 1, memory: 1Gi}", "{cpu: 1000m, memory: 1024Mi}", []),
        ("{cpu: 1, memory: 1Gi}", "{cpu: 2, memory: 4Gi}", ["warning", "warning"]),
        ("{cpu: 2, memory: 1Gi}", "{cpu: 1, memory: 1Gi}", ["error"]),
        ("{nvidia.com/gpu: 1}", "{nvidia.com/gpu: 2, memory: 1Gi}", ["error"]),
        ("{nvidia.com/gpu: 1}", "{nvidia.com/gpu: '1', memory: 1Gi}", []),
        ("{cpu: '{{ cpu }}'}", "{cpu: 1, memory: 1Gi}", []),
        ("[1]", "{memory: [2]}", []),
    ],
)
def test_requests_are_held_against_limits(requests: str, limits: str, severities: list[str]) -> None:
    text = PS.replace("{limits: {cpu: 1, memory: 1Gi}}", f"{{requests: {requests}, limits: {limits}}}")
    found = [finding for finding in lint(text) if finding.code != "K8S202"]
    assert [str(finding.severity) for finding in found] == severities
    assert {finding.code for finding in found} <= {"K8S204"}


def test_a_name_of_old_beside_that_of_today_is_for_clusters_of_old() -> None:
    text = "{{ if a }}\n  alpha.kubernetes.io/nvidia-gpu: 1\n{{ else }}\n  nvidia.com/gpu: 1\n{{ end }}\n"
    text = f"apiVersion: v1\nkind: Pod\nlimits:\n{text}"
    assert lint(text) == ()
    assert [finding.code for finding in lint(text.replace("  nvidia.com/gpu: 1\n", ""))] == ["K8S502"]


def test_a_template_may_have_a_version_for_clusters_of_old() -> None:
    old, new = ("apiVersion: extensions/v1beta1\n", "apiVersion: apps/v1\n")
    text = f"{{{{- if a }}}}\n{old}{{{{- else }}}}\n{new}{{{{- end }}}}\nkind: Deployment\n"
    assert lint(text) == ()
    assert [finding.code for finding in lint(text.replace("apiVersion: apps/v1\n", ""))] == ["K8S501"]


def test_a_part_of_an_overlay_is_no_whole_container() -> None:
    text = "- {op: replace, path: /spec/replicas, value: 4}\n---\n" + PS.replace(
        "        image: team/clicks:1\n", ""
    )
    text = text.replace("limits", "requests")
    assert lint(text) == ()


CHART = """\
{{- define "clicks.labels" -}}
app: {{ .Chart.Name }}
{{- end -}}
{{- $root := . -}}
{{- range $i := until (int .Values.ps.replicas) }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $root.Release.Name }}-ps-{{ $i }}
  labels: {{- include "clicks.labels" $root | nindent 4 }}
    role: ps
  {{- with $root.Values.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if $root.Values.headless }}
  clusterIP: None
  {{- else }}
  clusterIP: ""
  {{- end }}
  selector:
    {{- include "clicks.labels" $root | nindent 4 }}
    role: ps
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $root.Release.Name }}-ps-{{ $i }}
spec:
  template:
    metadata:
      labels: {{ include "clicks.labels" $root | nindent 8 }}
        role: ps
    spec:
      initContainers:
      {{- range $each := $root.Values.initContainers }}
      - {{- if $each.name }}
        name: {{ $each.name }}
        {{- end }}
        image: {{ $each.image }}
      {{- end }}
      containers:
      - name: ps
        image: "{{ $root.Values.repository }}:{{ $root.Values.tag }}"{{ if $root.x }}  # {{ .y }}{{ end }}
        args: {{ toYaml $root.Values.args | nindent 8 }}
        - --ps_hosts={{ template "hosts" $root }}
        command: [python, {{ if $root.Values.debug }}"-m", "pdb",{{ end }} train.py]
        env:
        {{- range $k, $v := $root.Values.env }}
        - name: {{ $k }}
          value: {{ $v | quote }}
        {{- end }}
        resources:
          {{- toYaml $root.Values.resources | nindent 10 }}
      restartPolicy: {{ if $root.Values.restart }}"OnFailure"{{ else }}"Never"{{ end }}
      nodeSelector:
        disk: ssd
{{ $root.Values.label | indent 8 }}: "yes"
      tolerations:
{{ toYaml $root.Values.tolerations | indent 6 }}
{{- end }}
{{- /*
A comment: over
 many: lines
*/}}
---
{{- if .Values.old }}
apiVersion: rbac.authorization.k8s.io/v1
{{- else if .Values.older }}
apiVersion: rbac.authorization.k8s.io/v1
{{- end }}
kind: Role
metadata: {name: {{ .Release.Name | quote }}}
rules:
{{- if .Values.all }}
- apiGroups: ["*"]
{{- else }}
  []
{{- end }}
"""


def test_a_right_chart_has_no_findings() -> None:
    assert lint(CHART) == ()


def test_what_is_wrong_in_a_chart_is_found_at_its_line() -> None:
    found = lint(
        CHART.replace('clusterIP: ""', "clusterIP: none").replace("clusterIP: None\n", "type: ClusterIP\n")
    )
    assert [(finding.code, finding.position and finding.position.line) for finding in found] == [
        ("K8S602", 21)
    ]


def test_branches_of_a_template_do_not_count_as_repeats() -> None:
    branches = "{% if a %}\nmetadata: {name: x}\n{% else %}\nmetadata: {name: y}\n{% endif %}\n"
    text = f"apiVersion: v1\nkind: Pod\n{branches}"
    assert lint(text) == ()


def test_templates_keep_every_line() -> None:
    text = (
        "{# a comment\nover two lines #}\n{%- macro hosts() -%}\n  {{ name }}:1,\n{%- endmacro %}\n"
        "{{- if .Values.x }}\napiVersion: v1\nkind: Service\n{{- end }}\n"
        "spec: {clusterIP: NONE, x: {{ y }}}\n"
    )
    (finding,) = lint(text)
    assert str(finding.position) == "m.yaml:10:19"


def test_hostile_text() -> None:
    for text in (
        "{{" * 50_000,
        "{%" * 50_000,
        "{% macro a %}" * 5000,
        "---\n" * 5000,
        "[" * 10_000,
        "\0",
        b"\xff",
    ):
        assert isinstance(lint(text), tuple)
    assert any("not checked" in finding.message for finding in lint("---\na: b\n" * 1500))
    for finding in lint("a: \x1b[31m"):
        assert finding.message.isprintable()


PIECES = st.sampled_from(
    """\
---
a: b
kind: Pod
spec:
  containers:
  - {}
{{ x }}
{% if a %}
{#
%}
}}
labels: {a: {b: c}}
selector: x
matchExpressions: [x, {key: 1}]
podAntiAffinity:
labelSelector: 3
imagePullSecrets: [a, {name: [b]}]
resources: []
image:
command: {a: b}
metadata: 1
items: [1]
apiVersion: [x]
nodeAffinity: {key: {operator: x}}
containers: [{resources: {requests: x}}]
""".splitlines(keepends=True)
) | st.sampled_from(["\t", "- ", "&a ", "*a", "\n", "  "])


@settings(max_examples=examples(200))
@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_gives_findings_and_nothing_else(text: str | bytes) -> None:
    for finding in lint(text):
        assert finding.position is not None
        assert finding.message.isprintable()
