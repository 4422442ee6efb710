"""Watches the steps of PyTorch scripts: optimizers, batches of loaders, and exchanges between ranks.

A step is counted when an optimizer has made it; a thread reads the counts once a second. PyTorch's own hooks
are used where they exist (``register_optimizer_step_post_hook``, the statistics of
``DistributedDataParallel``); other functions are wrapped right after their module was executed.
"""

from __future__ import absolute_import

import atexit
import platform
import sys
import threading
import weakref

from . import guarding, reporting, signatures, stepping, tracebacks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, List, Mapping, Optional

clock = stepping.clock
#: After this long without a step, that is also reported: the step is very long, or training stands still.
STANDSTILL_SECONDS = 5.0
#: A backward pass that takes this many times as long as a usual step waits for other ranks.
MANY_STEPS = 10
#: How often a second ``DistributedDataParallel`` measures a step (about 20 us) and is read (40 us).
LOOKS_PER_SECOND = 10.0
#: On accelerators PyTorch itself measures only one step in this many, since measuring waits for the device.
SAMPLED_STEPS = 100
#: How long the end of the process waits for a report in progress.
_LAST_SECONDS = 5.0
#: Batches are tensors nested in tuples and dictionaries, searched to this depth.
_DEEPEST = 4


class TorchInstrument(object):
    """Everything that watches the PyTorch of this process.

    Args:
        environment: the environment with which the process began.
    """

    def __init__(self, environment):
        # type: (Mapping[str, str]) -> None
        self._reporter = reporting.Reporter(environment["PACELINE_REPORT_FILE"])
        tracebacks.connect()
        self._watch = TorchWatch(self._reporter, guarding.Guard(self._reporter))
        self._patches = {
            "torch.autograd": self._watch.patch_backward,
            "torch.optim.optimizer": self._watch.patch_optimizers,
            "torch.utils.data.dataloader": self._watch.patch_loaders,
            "torch.nn.parallel.distributed": self._watch.patch_replicas,
            "torch.distributed.distributed_c10d": self._watch.patch_collectives,
            "torch.cuda.amp.grad_scaler": self._watch.patch_scalers,
            "torch.amp.grad_scaler": self._watch.patch_scalers,
        }  # type: Dict[str, Callable[[ModuleType], None]]

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the watched functions of a PyTorch module."""
        if "paceline.training.reports" in sys.modules:
            return  # The training library reports by itself.
        try:
            self._patches[module.__name__](module)
        except signatures.Wrapped:
            return
        except (AttributeError, signatures.UnknownSignature) as error:
            self._reporter.say("%s cannot be looked into: %s" % (module.__name__, error))
            return
        if module.__name__ == "torch.optim.optimizer":
            version = getattr(sys.modules.get("torch.version"), "__version__", "?")
            self._reporter.say("PyTorch %s on Python %s" % (version, platform.python_version()))


class _Counted(object):
    """The steps of an optimizer, and the backward pass after which it made the last one."""

    __slots__ = ("backwards", "steps")

    def __init__(self):
        # type: () -> None
        self.steps = 0
        self.backwards = -1


class TorchWatch(object):
    """Counts what a PyTorch script does, and reports it once a second.

    Only the training thread counts and only the report thread reads, so neither needs a lock: whatever is
    counted while a report is made belongs to the next report.

    Args:
        reporter: takes the reports.
        guard: shields the script from errors.
    """

    def __init__(self, reporter, guard):
        # type: (reporting.Reporter, guarding.Guard) -> None
        self._reporter = reporter
        self._guard = guard
        self._ended = threading.Event()
        #: Optimizers by their identity; if there are several, the one with the most steps counts.
        self._optimizers = {}  # type: Dict[int, _Counted]
        self._backwards = 0
        #: When the current backward pass, input wait or exchange began, on ``clock``; 0: there is none.
        self._backward_since = self._input_since = self._exchange_since = 0.0
        #: Examples of the last batch that no backward pass has used yet; of all batches that were used; and
        #: of the batches that a step has used.
        self._pending = self._used = self._trained = 0
        self._is_counted = False
        self._loader = None  # type: Optional[str]
        self._waited = 0.0
        self._replicas = []  # type: List[weakref.ref[Any]]
        self._exchanges = False
        self._exchanged = 0.0
        #: How many steps are left until the statistics of the replicas are read, how many steps one reading
        #: stands for, and when they were last read.
        self._left = self._stride = 1
        self._looked = clock()
        self._is_sampled = False
        #: Whether a backward pass that waits for long was reported, and how long the last such pass took.
        self._is_late = False
        self._late_seconds = 0.0
        self._wants_loss = True
        self._is_scaled = False
        self._loss = None  # type: Any
        # What the last report covered.
        self._since = clock()
        self._counts = {}  # type: Dict[int, int]
        self._total = 0
        self._told_trained = 0
        self._told_waited = self._told_exchanged = 0.0
        self._step_seconds = 0.0

    # --- What is wrapped

    def patch_optimizers(self, module):
        # type: (ModuleType) -> None
        """Count each step: by PyTorch's hook from 2.0 on, before that by a function called in each step."""
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is not None:
            signatures.check(register, ("hook",))
            register(self._stepped)
            return
        optimizer = module.Optimizer
        original = getattr(optimizer, "_optimizer_step_code", None)
        if original is None:
            raise signatures.UnknownSignature("Optimizer has no hook that each step calls")
        signatures.check(original, ("self",))

        @signatures.wraps(original)
        def _optimizer_step_code(own):
            # type: (Any) -> Any
            self._stepped(own)
            return original(own)

        optimizer._optimizer_step_code = _optimizer_step_code

    def patch_backward(self, module):
        # type: (ModuleType) -> None
        """Wrap the backward pass, which ``Tensor.backward`` also uses."""
        original = module.backward
        signatures.check(original, ("tensors", "grad_tensors"))

        @signatures.wraps(original)
        def backward(tensors, *arguments, **named):
            # type: (Any, *Any, **Any) -> Any
            if self._backward_since:  # An activation checkpoint runs a nested backward pass.
                return original(tensors, *arguments, **named)
            if self._wants_loss and not self._is_scaled:
                self._guard(self._take_loss, tensors)
            self._backward_since = begun = clock()
            if not self._backwards and self._loader is None:
                self._since = begun
            try:
                result = original(tensors, *arguments, **named)
            finally:
                self._backward_since = 0.0
            if self._is_late:
                self._guard(self._note_late, begun)
            self._backwards += 1
            self._used += self._pending
            self._pending = 0
            return result

        module.backward = backward  # type: ignore[attr-defined]

    def patch_loaders(self, module):
        # type: (ModuleType) -> None
        """Wrap the functions that take batches from a ``DataLoader``, and that begin its iteration."""
        torch = module.torch
        loader = module.DataLoader
        begin = loader.__iter__
        signatures.check(begin, ("self",))
        iterators = [
            iterator for iterator in vars(module).values() if "__next__" in getattr(iterator, "__dict__", ())
        ]
        for iterator in iterators:
            signatures.check(iterator.__next__, ("self",))

        @signatures.wraps(begin)
        def __iter__(own):
            # type: (Any) -> Any
            if not torch.is_grad_enabled():  # The script evaluates.
                return begin(own)
            if self._loader is None:
                self._guard(self._note_loader, own)
            return self._waiting(begin, own)

        loader.__iter__ = __iter__
        for iterator in iterators:
            iterator.__next__ = self._taking(torch, iterator.__next__)

    def _taking(self, torch, original):
        # type: (Any, Callable[..., Any]) -> Callable[..., Any]
        @signatures.wraps(original)
        def __next__(own):
            # type: (Any) -> Any
            if self._input_since or not torch.is_grad_enabled():
                return original(own)
            # The same as `_waiting`, without one call more for each batch.
            self._input_since = begun = clock()
            try:
                batch = original(own)
            finally:
                self._input_since = 0.0
                self._waited += clock() - begun
            self._guard(self._take_batch, torch.Tensor, own, batch)
            return batch

        return __next__

    def _waiting(self, original, own):
        # type: (Callable[..., Any], Any) -> Any
        """Return the result of a loader's function, counting the time as input wait."""
        if self._input_since:  # One loader takes batches from another.
            return original(own)
        self._input_since = begun = clock()
        try:
            return original(own)
        finally:
            self._input_since = 0.0
            self._waited += clock() - begun

    def patch_replicas(self, module):
        # type: (ModuleType) -> None
        """Have ``DistributedDataParallel`` measure how long gradients take to exchange, as it can."""
        replica = module.DistributedDataParallel
        original = replica.__init__
        signatures.check(original, ("self", "module"))

        @signatures.wraps(original)
        def __init__(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> None
            original(own, *arguments, **named)
            self._guard(self._note_replica, own)

        replica.__init__ = __init__
        if "_sync_buffers" in vars(replica):
            signatures.check(replica._sync_buffers, ("self",))
            replica._sync_buffers = self._exchanging(replica._sync_buffers)

    def patch_collectives(self, module):
        # type: (ModuleType) -> None
        """Wrap the collective calls that a script makes itself, in which it waits for other ranks."""
        for name, expected in (("all_reduce", ("tensor", "op")), ("barrier", ("group",))):
            original = getattr(module, name)
            signatures.check(original, expected)
            setattr(module, name, self._exchanging(original, is_reduction=name == "all_reduce"))

    def _exchanging(self, original, is_reduction=False):
        # type: (Callable[..., Any], bool) -> Callable[..., Any]
        @signatures.wraps(original)
        def exchange(*arguments, **named):
            # type: (*Any, **Any) -> Any
            if is_reduction:
                self._exchanges = True
            self._exchange_since = begun = clock()
            try:
                return original(*arguments, **named)
            finally:
                self._exchange_since = 0.0
                self._exchanged += clock() - begun

        return exchange

    def patch_scalers(self, module):
        # type: (ModuleType) -> None
        """Take the loss before a ``GradScaler`` scales it."""
        scaler = module.GradScaler
        original = vars(scaler).get("scale")
        if original is None:  # Another module defines it.
            return
        signatures.check(original, ("self", "outputs"))

        @signatures.wraps(original)
        def scale(own, outputs):
            # type: (Any, Any) -> Any
            self._is_scaled = True
            if self._wants_loss:
                self._guard(self._take_loss, outputs)
            return original(own, outputs)

        scaler.scale = scale

    # --- What is noted in a step

    def _stepped(self, optimizer, arguments=None, named=None):
        # type: (Any, Any, Any) -> None
        """Count an optimizer's step once, even if its class calls another class that has the hook, too."""
        counted = self._optimizers.get(id(optimizer))
        if counted is None:
            counted = self._optimizers[id(optimizer)] = _Counted()
            self._guard(self._begin, optimizer)
        elif counted.backwards == self._backwards and counted.backwards:
            return
        counted.backwards = self._backwards
        if not self._backwards:  # Gradients do not come from a backward pass.
            self._used, self._pending = self._used + self._pending, 0
        self._trained = self._used
        counted.steps += 1
        self._left -= 1
        if self._left <= 0:
            self._guard(self._look)

    def _take_batch(self, tensor, iterator, batch):
        # type: (Any, Any, Any) -> None
        """Note how many examples a batch has: its first dimension, but at most the loader's batch size."""
        first = batch[0] if type(batch) is list else batch  # This is the common case.
        is_plain = type(first) is tensor and first.dim()
        rows = first.size(0) if is_plain else _rows(tensor, batch, _DEEPEST)
        try:
            most = iterator._index_sampler.batch_size
        except AttributeError:  # The script has a sampler of its own.
            most = None
        if most is not None and (rows is None or rows > most):
            rows = most
        if rows is not None:
            self._is_counted = True
            self._pending = rows

    def _take_loss(self, tensors):
        # type: (Any) -> None
        """Keep the number that gradients are computed of, without its graph."""
        if isinstance(tensors, (list, tuple)):
            if len(tensors) != 1:
                return
            tensors = tensors[0]
        if tensors.numel() != 1 or not tensors.is_floating_point():
            return
        self._wants_loss = False
        value = tensors.detach()
        # On an accelerator it is not computed yet: the report thread waits for it.
        self._loss = value.item() if value.device.type == "cpu" else value

    def _note_loader(self, loader):
        # type: (Any) -> None
        self._since = clock()
        workers = getattr(loader, "num_workers", None)
        size = getattr(loader, "batch_size", None)
        self._loader = "batches%s of a DataLoader%s" % (
            "" if size is None else " of %d" % size,
            "" if workers is None else " with %d worker%s" % (workers, "" if workers == 1 else "s"),
        )

    def _note_replica(self, replica):
        # type: (Any) -> None
        """Register a replica whose statistics are read."""
        if not hasattr(replica, "_get_ddp_logging_data"):
            self._reporter.say("this PyTorch does not measure its all-reduce")
            return
        self._looked = clock()
        if any(each.device.type != "cpu" for each in replica.parameters()):
            self._is_sampled, self._left = True, SAMPLED_STEPS
        self._replicas.append(weakref.ref(replica))

    def _look(self):
        # type: () -> None
        """Read how long the last step waited for gradients; the steps since the last reading count as equal.

        The training thread does this: a replica that waits for other ranks is locked.
        """
        replicas = [
            replica for replica in (reference() for reference in self._replicas) if replica is not None
        ]
        waited = sum(map(_waited_nanoseconds, replicas)) * 1e-9
        now = clock()
        if self._late_seconds and 2 * waited >= self._late_seconds:  # It was already counted when it ended.
            self._late_seconds = waited = 0.0
        # The measured step may be the slowest: all steps together waited at most for the elapsed time.
        seconds = max(now - self._looked, 1e-6)
        self._exchanged += min(waited * self._stride, seconds)
        stride = SAMPLED_STEPS if self._is_sampled else max(1, int(self._stride / LOOKS_PER_SECOND / seconds))
        if stride != self._stride and not self._is_sampled:
            for replica in replicas:
                replica._set_ddp_runtime_logging_sample_rate(stride)
        self._left, self._stride, self._looked = stride, stride, now

    def _note_late(self, begun):
        # type: (float) -> None
        """Count a backward pass that was reported while it waited."""
        self._is_late = False
        self._late_seconds = clock() - begun
        self._exchanged += self._late_seconds

    # --- What is reported

    def _begin(self, optimizer):
        # type: (Any) -> None
        """Start to report the steps of this process, if it is the first of its replica that trains."""
        if len(self._optimizers) > 1 or not self._reporter.owns():
            return
        before = _steps_before(optimizer)
        self._total = before or 0
        self._reporter.say(
            "its steps, made by %s; %s; %s%s"
            % (
                type(optimizer).__name__,
                self._loader or "batches: not seen",
                self._described(),
                "; global step: not seen" if before is None else "",
            )
        )
        thread = threading.Thread(target=self._follow, name="paceline reports", daemon=True)
        atexit.register(self._end, thread)
        thread.start()

    def _described(self):
        # type: () -> str
        """Return in words how gradients are exchanged."""
        if self._replicas:
            return "gradients: all-reduced by DistributedDataParallel"
        return "gradients: all-reduced by itself" if self._exchanges else "gradients: its own"

    def _end(self, thread):
        # type: (threading.Thread) -> None
        self._ended.set()
        thread.join(_LAST_SECONDS)

    def _follow(self):
        # type: () -> None
        """Report once a second which steps were made, until the process ends."""
        is_over = False
        while not is_over and not self._guard.is_broken:
            is_over = self._ended.wait(stepping.REPORT_SECONDS)
            self._guard(self._report, is_over)

    def _report(self, is_over):
        # type: (bool) -> None
        """Report the steps since the last report; report that there are none only if that lasts."""
        now, counts = clock(), {key: each.steps for key, each in list(self._optimizers.items())}
        steps = max(count - self._counts.get(key, 0) for key, count in counts.items())
        seconds, trained = now - self._since, self._trained
        if not steps and (is_over or seconds < STANDSTILL_SECONDS):
            return
        if steps:
            self._step_seconds = seconds / steps
        self._total += steps
        waited, exchanged = self._waited_until(now), self._exchanged_until(now)
        report = {
            "interval_seconds": seconds,
            "step": self._total,
            "steps": steps,
            "examples": trained - self._told_trained if self._is_counted else None,
            "loss": self._loss_now() if steps else None,
            "input_wait_seconds": None if waited is None else max(0.0, waited - self._told_waited),
            # Part of the wait may be known late, since only some steps are measured: it does not fit this
            # interval.
            "all_reduce_seconds": None
            if exchanged is None
            else min(max(0.0, exchanged - self._told_exchanged), seconds),
        }  # type: Dict[str, Any]
        self._since, self._counts, self._told_trained = now, counts, trained
        self._told_waited = waited or 0.0
        self._told_exchanged = max(self._told_exchanged, exchanged or 0.0)
        self._wants_loss = True
        self._reporter.append("step", report)

    def _waited_until(self, now):
        # type: (float) -> Optional[float]
        """Return how long the script waited for batches; None: it has no ``DataLoader``."""
        since = self._input_since
        return None if self._loader is None else self._waited + (now - since if since else 0.0)

    def _exchanged_until(self, now):
        # type: (float) -> Optional[float]
        """Return how long the script waited for other ranks; None: gradients stay in this process.

        A backward pass that does not end counts, too, although no statistics include it yet.
        """
        if not self._replicas and not self._exchanges:
            return None
        total, since = self._exchanged, self._exchange_since
        if since:
            total += now - since
        since = self._backward_since
        if (
            since
            and self._replicas
            and now - since >= max(STANDSTILL_SECONDS / 2, MANY_STEPS * self._step_seconds)
        ):
            total += now - since
            self._is_late = True
        return total

    def _loss_now(self):
        # type: () -> Optional[float]
        value = self._loss
        return value.item() if hasattr(value, "item") else value  # type: ignore[no-any-return]


def _rows(tensor, batch, deepest):
    # type: (Any, Any, int) -> Optional[int]
    """Return the first dimension of the first tensor in a batch; None: there is none."""
    if isinstance(batch, tensor):
        return int(batch.size(0)) if batch.dim() else None
    if not deepest:
        return None
    if hasattr(batch, "values") and hasattr(batch, "keys"):
        batch = list(batch.values())
    if isinstance(batch, (list, tuple)):
        for each in batch:
            rows = _rows(tensor, each, deepest - 1)
            if rows is not None:
                return rows
    return None


def _waited_nanoseconds(replica):
    # type: (Any) -> int
    """Return how long a replica's last measured step waited after its own gradients were ready."""
    said = replica._get_ddp_logging_data()
    taken, overlap = said.get("backward_comm_time", 0), said.get("backward_compute_comm_overlap_time", 0)
    return max(0, int(taken) - int(overlap))


def _steps_before(optimizer):
    # type: (Any) -> Optional[int]
    """Return how many steps an optimizer's state counts before the current step; None: it does not count."""
    for state in optimizer.state.values():
        made = state.get("step") if isinstance(state, dict) else None
        return None if made is None else max(0, int(made) - 1)
    return None
