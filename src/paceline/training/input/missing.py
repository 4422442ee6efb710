"""What counts as a missing value, for every format and every kind of feature.

Missing are a null, a number that is NaN, and a text that is empty, blank or one of the words below, which
programs write into text for a null. A vocabulary, or the positive values of a label, may have such a word
(Namibia is `NA`): there it is a value.
"""

from __future__ import annotations

#: The words that Arrow and pandas write for null in CSV, and read as null.
WORDS = frozenset(
    {
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
        "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
    }
)  # fmt: skip
