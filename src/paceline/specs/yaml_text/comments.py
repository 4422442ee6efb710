"""The comments that belong to a field and are removed with it."""

from __future__ import annotations

import re

from paceline.specs.yaml_text.syntax_trees import Tree

#: A comment that looks like a field or a list item: the user has disabled it and may want it back.
_PUT_ASIDE = re.compile(r"#+\s*(- |[\w./-]+:(\s|$))")


def start_with(tree: Tree, start: int, above: int, behind: int, following: int | None) -> int:
    """Return the offset at which the lines of a field begin, including the comment lines that belong to it.

    Args:
        tree: the text.
        start: offset at which the key begins.
        above: offset at which the previous part ends; 0 if there is none.
        behind: offset at which the field ends.
        following: offset at which the next key begins; None if the field is the last.
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
