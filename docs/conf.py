"""The documentation as a site: ``make site``.

The sources are the same files that are read beside the code, READMEs and examples included, so the folder of
the sources is that of the repository. A link that leads nowhere is an error.
"""

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

project = "Paceline"
author = "The Paceline authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md", "src/*/*/*/*.md"]
exclude_patterns = [".*", "**/.*", "site", "build", "dist"]
#: Links name headings of other pages as GitHub does.
myst_heading_anchors = 4
#: Mermaid would be drawn by a script from another host; as text it is readable, too.
lexers["mermaid"] = TextLexer()
html_theme = "furo"
html_title = "Paceline"
html_copy_source = False
nitpicky = True
#: Pages of single causes and cures are found by their lists and by the search.
suppress_warnings = ["toc.not_included"]
