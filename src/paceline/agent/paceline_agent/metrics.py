"""What the spool's lines say, in Prometheus format."""

import json
import math
from typing import Any, Dict, NamedTuple, Optional, Tuple

from .configs import Config


class Metric(NamedTuple):
    """A Prometheus metric, and the fields of spool lines that it is made of, by additional labels."""

    name: str
    kind: str
    about: str
    fields: Dict[str, str]


#: By the type of the spool line. Counters add up the lines' values per interval, gauges keep the last value;
#: notes carry totals so far.
METRICS: Dict[str, Tuple[Metric, ...]] = {
    "sample": (
        Metric("paceline_replica_cpu_seconds", "counter", "CPU time used.", {"": "cpu_seconds"}),
        Metric("paceline_replica_cpu_limit_cores", "gauge", "CPU quota.", {"": "cpu_limit_cores"}),
        Metric("paceline_replica_throttled_seconds", "counter", "Time throttled.", {"": "throttled_seconds"}),
        Metric("paceline_replica_memory_bytes", "gauge", "Working set.", {"": "memory_bytes"}),
        Metric("paceline_replica_memory_limit_bytes", "gauge", "Memory limit.", {"": "memory_limit_bytes"}),
        Metric(
            "paceline_replica_network_receive_bytes",
            "counter",
            "Bytes received.",
            {"": "network_received_bytes"},
        ),
        Metric(
            "paceline_replica_network_transmit_bytes", "counter", "Bytes sent.", {"": "network_sent_bytes"}
        ),
        Metric("paceline_replica_sent_segments", "counter", "TCP segments sent anew.", {"": "sent_segments"}),
        Metric(
            "paceline_replica_retransmitted_segments",
            "counter",
            "TCP segments sent again.",
            {"": "retransmitted_segments"},
        ),
        Metric(
            "paceline_replica_context_switches",
            "counter",
            "Context switches while they were counted.",
            {'kind="voluntary"': "voluntary_switches", 'kind="involuntary"': "involuntary_switches"},
        ),
        Metric(
            "paceline_replica_run_delay_seconds",
            "counter",
            "Time for which threads waited for a core, while it was measured.",
            {"": "run_delay_seconds"},
        ),
        Metric(
            "paceline_replica_pressure_seconds",
            "counter",
            "Time for which at least one thread waited for a resource, while it was measured.",
            {
                'resource="cpu"': "cpu_pressure_seconds",
                'resource="memory"': "memory_pressure_seconds",
                'resource="io"': "io_pressure_seconds",
            },
        ),
        Metric("paceline_replica_threads", "gauge", "Threads of all processes.", {"": "threads"}),
        Metric(
            "paceline_replica_neighbours_cpu_cores",
            "gauge",
            "CPU that others used on the CPUs that this replica may use.",
            {"": "neighbours_cpu_cores"},
        ),
        Metric(
            "paceline_replica_stolen_cpu_cores",
            "gauge",
            "What the hypervisor gave to others of the CPUs that this replica may use, though they had work.",
            {"": "stolen_cpu_cores"},
        ),
        Metric(
            "paceline_replica_gpu_utilization_ratio", "gauge", "GPU load, 0 to 1.", {"": "gpu_utilization"}
        ),
        Metric("paceline_replica_gpu_memory_bytes", "gauge", "GPU memory used.", {"": "gpu_memory_bytes"}),
        Metric("paceline_replica_sampled_timestamp_seconds", "gauge", "When it was measured.", {"": "at"}),
    ),
    "step": (
        Metric("paceline_training_steps", "counter", "Steps of this replica.", {"": "steps"}),
        Metric("paceline_training_examples", "counter", "Examples of this replica.", {"": "examples"}),
        Metric(
            "paceline_training_input_wait_seconds",
            "counter",
            "Time waited for input.",
            {"": "input_wait_seconds"},
        ),
        Metric(
            "paceline_training_input_cpu_seconds",
            "counter",
            "CPU time of the threads that read and decode input.",
            {"": "input_cpu_seconds"},
        ),
        Metric(
            "paceline_training_all_reduce_seconds",
            "counter",
            "Time waited for the gradients of other ranks.",
            {"": "all_reduce_seconds"},
        ),
        Metric("paceline_training_global_step", "gauge", "Step of the whole job.", {"": "step"}),
        Metric("paceline_training_planned_steps", "gauge", "Steps that there will be.", {"": "total_steps"}),
        Metric("paceline_training_loss", "gauge", "Loss as last reported.", {"": "loss"}),
        Metric("paceline_training_reported_timestamp_seconds", "gauge", "When it reported.", {"": "at"}),
    ),
    "evaluation": (
        Metric("paceline_training_evaluated_step", "gauge", "Step of the evaluation.", {"": "step"}),
        Metric("paceline_training_auc", "gauge", "AUC as last evaluated.", {"": "auc"}),
        Metric("paceline_training_log_loss", "gauge", "Log loss as last evaluated.", {"": "log_loss"}),
        Metric("paceline_training_accuracy", "gauge", "Accuracy as last evaluated.", {"": "accuracy"}),
    ),
    "note": (
        Metric("paceline_agent_dropped_lines", "counter", "Lines not written.", {"": "dropped_lines"}),
        Metric("paceline_agent_rejected_reports", "counter", "Reports rejected.", {"": "rejected_reports"}),
        Metric("paceline_agent_failed_samples", "counter", "Samples failed.", {"": "failed_samples"}),
    ),
}


def measured(value: Any) -> Optional[float]:
    """Return a finite number for exposition, or None: scripts may report anything."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class Metrics:
    """What spool lines have said so far, in Prometheus format.

    Names follow https://prometheus.io/docs/practices/naming, the text follows exposition format 0.0.4. A
    metric that was never measured is left out.
    """

    def __init__(self, config: Config) -> None:
        owner = (config.job, config.role, config.index, config.attempt)
        pairs = zip(("job", "role", "index", "attempt"), owner)  # noqa: B905 - 3.6
        self._labels = ",".join(
            f"{name}={json.dumps(str(value), ensure_ascii=False)}" for name, value in pairs
        )
        self._values: Dict[Tuple[str, str], float] = {}
        self.take({"type": "note", "dropped_lines": 0, "rejected_reports": 0, "failed_samples": 0})

    def take(self, line: Dict[str, Any]) -> None:
        """Add what a line says."""
        fields = dict(line)
        used, interval = measured(line.get("cpu_cores")), measured(line.get("interval_seconds"))
        if used is not None and interval is not None:
            fields["cpu_seconds"] = used * interval
        values = dict(self._values)  # replaced as a whole, since another thread reads it
        for metric in METRICS.get(line["type"], ()):
            for labels, field in metric.fields.items():
                value = measured(fields.get(field))
                if value is None:
                    continue
                if metric.kind == "counter" and line["type"] != "note":
                    value = values.get((metric.name, labels), 0.0) + max(0.0, value)
                values[metric.name, labels] = value
        self._values = values

    def text(self) -> str:
        """Return all metrics as text."""
        values, lines = self._values, []
        for metric in (metric for metrics in METRICS.values() for metric in metrics):
            name = metric.name + "_total" * (metric.kind == "counter")
            found = [labels for labels in metric.fields if (metric.name, labels) in values]
            if found:
                lines += [f"# HELP {name} {metric.about}", f"# TYPE {name} {metric.kind}"]
            for labels in found:
                every = ",".join(filter(None, (self._labels, labels)))
                lines.append("%s{%s} %r" % (name, every, values[metric.name, labels]))
        return "\n".join(lines) + "\n"
