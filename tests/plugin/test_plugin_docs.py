"""What the document and the examples show is what runs."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import yaml

from colibri_build.run.hardware_map import choose, read_hardware_map
from colibri_build.run.pytest_qemu import _OPTIONS
from colibri_build.target.board import load_board

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "firmware_tests"
DOCUMENT = (ROOT / "docs" / "testing-firmware.md").read_text(encoding="utf-8")


def test_the_document_shows_the_example_that_is_run() -> None:
    source = (EXAMPLES / "test_voice.py").read_text(encoding="utf-8")
    assert textwrap.indent(source, "    ").rstrip() in DOCUMENT


def test_the_document_lists_every_option_and_no_other() -> None:
    shown = set(re.findall(r"^\| `(--[a-z-]+)", DOCUMENT, re.MULTILINE)) - {"--device-type`"}
    assert shown == {name for name, _ in _OPTIONS}


def test_the_example_of_a_hardware_map_is_one() -> None:
    path = EXAMPLES / "hardware-map.yaml"
    boards = read_hardware_map(path)
    assert {load_board(board.platform).name for board in boards} == {"cortex-a53", "tda4vm"}
    chosen = choose(boards, path, None, "cortex-a53")
    assert choose(boards, path, None, "tda4vm").id == "tda4vm-lab"
    assert (chosen.id, chosen.baud, chosen.fixtures, chosen.flash_timeout) == ("a53-left", 115200, ("lamp",), 300)


def test_the_labgrid_environment_is_yaml_for_the_same_board() -> None:
    environment = yaml.safe_load((EXAMPLES / "labgrid.yaml").read_text(encoding="utf-8"))
    resources = environment["targets"]["main"]["resources"]
    (board,) = [board for board in read_hardware_map(EXAMPLES / "hardware-map.yaml") if board.id == "a53-left"]
    assert (resources["RawSerialPort"]["port"], resources["RawSerialPort"]["speed"]) == (board.serial, board.baud)
    assert set(environment["targets"]["main"]["drivers"]) >= {"SerialDriver", "NetworkPowerDriver", "USBSDMuxDriver"}
