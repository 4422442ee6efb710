"""Which comments belong to a field: those that go when it goes."""

from __future__ import annotations

import re

from paceline.specs.yaml_text.syntax_trees import Tree

#: A comment that reads like a field or an item: the user has put it aside.
_PUT_ASIDE = re.compile(r"#+\s*(- |[\w./-]+:(\s|$))")


def start_with(tree: Tree, start: int, above: int, behind: int, following: int | None) -> int:
    """Return where the lines of a field begin, with the comment lines directly above that belong to it.

    Args:
        tree: the text.
        start: where the key begins.
        above: where what stands above it ends.
        behind: where the field ends.
        following: where the key of the next field begins; None: it is the last.
    """
    first = tree.line_start(start)
    if following is not None and tree.line_start(following) == tree.next_line(behind):
        return first
    indent = tree.before(start)
    top = 0 if above == 0 else tree.next_line(above)
    found = first
    while found > top:
        line_start = tree.line_start(tree.line_end_above(found))
        line = tree.text[line_start : tree.line_end_above(found)]
        is_comment = line.startswith(f"{indent}#") and not _PUT_ASIDE.match(line, len(indent))
        if not is_comment or line_start < top:
            break
        found = line_start
    return found
