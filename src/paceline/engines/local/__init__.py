"""The local engine: each replica is a process group, in its own cgroup and network namespace if allowed."""
