"""Pages from templates: all values are escaped, and no page contains an inline script or style."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup, escape

from paceline.surfaces import explanations, templates
from paceline.surfaces.reports import texts
from paceline.surfaces.views import cells
from paceline.surfaces.web import namespaces
from paceline.surfaces.web.pages import languages
from paceline.surfaces.web.sites import Site

STATIC = Path(__file__).parent / "static"
LANGUAGE_COOKIE, THEME_COOKIE = "paceline-language", "paceline-theme"
#: The first theme follows the setting of the user's system.
THEMES = ("auto", "light", "dark")
_REMEMBER_SECONDS = 365 * 86_400
_CODE = re.compile(r"\b[A-Z]+[0-9][A-Z0-9]*\b")


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page, or a part of one.

    Args:
        request: the request to answer, which determines the language and the theme.
        template: the name of the template's file.
        status: the HTTP status.
        values: the values that the template shows.
    """
    asked = request.query_params.get("language")
    cookie, accepted = request.cookies.get(LANGUAGE_COOKIE), request.headers.get("accept-language", "")
    language = languages.chosen(asked, cookie, accepted)
    say: Callable[[str], str] = functools.partial(languages.said, language=language)
    site: Site = request.app.state.site
    asked_theme = request.query_params.get("theme")
    theme = next(
        (candidate for candidate in (asked_theme, request.cookies.get(THEME_COOKIE)) if candidate in THEMES),
        THEMES[0],
    )
    text = (
        _environment()
        .get_template(template)
        .render(
            _=say,
            language=language,
            languages=languages.LANGUAGES,
            path=request.url.path,
            namespace=getattr(request.state, "namespace", None) or site.namespace,
            theme=theme,
            themes=THEMES,
            here=functools.partial(_here, request),
            **values,
        )
    )
    answer = HTMLResponse(namespaces.linked(text, getattr(request.state, "prefix", "")), status)
    for name, chosen, value in ((LANGUAGE_COOKIE, asked, language), (THEME_COOKIE, asked_theme, theme)):
        if chosen == value:
            answer.set_cookie(name, value, max_age=_REMEMBER_SECONDS, samesite="strict", httponly=True)
    return answer


def _here(request: Request, **changes: str) -> str:
    """Return the address of this page with changed query parameters.

    A path of two slashes would be the name of another host.
    """
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in changes]
    return f"/{request.url.path.lstrip('/')}?{urlencode([*kept, *changes.items()])}"


@functools.cache
def _environment() -> jinja2.Environment:
    environment = templates.environment("paceline.surfaces.web.pages", "templates")
    environment.filters.update(
        number=cells.number,
        cores=cells.cores,
        percent=cells.percent,
        bytes=cells.compact_bytes,
        duration=cells.duration,
        moment=cells.moment,
        quality=cells.loss,
        coded=coded,
    )
    return environment


def coded(text: str) -> Markup:
    """Return text as HTML in which every known code is a link to its page."""
    known = _codes()

    def linked(found: re.Match[str]) -> str:
        return f'<a href="/rules/{found[0]}">{found[0]}</a>' if found[0] in known else found[0]

    return Markup(_CODE.sub(linked, str(escape(texts.clean(text)))))


@functools.cache
def _codes() -> frozenset[str]:
    return frozenset(each.code for each in explanations.entries())
