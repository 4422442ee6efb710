"""Common failures of TensorFlow scripts: what they mean, and what helps.

The list grows. A failure has a pattern for the last words of the script, a sentence, and steps. The first
pattern that matches counts, so more specific patterns come first.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from paceline.diagnosing.failures import last_words
from paceline.diagnosing.failures.last_words import LastWords


@dataclasses.dataclass(frozen=True, slots=True)
class KnownFailure:
    """A known failure.

    Attributes:
        pattern: a regular expression to search for in the last words of the script.
        what: what the failure means; ``{0}`` and so on are the pattern's groups.
        steps: what helps, the best step first.
        is_lasting: whether the command is certain to fail again in the same way, however often it is started.
        code: a regular expression that the line of the user's own code has to match as well; None: any line.
    """

    pattern: re.Pattern[str]
    what: str
    steps: tuple[str, ...]
    is_lasting: bool = False
    code: re.Pattern[str] | None = None

    def fits(self, words: LastWords) -> bool:
        """Return whether a script's last words match this failure."""
        if not self.pattern.search(words.text):
            return False
        return self.code is None or bool(words.place and self.code.search(words.place.code))

    def filled(self, words: LastWords) -> tuple[str, tuple[str, ...]]:
        """Return the sentence and the steps, filled in from last words that match this failure."""
        found = self.pattern.search(words.text)
        groups = [group or "" for group in found.groups()] if found else []
        return self.what.format(*groups), tuple(step.format(*groups) for step in self.steps)


_LEGACY_KERAS = 'spec.environment: {{TF_USE_LEGACY_KERAS: "1"}}, and the package tf_keras beside TensorFlow'
_TF1 = "import tensorflow.compat.v1 as tf; tf.disable_v2_behavior(), in place of import tensorflow as tf"
_CLUSTER = "compare the job names of the script with the roles of the job file: ps, worker, chief, evaluator"
_DATA = "look at the path, and at whether each replica sees it: spec.volumes, or a URL"


def _known(
    pattern: str, what: str, *steps: str, is_lasting: bool = False, code: str | None = None
) -> KnownFailure:
    return KnownFailure(
        re.compile(pattern, re.MULTILINE), what, steps, is_lasting, None if code is None else re.compile(code)
    )


#: All known failures in the order in which they are tried.
ALL = (
    # The training library's message says everything. A lost server or a missing file may come back.
    _known(
        r"paceline\.training\.errors\.InputError: (?!.*(?:connection was lost|no such file|no file matches))",
        "The data cannot be used as they are.",
        "mend what the line says, then go on: paceline resume",
        is_lasting=True,
    ),
    _known(
        r"paceline\.training\.errors\.SettingsError: ",
        "The settings of the training do not fit.",
        "mend what the line says: spec.training in the job file, or the features of the script",
        is_lasting=True,
    ),
    # Parts of TensorFlow that were removed.
    _known(
        r"tensorflow'? has no attribute 'contrib'|No module named 'tensorflow\.contrib|tensorflow\.contrib",
        "The script uses tf.contrib, which ended with TensorFlow 1.15.",
        "an image with TensorFlow 1.15, or the packages that followed: tf_slim, tensorflow_addons",
        is_lasting=True,
    ),
    _known(
        r"No module named 'tensorflow\.examples",
        "The script uses tensorflow.examples, which newer TensorFlows do not bring.",
        "tf.keras.datasets has the same data; or an image with TensorFlow 1.15",
        is_lasting=True,
    ),
    _known(
        r"has no attribute 'estimator'|No module named 'tensorflow_estimator|tensorflow\.estimator",
        "The script uses tf.estimator, which ended with TensorFlow 2.15.",
        "an image with TensorFlow 2.15 or older",
        is_lasting=True,
    ),
    _known(
        r"is not available with Keras 3|compat\.v1' has no attribute 'layers'"
        r"|Keras 3 .*(?:not support|ParameterServer)|has no attribute 'DatasetCreator'"
        r"|ParameterServerStrategyV2' object has no attribute",
        "Keras 3 has neither the layers of TensorFlow 1 nor the parameter-server strategy.",
        _LEGACY_KERAS,
        is_lasting=True,
    ),
    _known(
        r"No module named 'tf_keras'|tf_keras.*(?:not installed|must be installed)",
        "TF_USE_LEGACY_KERAS is set, and the package tf_keras is not there.",
        "pip install tf_keras, of the same version as TensorFlow",
        is_lasting=True,
    ),
    _known(
        r"not compatible with eager execution|The Session graph is empty|eager execution is enabled",
        "The script is written for TensorFlow 1, and this TensorFlow executes eagerly.",
        _TF1,
        is_lasting=True,
    ),
    _known(
        r"partially initialized module 'tensorflow' has no attribute",
        "A file of the script's own is called tensorflow, and was imported in its place.",
        "give that file another name",
        is_lasting=True,
    ),
    _known(
        r"module 'tensorflow(?:\.\w+)*' has no attribute '(\w+)'",
        "This TensorFlow has no {0}: the script is written for another version.",
        _TF1,
        "an image with the TensorFlow that the script was written for",
        is_lasting=True,
    ),
    _known(
        r"(\w+) is deprecated in the (?:new Keras optimizer|optimizer)|has no attribute 'get_updates'"
        r"|Argument\(s\) not recognized: .*'(?:lr|decay)'",
        "The optimizer is used in the way of Keras before TensorFlow 2.11.",
        "tf.keras.optimizers.legacy has the optimizers of before (up to TensorFlow 2.15)",
        is_lasting=True,
    ),
    _known(
        r"must be (?:a )?`?(?:tf\.keras\.utils\.experimental\.)?DatasetCreator|DatasetCreator` input is",
        "Model.fit under this parameter-server strategy takes no other input than a DatasetCreator.",
        "tf.keras.utils.experimental.DatasetCreator(dataset_fn), and steps_per_epoch",
        is_lasting=True,
    ),
    _known(
        r"steps_per_epoch.* (?:must be specified|is required|is needed)|must specify .*steps_per_epoch",
        "Model.fit under a parameter-server strategy has to be given steps_per_epoch.",
        "Model.fit(..., steps_per_epoch=N)",
        is_lasting=True,
    ),
    _known(
        r"slot variable under the scope for tf\.distribute\.|Mixing different tf\.distribute\.Strategy"
        r"|created in a different tf\.distribute\.Strategy|was not created in the distribution strategy",
        "A variable, a model or an optimizer was made outside strategy.scope().",
        "make the model, the optimizer and the metrics within strategy.scope()",
        is_lasting=True,
    ),
    # Packages that are incompatible with each other.
    _known(
        r"Descriptors cannot (?:not )?be created directly|Couldn't build proto file into descriptor pool"
        r"|cannot import name 'builder' from 'google\.protobuf",
        "The package protobuf is too new for this TensorFlow.",
        "pip install 'protobuf<3.21'",
        is_lasting=True,
    ),
    _known(
        r"compiled using NumPy 1\.x cannot be run|numpy\.dtype size changed|_ARRAY_API not found"
        r"|module 'numpy' has no attribute '\w+'|multiarray failed to import"
        r"|Unable to convert function return value to a Python type! The signature was\n?.*handle",
        "The package NumPy is too new for this TensorFlow, or for the script.",
        "pip install 'numpy<1.24', or 'numpy<2' for TensorFlow 2.13 to 2.17",
        is_lasting=True,
    ),
    _known(
        r"GLIBC(?:XX)?_[\d.]+' not found|: cannot open shared object file"
        r"|\.so: (?:file too short|invalid ELF)",
        "A shared library that the script needs is not there, or too old.",
        "an image that has it",
        is_lasting=True,
    ),
    _known(
        r"No module named '(?:distutils|imp|asyncore|asynchat|pipes|cgi)\b"
        r"|module 'collections' has no attribute '\w+'|cannot import name '\w+' from 'collections'"
        r"|module 'inspect' has no attribute 'getargspec'",
        "The script, or a package of it, is older than this Python, which has dropped what it needs.",
        "an image with the Python that it was written for",
        is_lasting=True,
    ),
    _known(
        r"was compiled to use AVX|^Illegal instruction",
        "TensorFlow was built for instructions that this processor does not have.",
        "a node with AVX (spec.placement), or a TensorFlow that was built without it",
        is_lasting=True,
    ),
    _known(
        r"No OpKernel was registered to support Op '?(\w+)'?",
        "This TensorFlow has no kernel for {0}.",
        "for a GPU: a TensorFlow with GPU support on a node that has one; else another operation",
        is_lasting=True,
    ),
    _known(
        r"Op type not registered '(\w+)'",
        "A process of the job has no operation {0}: its TensorFlow is another, or lacks a library.",
        "the same image for all roles; tf.load_op_library in every process, the PS included",
        is_lasting=True,
    ),
    _known(
        r"File system scheme '(\w*)' not implemented",
        "This TensorFlow cannot open {0}:// addresses.",
        "pip install tensorflow-io and import it first; or an image whose TensorFlow brings it",
        is_lasting=True,
    ),
    # Python 2.
    _known(
        r"NameError: name '(?:xrange|unicode|raw_input|basestring|long|unichr|execfile|reload)' is not"
        r"|has no attribute '(?:iteritems|iterkeys|itervalues|has_key)'"
        r"|No module named '?(?:cPickle|cStringIO|StringIO|urllib2|urlparse|ConfigParser|Queue|commands"
        r"|__builtin__|httplib|HTMLParser|itertools\.izip)\b"
        r"|Missing parentheses in call to '(?:print|exec)'|multiple exception types must be parenthesized"
        r"|leading zeros in decimal integer literals|cannot import name 'i(?:zip|map|filter)\w*'",
        "The script is written for Python 2, and this is Python 3.",
        "futurize, of the package future, turns it into Python 3; or an image with Python 2.7",
        is_lasting=True,
    ),
    # Missing modules, scripts and programs, and wrong arguments.
    _known(
        r"attempted relative import with no known parent package|attempted relative import beyond",
        "The script is a part of a package, and was started as a file.",
        "spec.command: [python, -m, package.module], in the folder above the package",
        is_lasting=True,
    ),
    _known(
        r"No module named '?([\w.]+)'?|while finding module specification for '?([\w.]+)'?",
        "The Python module {0}{1} is not there.",
        "install it in the image, or bring it with spec.code; its folder goes on PYTHONPATH",
        is_lasting=True,
    ),
    _known(
        r"cannot import name '?(\w+)'?",
        "A module has no {0}: it is of another version than the script expects.",
        "pin its version in the image",
        is_lasting=True,
    ),
    _known(
        r"can't open file '?([^':]+)'?",
        "The script {0} is not there.",
        "paceline lint says what is missing; spec.working_dir and spec.code say where commands start",
        is_lasting=True,
    ),
    _known(
        r"(?:line \d+: |sh: )(?:\d+: )?(\S+): (?:command )?not found",
        "The program {0} is not there.",
        "install it in the image, or name it by its full path",
        is_lasting=True,
    ),
    _known(
        r"[Uu]nknown command.line flag|UnrecognizedFlagError|unrecognized arguments: (.+)"
        r"|the following arguments are required: (.+)|must have a value other than None"
        r"|^(?:Error: )?(?:No such (?:option|command)|Got unexpected extra argument)\b"
        r"|^(?:Error: )?Missing (?:option|argument)\b"
        r"|Flags parsing error",
        "The script does not take the arguments of the command.",
        "compare spec.command with what the script takes",
        is_lasting=True,
    ),
    _known(
        r"^(?:SyntaxError|IndentationError|TabError)",
        "The script is no Python that this interpreter can read.",
        "python -m py_compile says where; a script for Python 2 needs Python 2",
        is_lasting=True,
    ),
    # Addresses and clusters.
    _known(
        r"Address already in use|errno: ?98|Could not start gRPC server",
        "The port of the replica is taken by another process.",
        "spec.hosts gives each replica a network of its own; end what holds the port (ss -ltnp)",
    ),
    _known(
        r"Cannot assign requested address|Name or service not known",
        "An address in the script is none of this machine.",
        "take the addresses of the job: {{ps_hosts}} and {{worker_hosts}} in spec.command, or TF_CONFIG",
    ),
    _known(
        r"Task \d+ was not defined in job|Job \"?'?(\w+)\"?'? was not defined|No such job",
        "The script asks for a job that the cluster does not have.",
        _CLUSTER,
        is_lasting=True,
    ),
    _known(
        r"Cannot assign a device for operation|Could not satisfy explicit device specification",
        "The script puts an operation on a device that the cluster does not have.",
        _CLUSTER,
        "the session may not see it: device_filters leave out what they do not name",
    ),
    _known(
        r"(?:Error|Exception)\b.*TF_CONFIG",
        "The script could not read TF_CONFIG.",
        "do not set TF_CONFIG in spec.environment: Paceline does",
    ),
    _known(
        r"JSONDecodeError",
        "The script could not read TF_CONFIG.",
        "do not set TF_CONFIG in spec.environment: Paceline does",
        code=r"TF_?CONFIG|TFConfig",
    ),
    _known(
        r"Session handle is not found|Graph handle is not found|worker just restarted"
        r"|is not valid because it was created in a different (?:session|run)",
        "A process of the job was started again, and does not know the session of the script any more.",
        "tf.train.MonitoredTrainingSession makes a new one by itself; paceline why says which replica it was",
    ),
    _known(
        r"[Rr]eceived message larger than max",
        "A message between two processes was larger than gRPC lets through.",
        "cut the variable into parts, or feed less at once: what is sent as one message is one tensor",
    ),
    _known(
        r"larger than 2 ?GB|GraphDef cannot be|maximum protobuf size|Cannot parse tensor from proto",
        "A constant of the graph has more than 2 GB: data is part of the graph.",
        "tf.data from files or a generator, or a placeholder that is fed; not tf.constant(data)",
        is_lasting=True,
    ),
    # Data and files.
    _known(
        r"No space left on device",
        "A disk is full.",
        "free some room: paceline prune",
    ),
    _known(
        r"DataLossError|corrupted record|truncated record|inflate|incorrect header check",
        "A file of data cannot be read: it is damaged, cut off or compressed in another way.",
        "read the file by itself; copy it anew",
    ),
    _known(
        r"is closed and has insufficient elements",
        "The input queue has ended: its files are at their end, or could not be read at all.",
        "look at what was written before it: a missing file ends the queue, and so does num_epochs",
    ),
    _known(
        r"End of sequence",
        "The data is at its end, and the script asked for more.",
        "dataset.repeat(), or catch tf.errors.OutOfRangeError; an empty data set is at its end at once",
    ),
    _known(
        r"Feature: (\S+) \(data type: \S+\) is required but could|Can't parse serialized Example",
        "The records have no feature {0} of the kind that the script asks for.",
        "read one record by itself: tf.train.Example.FromString",
        is_lasting=True,
    ),
    _known(
        r"Read-only file system",
        "The script writes where nothing can be written.",
        "write to a volume (spec.volumes), or to the folder of the run: {{run_dir}} in spec.command",
        is_lasting=True,
    ),
    _known(
        r"Too many open files",
        "The process has as many files open as it may.",
        "close what is read, or raise the limit: ulimit -n in the command",
    ),
    _known(
        r"Is a directory",
        "A folder stands where the script wants a file.",
        "look at the path; a checkpoint is named by its prefix, model.ckpt-100, not by its folder",
        is_lasting=True,
    ),
    _known(
        r"Permission ?[Dd]enied|PermissionError",
        "A file or folder may not be used by the user that the replica runs as.",
        "spec.security.user, or the rights of the volume",
    ),
    _known(
        r"Key (\S+) not found in checkpoint|Assign requires shapes of both tensors to match"
        r"|requires a different shape",
        "The checkpoint is of another model than the script builds.",
        "another checkpoint_dir, or the script that wrote it",
    ),
    _known(
        r"([^\s']+?)'?[;:] (?:Cannot open: )?No such file or directory"
        r"|No such file or directory: '?([^';\n]+)|name = '([^']+)', errno = 2"
        r"|Failed to find any matching files for (\S+)|SavedModel file does not exist at: ([^\s{]+)",
        "A file is not there: {0}{1}{2}{3}{4}.",
        _DATA,
    ),
    _known(
        r"FileNotFoundError|No such file or directory",
        "A file is not there.",
        _DATA,
    ),
    _known(
        r"UnicodeDecodeError",
        "A file has bytes that are no text in the encoding that the script reads it with.",
        "open it with its own encoding, or as bytes",
    ),
    _known(
        r"Can't load save_path when it is None|is not a valid checkpoint|Unable to find a checkpoint|"
        r"Unsuccessful TensorSliceReader constructor",
        "There is no checkpoint where the script looks for one.",
        "look at the folder: spec.checkpoint_dir, or what the script itself names; start without one first",
    ),
    _known(
        r"Expect \d+ fields but have \d+ in record|Field \d+ in record \d+ is (?:not a valid|required)"
        r"|StringToNumberOp could not correctly convert string: (.*)",
        "A row of the data does not have the columns, or the numbers, that the script reads.",
        "compare the file with record_defaults of decode_csv; leave a header out: dataset.skip(1)",
    ),
    _known(
        r"label value of (\S+) which is outside the valid range",
        "The label {0} is none of the classes that the model has.",
        "labels are 0 to classes - 1; a label of -1 or one too large often stands for one that is missing",
    ),
    # How the graph is built and run.
    _known(
        r"Table (?:already )?not initialized|iterator has not been initialized",
        "A table or an iterator of the graph was used before its initializer had run.",
        "tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer): "
        "MonitoredTrainingSession and Supervisor run what is there",
        is_lasting=True,
    ),
    _known(
        r"Trying to share variable (\S+), but specified|Variable (\S+) does not exist, or was not created",
        "The variable {0}{1} is asked for in a way that does not fit how it was made.",
        "reuse=tf.AUTO_REUSE in its scope, and the same shape and type in each place",
        is_lasting=True,
    ),
    _known(
        r"[Gg]lobal step should be created",
        "The script has no global step.",
        "tf.train.get_or_create_global_step() before the session, and global_step= in minimize()",
        is_lasting=True,
    ),
    _known(
        r"symbolic `?tf\.Tensor`?.* is not allowed|Using a `tf\.Tensor` as a Python `bool`",
        "The script uses a tensor of a graph as a value of Python.",
        "tf.cond and tf.while_loop, or @tf.function around it; session.run gives values",
        is_lasting=True,
    ),
    _known(
        r"tf\.function only supports singleton tf\.Variables"
        r"|tried to create variables on (?:a )?non-first call",
        "A tf.function makes a variable each time that it is called.",
        "make variables, layers and optimizers outside of it",
        is_lasting=True,
    ),
    _known(
        r"datasets?.{,80}captures a stateful object|Cannot capture a stateful node",
        "A data set uses a variable or a table, which a one-shot iterator cannot.",
        "tf.compat.v1.data.make_initializable_iterator, and its initializer before the first step",
        is_lasting=True,
    ),
    _known(
        r"[Aa]ttempting to use uninitialized value (\S+)|Error while reading resource variable (\S+)",
        "The variable {0}{1} was read before it was initialised.",
        "MonitoredTrainingSession initialises in the chief, and lets the others wait",
    ),
    _known(
        r"must feed a value for placeholder tensor '(\w+)'",
        "The placeholder {0} was given no value.",
        "feed_dict has to name it in each session.run that needs it, in hooks and summaries too",
        is_lasting=True,
    ),
    _known(
        r"Cannot feed value of shape|Cannot interpret feed_dict key",
        "A value that is fed does not fit its placeholder.",
        "compare the shape of what is fed with that of the placeholder",
    ),
    _known(
        r"Graph is finalized and cannot be modified",
        "The script makes operations after the session was made, which froze the graph.",
        "make all operations before MonitoredTrainingSession or Supervisor; a loop often makes them unseen",
        is_lasting=True,
    ),
    _known(
        r"must be from the same graph as|is not an element of this graph",
        "Tensors of two graphs are used together.",
        "build all of the model within one tf.Graph().as_default()",
        is_lasting=True,
    ),
    _known(
        r"Variable (\S+) already exists, disallowed",
        "The variable {0} is made twice.",
        "reuse=tf.AUTO_REUSE in its scope; or build the model once",
        is_lasting=True,
    ),
    _known(
        r"No gradients provided for any variable",
        "The loss depends on no variable that is trained.",
        "look for tf.stop_gradient, integer types and metrics between the loss and the variables",
        is_lasting=True,
    ),
    _known(
        r"Run called even after should_stop requested",
        "The script asked its session for another step after a hook had ended the training.",
        "while not session.should_stop(): around each session.run",
    ),
    # Numbers.
    _known(
        r"NanLossDuringTraining|Model diverged with loss|had (?:NaN|Inf)|Nan in summary|: Tensor had",
        "The loss is not a number any more: training diverged.",
        "a smaller learning rate, clipped gradients; look at the loss before: paceline top",
    ),
    _known(
        r"does not match type|Tensor conversion requested dtype|Incompatible type|must have the same type",
        "Two tensors have types that do not fit.",
        "tf.cast one of them; see where in the script",
    ),
    _known(
        r"ncompatible shapes|Matrix size-incompatible|Dimensions must be equal|must have the same shape"
        r"|Shapes .* are incompatible|indices\[.*\] = .* is not in \[0,",
        "Two tensors have shapes that do not fit, or an id lies outside its table.",
        "see where in the script; of an id: the vocabulary is larger than the table",
    ),
    # Memory, and other processes of the job.
    _known(
        r"can't start new thread|pthread_create.*[Ff]ailed|Resource temporarily unavailable",
        "The process may have no more threads or processes.",
        "fewer threads (spec.training, or the script's own); or a higher limit: ulimit -u",
    ),
    _known(
        r"ResourceExhausted|OOM when allocating|MemoryError|bad_alloc|Cannot allocate memory",
        "The process found no more memory.",
        "more memory for the role, a smaller batch, or more parameter servers",
    ),
    _known(
        r"UnavailableError|Socket closed|failed to connect to all addresses|Connection reset by peer",
        "Another process of the job did not answer: it ended, or had not begun.",
        "see which replica ended first: paceline why, paceline describe",
    ),
    _known(
        r"[Cc]onnection refused|[Ff]ailed to connect",
        "Nothing listened at an address that the script asked for.",
        "see which address it was: a service outside the job, or a replica that had ended: paceline describe",
    ),
    _known(
        r"DeadlineExceeded",
        "Another process of the job did not answer in time.",
        "see whether one is stuck or overloaded: paceline top",
    ),
)


def find(words: LastWords) -> KnownFailure | None:
    """Return the known failure that a script's last words match; None: no failure matches."""
    return next((each for each in ALL if each.fits(words)), None)


def is_lasting(output: Sequence[str]) -> bool:
    """Return whether the last lines of a command's output show a failure that is certain to happen again."""
    words = last_words.read(output)
    found = None if words is None else find(words)
    return found is not None and found.is_lasting
