"""Renders HTML pages from templates; all values are escaped."""

from __future__ import annotations

import functools
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from paceline.model import quantities
from paceline.surfaces.reports import texts

CHARTS, REPORTS = "paceline.surfaces.charts", "paceline.surfaces.reports"
_STYLES = ((CHARTS, "colours.css"), (REPORTS, "style.css"), (CHARTS, "charts.css"))


def rendered(template: str, **values: Any) -> str:
    """Return a page as a single file without scripts that loads no other files.

    Args:
        template: the file name of the template.
        values: the values that the template shows.
    """
    return _of_reports().get_template(template).render(style=style(), **values)


def environment(package: str, folder: str) -> jinja2.Environment:
    """Return the templates of a package, and those of reports and charts.

    Values in templates are escaped, and their control characters are removed.

    Args:
        package: the name of the package.
        folder: the folder of the package that has the templates.
    """
    jinja_environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [
                jinja2.PackageLoader(package, folder),
                jinja2.PackageLoader(REPORTS, ""),
                jinja2.PackageLoader(CHARTS, ""),
            ]
        ),
        autoescape=True,
        finalize=_without_controls,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja_environment.filters["tied"] = texts.tied
    jinja_environment.globals["as_bytes"] = quantities.format_bytes
    jinja_environment.globals["as_milliseconds"] = _milliseconds
    return jinja_environment


@functools.cache
def style() -> str:
    """Return the style sheet that reports and pages share."""
    return "".join((resources.files(package) / name).read_text(encoding="utf-8") for package, name in _STYLES)


@functools.cache
def _of_reports() -> jinja2.Environment:
    made = environment(REPORTS, "")
    # Reports show the templates shared with the web pages in English, and without links for codes.
    made.globals["_"] = made.filters["coded"] = str
    made.filters.update(percent=texts.share, moment=texts.moment)
    return made


def _milliseconds(microseconds: float) -> str:
    return f"{texts.number(microseconds / 1000)} ms"


def _without_controls(value: Any) -> Any:
    """Return a value without control characters, which terminals act on and HTML forbids."""
    return texts.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
