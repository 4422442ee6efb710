"""The security contexts of a job's pods and containers.

A test checks ``restricted`` against all controls of the Pod Security Standard of that name
(https://kubernetes.io/docs/concepts/security/pod-security-standards/). The default profile leaves user and
capabilities to the image: for root without capabilities, unpacking an archive or writing to another user's
volume would fail.
"""

from __future__ import annotations

from paceline.model.jobs.job_specs import Security, SecurityProfile
from paceline.rendering.labels import Object, given


def is_restricted(security: Security) -> bool:
    """Return whether containers have to meet the restricted standard."""
    return security.profile is SecurityProfile.RESTRICTED


def of_pod(security: Security) -> Object:
    """Return the security context of a pod."""
    return given(
        {
            "runAsNonRoot": True if is_restricted(security) else None,
            "runAsUser": security.user,
            # Volumes of claims get this group. The kubelet changes their files only if the root folder does
            # not have the group yet.
            "fsGroup": security.user,
            "fsGroupChangePolicy": None if security.user is None else "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    )


def of_container(security: Security, *, is_read_only: bool) -> Object:
    """Return the security context of the container that runs the user's command.

    Args:
        security: the security settings of the job.
        is_read_only: whether the container writes only to volumes.
    """
    if not is_restricted(security):
        return {"allowPrivilegeEscalation": False}
    return strict(is_read_only=is_read_only)


def strict(*, is_read_only: bool = True) -> Object:
    """Return the security context of a container without any privileges."""
    return given(
        {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": is_read_only or None,
        }
    )
