"""What counts as a value that is not there, for every format and every kind of feature.

A null, a number that is no number (NaN), and a text that is empty, blank or one of the words below, which
programs write for a null into text. A vocabulary, or the positive values of a label, may have such a word
(Namibia is `NA`): there it is a value.
"""

from __future__ import annotations

#: What Arrow and pandas read as null in CSV, and write.
WORDS = frozenset(
    {
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
        "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
    }
)  # fmt: skip
