"""The documents hold: every quoted message is one that our tools say, every link leads somewhere."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BOARDS = ROOT / "docs" / "boards"
TROUBLES = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
# Messages stand in the first column of their tables, and in the one sentence about exit code 5.
TABLE = re.compile(r"^\| message.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
MESSAGES = [
    message
    for rows in TABLE.findall(TROUBLES)
    for row in rows.splitlines()
    for message in re.findall(r"`([^`]+)`", row.split(" | ")[0])
] + re.findall(r"exit code 5\): `([^`]+)`", TROUBLES)


def python_texts(path: Path) -> list[str]:
    """String literals, parts that are filled in as NUL."""
    texts: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            texts.append("".join(str(v.value) if isinstance(v, ast.Constant) else "\0" for v in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return texts


def c_texts(path: Path) -> list[str]:
    return re.findall(r'"((?:[^"\\\n]|\\.)+)"', path.read_text(encoding="utf-8"))


SOURCES = [text for path in (ROOT / "builder").rglob("*.py") for text in python_texts(path)]
SOURCES += [text for path in (ROOT / "runtime_c").rglob("*.c") for text in c_texts(path)]


def says(source: str, message: str) -> bool:
    """Whether a source's string has all the words of a message, in order and without gaps other than `...`."""
    parts = [re.escape(part.strip()) for part in message.split("...") if part.strip(" ,:()")]
    return re.search(".*?".join(parts), source, re.DOTALL) is not None


def test_there_are_messages_and_the_check_can_fail() -> None:
    assert len(MESSAGES) > 50
    assert not any(says(source, "the board is on fire: ...") for source in SOURCES)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_quoted_message_is_one_that_our_tools_say(message: str) -> None:
    assert any(says(source, message) for source in SOURCES), message


def anchors(path: Path) -> set[str]:
    """The names that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        found = (path.parent / name).resolve() if name else path
        assert found.exists(), f"{path}: {target}"
        assert not anchor or anchor in anchors(found), f"{path}: {target}"


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        name = path.relative_to(ROOT / "docs").as_posix()
        assert name == "README.md" or f"({name})" in index, name
