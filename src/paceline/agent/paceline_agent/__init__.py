"""The replica agent: it runs beside the user's command, in any image, with the standard library alone.

It starts the command, samples once a second what the replica uses, forwards the training script's reports and
records why the command ended (``docs/agent-protocol.md``). It communicates through plain files alone, so
nothing is lost when the engine, the agent or the script dies. A failed measurement never ends a training: the
agent writes null for what it cannot measure. In containers, where no engine can read its files, it also
serves them over HTTP. Begin with `agents`.

Pure functions (text -> values) parse the kernel's text files, and raise nothing. The agent runs under Python
3.6 and later, hence the old-fashioned syntax. "proc.rst", "cgroup-v1/" and "cgroup-v2.rst" name documents of
the kernel.
"""
