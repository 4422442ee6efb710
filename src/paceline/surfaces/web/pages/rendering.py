"""Pages from templates: everything in them is escaped, and nothing of it is a script or a style."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from paceline.surfaces.reports import texts
from paceline.surfaces.views import cells
from paceline.surfaces.web.pages import languages

STATIC = Path(__file__).parent / "static"
LANGUAGE_COOKIE = "paceline-language"


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page, or a part of one.

    Args:
        request: that it answers; it says in which language.
        template: the name of its file.
        status: of HTTP.
        values: what it shows.
    """
    asked = request.query_params.get("language")
    cookie, accepted = request.cookies.get(LANGUAGE_COOKIE), request.headers.get("accept-language", "")
    language = languages.chosen(asked, cookie, accepted)
    say: Callable[[str], str] = functools.partial(languages.said, language=language)
    text = (
        _environment()
        .get_template(template)
        .render(_=say, language=language, languages=languages.LANGUAGES, path=request.url.path, **values)
    )
    answer = HTMLResponse(text, status)
    if asked == language:
        answer.set_cookie(LANGUAGE_COOKIE, language, max_age=365 * 86_400, samesite="strict", httponly=True)
    return answer


@functools.cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("paceline.surfaces.web.pages", "templates"),
        autoescape=True,
        finalize=_without_controls,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        tied=texts.tied,
        number=cells.number,
        cores=cells.cores,
        percent=cells.percent,
        bytes=cells.compact_bytes,
        duration=cells.duration,
        moment=cells.moment,
        quality=cells.loss,
    )
    return made


def _without_controls(value: Any) -> Any:
    """Keep out of a page what terminals act on and HTML forbids."""
    return texts.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
