"""The local engine: each replica a process group, in its own cgroup and network namespace where we may."""
