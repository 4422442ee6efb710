import re
import subprocess
import sys
from pathlib import Path

from paceline import linting
from paceline.linting import pages

PAGE = Path(__file__).parents[2] / "docs" / "lint-rules.md"


def test_codes_are_unique_and_in_order() -> None:
    codes = [rule.code for rule in linting.catalogue()]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"(JOB|K8S)\d{3}", code) for code in codes)


def test_every_rule_explains_itself() -> None:
    for rule in linting.catalogue():
        assert len(rule.title) < 70
        assert rule.why.endswith(".")
        assert rule.fix.endswith(".")


def test_the_committed_page_is_the_generated_one() -> None:
    assert PAGE.read_text(encoding="utf-8") == pages.page(), (
        "run python -m paceline.linting.pages > docs/lint-rules.md"
    )


def test_importing_is_cheap() -> None:
    code = "import sys, paceline.linting, paceline.specs; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"sqlalchemy", "rich", "psutil", "tensorflow", "click", "numpy"} & set(loaded)
