"""Board profiles: what loads, what merges, and what a mistake in a file says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from colibri_build.errors import TargetError
from colibri_build.resources import data_dir
from colibri_build.target.board import board_names, list_boards, load_board

ALL_BOARDS = board_names(data_dir("boards"))


def _own_board(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def _error(name: str) -> str:
    with pytest.raises(TargetError) as caught:
        load_board(name)
    return str(caught.value)


def test_the_boards_that_the_readme_names_are_there() -> None:
    variants = {f"cortex-a53/{name}" for name in ("rpi-zero2w", "imx8mm", "zynqmp", "a64")} | {"tda4vm/sk"}
    assert set(ALL_BOARDS) == {"cortex-a53", "tda4vm", "x86-64-v3"} | variants
    assert [summary.name for summary in list_boards()] == ALL_BOARDS


@pytest.mark.parametrize("name", ALL_BOARDS)
def test_every_profile_loads(name: str) -> None:
    board = load_board(name)
    assert board.name == name
    assert board.ram_budget_bytes == board.memory.ram_budget_mib * 1024 * 1024
    assert board.default_threads <= board.cores


def test_figures_carry_their_source() -> None:
    board = load_board("cortex-a53")
    assert board.memory.read_bandwidth is not None
    assert (board.memory.read_bandwidth.mb_per_s, "sbc-bench" in board.memory.read_bandwidth.source) == (2240, True)
    assert load_board("x86-64-v3").memory.read_bandwidth is None


def test_a_variant_changes_single_fields_and_keeps_the_others() -> None:
    base, variant = load_board("cortex-a53"), load_board("cortex-a53/imx8mm")
    assert (variant.console.device, variant.console.baud) == ("/dev/ttymxc1", base.console.baud)
    assert (variant.memory.ram_total_mib, variant.memory.read_bandwidth) == (2048, None)
    assert set(variant.cpu.features) - set(base.cpu.features) == {"aes", "pmull", "sha1", "sha2"}
    assert (variant.flags, variant.qemu, variant.cache) == (base.flags, base.qemu, base.cache)


def test_a_board_of_the_users_own_may_be_anywhere(tmp_path: Path) -> None:
    folder = tmp_path / "my boards é"
    folder.mkdir()
    board = load_board(_own_board(folder, 'extends = "tda4vm"\n[memory]\nram_budget_mib = 512\n'))
    assert (board.name, board.memory.ram_budget_mib, board.cores) == ("mine", 512, 2)


def test_a_board_may_extend_another_file(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('extends = "cortex-a53"\ndescription = "Base"\n', encoding="utf-8")
    board = load_board(_own_board(tmp_path, 'extends = "base.toml"\n[defaults]\nthreads = 2\n'))
    assert (board.description, board.default_threads, board.default_context) == ("Base", 2, 512)


def test_an_unknown_board_names_the_closest_one() -> None:
    assert _error("cortex-a35") == (
        "unknown board 'cortex-a35'; try: 'cortex-a53', or one of: "
        + ", ".join(ALL_BOARDS)
        + "; or the path of a .toml file"
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    assert _error(str(path)) == f"{path}: no such file; try: check the path"


def test_a_typing_mistake_names_file_line_and_the_key_that_was_meant(tmp_path: Path) -> None:
    path = _own_board(tmp_path, 'extends = "cortex-a53"\n\n[memory]\nram_totl_mib = 512\n')
    assert _error(path) == f"{path}:4: unknown key 'memory.ram_totl_mib'; try: 'ram_total_mib'"


def test_a_mistake_in_an_inherited_file_is_reported_there(tmp_path: Path) -> None:
    boards = tmp_path / "boards"
    shutil.copytree(data_dir("boards"), boards)
    generic = boards / "cortex-a53.toml"
    generic.write_text(generic.read_text(encoding="utf-8").replace("l2_kib", "l2_kb"), encoding="utf-8")
    with pytest.raises(TargetError) as caught:
        load_board("cortex-a53/a64", boards)
    line = generic.read_text(encoding="utf-8").splitlines().index("l2_kb = 512") + 1
    assert str(caught.value) == (
        f"boards/cortex-a53.toml:{line}: unknown key 'cache.l2_kb' (and 1 more in this profile); try: 'l2_kib'"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('extends = "cortex-a53"\ntypo = 1\n', ":2: unknown key 'typo'; try: one of arch, cache, "),
        ('extends = "cortex-a53"\n[memory]\nram_total_mib = "512"\n', ":3: 'memory.ram_total_mib' is '512'; try: a valid"),
        ('extends = "cortex-a53"\narch = "arm"\n', ":2: 'arch' is 'arm'; try: 'aarch64' or 'x86_64'"),
        ('extends = "cortex-a53"\n[cpu]\ncores = 0\n', ":3: 'cpu.cores' is 0; try: greater than or equal to 1"),
        ('extends = "cortex-a53"\n[cpu]\nforbidden = ["asimd"]\n', ": cpu.features and cpu.forbidden both name asimd"),
        ('extends = "cortex-a53"\nkernels = "avx2"\n', ": kernels 'avx2' are for x86_64, arch is aarch64"),
        ('extends = "x86-64-v3"\n[cpu]\nfeatures = ["avx2"]\n', ": kernels 'avx2' need cpu.features f16c"),
        ('extends = "cortex-a53"\n[memory]\nram_budget_mib = 300\n', ": memory.ram_budget_mib 300 is above"),
        ('extends = "cortex-a53"\nremove = ["cpu.isa"]\n', "key 'cpu.isa' is missing; try: add it"),
        ('extends = "cortex-a53"\nremove = ["cpu.isaa"]\n', ": 'remove' names 'cpu.isaa', which is not inherited"),
        ('remove = ["cpu"]\n', ": 'remove' without 'extends'"),
        ('extends = "mine.toml"\n', ": extends 'mine.toml', which extends it in turn"),
        ("extends = 5\n", ": 'extends' is 5; try: the name of a board"),
        ('name = "x"\n', ": unknown key 'name'; try: 'description'"),
        ("arch = \n", ": not valid TOML: Invalid value"),
        ('description = "x"\n', "key 'arch' is missing (and "),
    ],
)  # fmt: skip
def test_each_mistake_has_one_clear_message(tmp_path: Path, text: str, message: str) -> None:
    path = _own_board(tmp_path, text)
    error = _error(path)
    assert error.startswith(path) or "cortex-a53.toml" in error
    assert message in error
    assert "\n" not in error
