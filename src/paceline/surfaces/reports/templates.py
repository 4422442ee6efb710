"""The HTML of pages: templates filled with values, all of them escaped."""

from __future__ import annotations

from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from paceline.surfaces.reports import texts


def rendered(template: str, **values: Any) -> str:
    """Return a page: one file without scripts that loads nothing.

    Args:
        template: the name of its file.
        values: what it shows.
    """
    style = (resources.files("paceline.surfaces.reports") / "style.css").read_text(encoding="utf-8")
    made = environment("paceline.surfaces.reports", "")
    # What reports share with pages is in English here, and its codes lead nowhere.
    made.globals["_"] = made.filters["coded"] = str
    return made.get_template(template).render(style=style, **values)


def environment(package: str, folder: str) -> jinja2.Environment:
    """Return the templates of a package, and of reports: what they are filled with is escaped, and has no
    control characters.

    Args:
        package: its name.
        folder: of it that has the templates.
    """
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(package, folder), jinja2.PackageLoader("paceline.surfaces.reports", "")]
        ),
        autoescape=True,
        finalize=_without_controls,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["tied"] = texts.tied
    return made


def _without_controls(value: Any) -> Any:
    """Keep out of the page what terminals act on and HTML forbids; all else is escaped."""
    return texts.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
