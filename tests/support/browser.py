"""A real browser without a window: what a page is after its script ran, and what it complained of."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-extensions --disable-sync "
    "--disable-background-networking --disable-component-update --enable-logging=stderr --virtual-time-budget=2000"
).split()
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND"  # the browser itself would ask for updates
SAY = "const said = {}; function say(key, value) { said[key] = value; document.body.dataset.said = JSON.stringify(said); }"


@dataclass(frozen=True)
class Visit:
    """What came of a visit. `said`: what the visitor's script found."""

    dom: str
    console: list[str]
    said: dict[str, Any]

    def elements(self, **wanted: str) -> list[dict[str, str]]:
        """Attributes of the elements that have these (`data_layer` is data-layer, `class_` one of the classes)."""
        found = _Elements()
        found.feed(self.dom)
        return [attributes for attributes in found.items if _has(attributes, wanted)]


def side_by_side(pages: dict[str, str], width: int) -> str:
    """One page that shows several, each as on a screen of that width; scripts reach one with `shown(name)`."""
    frames = "".join(
        f'<iframe id="{name}" srcdoc="{escape(page)}" style="width:{width}px;height:900px"></iframe>'
        for name, page in pages.items()
    )
    find = "const shown = (name) => document.getElementById(name).contentDocument;"
    return f"<!DOCTYPE html><html><body>{frames}<script>{find}</script></body></html>"


def visit(page: str, folder: Path, script: str = "", width: int = 1280, dark: bool = False) -> Visit:
    """Open a page; `script` runs when it is loaded and calls `say(key, value)` for what it finds."""
    browser = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert browser, "chromium is missing: scripts/setup.sh test installs it"
    file = folder / "visited.html"
    body, end = page.rsplit("</body>", 1)
    file.write_text(
        body + f"<script>{SAY}\naddEventListener('load', () => {{\n{script}\n}});</script></body>{end}",
        encoding="utf-8",
    )
    command = [browser, *FLAGS, OFFLINE, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900"]
    command += ["--blink-settings=preferredColorScheme=0"] if dark else []
    environment = {**os.environ, "HOME": str(folder), "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
    command += ["--dump-dom", file.as_uri()]
    run = subprocess.run(command, capture_output=True, timeout=240, env=environment, check=False)
    assert run.returncode == 0, run.stderr.decode()
    dom = run.stdout.decode()
    found = re.search(r'data-said="([^"]*)"', dom)
    console = re.findall(r"CONSOLE[:(].*", run.stderr.decode("utf-8", "replace"))
    return Visit(dom, console, json.loads(unescape(found[1])) if found else {})


def _has(attributes: dict[str, str], wanted: dict[str, str]) -> bool:
    for key, value in wanted.items():
        if key == "class_":
            if value not in attributes.get("class", "").split():
                return False
        elif attributes.get(key.replace("_", "-")) != value:
            return False
    return True


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.items: list[dict[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.items.append({key: value or "" for key, value in attrs})
