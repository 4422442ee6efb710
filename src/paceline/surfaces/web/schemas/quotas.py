"""What bounds a team on a cluster, as the API has it."""

from __future__ import annotations

from paceline.model.jobs import quotas
from paceline.surfaces.web.schemas.derived import listing, schema

#: ``share`` is the used part of what may be taken; null: that is not known.
Use = schema(quotas.Use, share=float | None)
QuotaUse = schema(quotas.QuotaUse, uses=list[Use])  # type: ignore[valid-type]
#: ``unknown`` is what could not be looked at, and why.
QuotaList = listing("QuotaList", QuotaUse, "All that bounds a namespace.", unknown=list[str])
