"""Whose token it is and what they may, by the rules of Kubernetes' RBAC, for a cluster in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Rule = Mapping[str, Any]


class _Binding(NamedTuple):
    name: str
    namespace: str | None
    rules: tuple[Rule, ...]


class Access:
    """The users of a cluster: their tokens, and the roles that they are bound to."""

    def __init__(self) -> None:
        self.users: dict[str, dict[str, Any]] = {}
        self._bindings: list[_Binding] = []

    def add(self, token: str, name: str, *groups: str, **more: Any) -> None:
        """Make a token known."""
        self.users[token] = {"username": name, "groups": [*groups, "system:authenticated"], **more}

    def bind(self, name: str, rules: Iterable[Rule], namespace: str | None) -> None:
        """Give a user or a group rights, in one namespace or (None) everywhere."""
        self._bindings.append(_Binding(name, namespace, tuple(rules)))

    def token_review(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the status of a TokenReview."""
        user = self.users.get(spec["token"])
        if user is None:
            return {"error": "invalid bearer token", "user": {}}
        return {"authenticated": True, "user": user}

    def access_review(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the status of a SubjectAccessReview."""
        asked = spec["resourceAttributes"]
        names = {spec["user"], *spec.get("groups", ())}
        return {
            "allowed": any(
                binding.name in names
                and binding.namespace in (None, asked.get("namespace") or "\0")
                and any(_covers(rule, asked) for rule in binding.rules)
                for binding in self._bindings
            )
        }


def _covers(rule: Rule, asked: Mapping[str, str]) -> bool:
    resource = "/".join(part for part in (asked["resource"], asked.get("subresource")) if part)
    wanted = (
        ("apiGroups", asked.get("group", "")),
        ("resources", resource),
        ("verbs", asked["verb"]),
    )
    return all({"*", each} & set(rule[key]) for key, each in wanted)
