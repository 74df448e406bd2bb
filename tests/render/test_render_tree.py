"""The C tree: complete, independent, true to the model, and touched only where something changed."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colibri_build.artifacts import BuildOptions, Format, Kind
from colibri_build.compile.build import compile_tree
from colibri_build.elf.facts import read_facts
from colibri_build.errors import RenderError
from colibri_build.layout import dense_layout, expert_layout
from colibri_build.model_constants import rope_frequencies
from colibri_build.pack.reader import read_model_folder
from colibri_build.render import link, weights
from colibri_build.render.link import FAR_WEIGHTS_BYTES, layout_source, link_flags
from colibri_build.render.model_config import ABI
from colibri_build.render.tree import render_tree, runtime_files
from colibri_build.render.weights import MAX_XXD_BYTES, SHARE_BYTES, weights_sources
from colibri_build.resources import data_dir
from colibri_build.target.board import load_board
from support.stub_tree import GOLDEN, OPTIONS, TOKENIZER, stub_tree, target, tiny_folder
from support.tiny_quantized import AWKWARD_CONFIG, DEFAULT_FORMATS


def defines_of(text: str) -> dict[str, str]:
    return dict(re.findall(r"^#define (\w+) ([^/\n]*[^/\n ])", text, re.MULTILINE))


def snapshot(out: Path) -> dict[str, tuple[int, int]]:
    return {str(p.relative_to(out)): (p.stat().st_ino, p.stat().st_mtime_ns) for p in out.rglob("*") if p.is_file()}


def section_bytes(tmp: Path, obj: Path, section: str) -> bytes:
    raw = tmp / "section.bin"
    subprocess.run(["objcopy", "-O", "binary", "-j", section, str(obj), str(raw)], check=True)
    return raw.read_bytes()


def test_the_abi_number_is_the_runtimes() -> None:
    header = (data_dir("runtime_c") / "include" / "colibri.h").read_text(encoding="utf-8")
    assert re.search(rf"#define COLIBRI_ABI {ABI}\b", header)


def test_another_abi_stops_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = target()
    tree = stub_tree(tmp_path, monkeypatch, where)
    header = tree.path / "runtime_c/include/colibri.h"
    header.write_text(
        re.sub(r"COLIBRI_ABI \d+", "COLIBRI_ABI 99", header.read_text(encoding="utf-8")), encoding="utf-8"
    )
    with pytest.raises(Exception, match="generated code and runtime are of different versions"):
        compile_tree(tree, *where)


def test_constants_are_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = stub_tree(tmp_path, monkeypatch, target())
    found = defines_of((tree.path / "generated/model_config.h").read_text(encoding="utf-8"))
    config = AWKWARD_CONFIG
    for field in (
        "n_layers",
        "dim",
        "hidden_dim",
        "n_heads",
        "n_kv_heads",
        "head_dim",
        "vocab_size",
        "n_experts",
        "top_k",
    ):
        assert int(found[f"MODEL_{field.upper()}"]) == getattr(config, field)
    assert float.fromhex(found["MODEL_RMS_EPS"][:-1]) == np.float32(config.rms_eps)
    assert float.fromhex(found["MODEL_ATTENTION_SCALE"][:-1]) == np.float32(config.head_dim**-0.5)
    assert (found["MODEL_CONTEXT"], found["MODEL_MAX_THREADS"], found["MODEL_ACTIVATION_BITS"]) == ("32", "2", "16")
    assert (found["MODEL_EXPERT_FORMAT"], found["MODEL_USES_W4"], found["MODEL_USES_F16"]) == ("FORMAT_W4", "1", "0")
    assert (found["MODEL_N_GOLDEN"], found["MODEL_N_EOS"]) == ("3", "1")


def test_rope_frequencies_are_the_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(AWKWARD_CONFIG, head_dim=64, rope_theta=1234567.0)
    tree = stub_tree(tmp_path, monkeypatch, target(), folder=tiny_folder(tmp_path, config=config))
    text = (tree.path / "generated/model_tables.c").read_text(encoding="utf-8")
    body = re.search(r"model_inv_freq\[.*?\{(.*?)\}", text, re.DOTALL)
    assert body is not None
    values = [float.fromhex(item.strip()[:-1]) for item in body[1].split(",") if item.strip()]
    np.testing.assert_array_equal(np.array(values, np.float32), rope_frequencies(config))


@pytest.mark.parametrize(
    "formats",
    [
        DEFAULT_FORMATS,
        {**DEFAULT_FORMATS, Kind.ATTENTION: Format.W4, Kind.EXPERT: Format.W8},
        {**DEFAULT_FORMATS, Kind.EMBEDDING: Format.F16, Kind.LM_HEAD: Format.F16},
    ],
    ids=["default", "w4 attention", "f16 ends"],
)
def test_the_tables_compile_and_point_at_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, formats: dict
) -> None:
    """The program computes sums through the tables; Python computes them from the files. The static asserts hold."""
    where = target()
    folder = tiny_folder(tmp_path, formats=formats)
    firmware = compile_tree(stub_tree(tmp_path, monkeypatch, where, folder=folder), *where)
    shown = subprocess.run([str(firmware.elf)], check=True, capture_output=True).stdout.decode()
    fields = shown.rstrip("\n").split("|")
    dense = dense_layout(folder.config, formats, folder.group_size)
    data = (folder.path / "dense.bin").read_bytes()

    def sum_of(raw: bytes) -> int:
        total = 0
        for byte in raw:
            total = (total * 31 + byte) & 0xFFFFFFFF
        return total

    parts = [data[dense.part(name).offset :][:64] for name in ("embedding", "lm_head")]
    routing = (folder.path / "routing.bin").read_bytes()
    router_bytes = -(-folder.config.n_experts * folder.config.dim * 4 // 64) * 64
    parts += [routing[layer * router_bytes :][:16] for layer in range(folder.config.n_layers)]
    expert = expert_layout(folder.config, formats, folder.group_size)
    for layer in range(folder.config.n_layers):
        for number in range(folder.config.n_experts):
            raw = (folder.path / f"expert_{layer}_{number}.bin").read_bytes()
            parts.append(raw[expert.part("layers.0.experts.0.down").offset :][:16])
    expected = 0
    for part in parts:
        expected ^= sum_of(part)
    assert int(fields[9]) == expected
    norm = np.frombuffer(data, "<f4", 1, dense.part("final_norm").offset)[0]
    assert float.fromhex(fields[7]) == norm
    assert fields[:6] == ["x86-64-v3", "random", folder.digest, 'say "é"?\\\n', GOLDEN.logits_hash, "5"]
    assert int(fields[8]) == folder.config.eos_ids[0]


def test_nothing_is_touched_when_nothing_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_folder(tmp_path)
    first = stub_tree(tmp_path, monkeypatch, target(), folder=folder)
    before = snapshot(first.path)
    second = stub_tree(tmp_path, monkeypatch, target(), folder=folder)
    assert snapshot(second.path) == before
    assert first == second
    assert set(before) == {*first.files, ".colibri-tree.json"}


def test_another_board_replaces_what_the_first_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_folder(tmp_path)
    stub_tree(tmp_path, monkeypatch, target(), folder=folder, options=replace(OPTIONS, embed="xxd"))
    note = tmp_path / "out/generated/mine.txt"
    note.write_text("keep", encoding="utf-8")
    tree = stub_tree(tmp_path, monkeypatch, target("cortex-a53"), folder=folder)
    assert not (tree.path / "generated/weights.c").exists()
    assert "#define BOARD_KERNELS_NEON 1" in (tree.path / "generated/board_config.h").read_text(encoding="utf-8")
    assert note.read_text(encoding="utf-8") == "keep"


def test_a_file_of_the_user_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/Makefile").write_text("mine", encoding="utf-8")
    with pytest.raises(RenderError, match="Makefile is in the way"):
        stub_tree(tmp_path, monkeypatch, target())
    assert (tmp_path / "out/Makefile").read_text(encoding="utf-8") == "mine"


def test_an_edited_manifest_cannot_remove_files_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x", encoding="utf-8")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/.colibri-tree.json").write_text(f'{{"files": ["../victim", "{victim}"]}}', encoding="utf-8")
    stub_tree(tmp_path, monkeypatch, target())
    assert victim.exists()


def test_the_tree_outlives_the_model_folder_and_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_folder(tmp_path)
    tree = stub_tree(tmp_path, monkeypatch, target(), folder=folder)
    shutil.rmtree(folder.path)
    assert read_model_folder(tree.path / "weights").digest == folder.digest


def test_weights_are_copied_where_links_are_impossible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    folder = tiny_folder(tmp_path)
    tree = stub_tree(tmp_path, monkeypatch, target(), folder=folder)
    before = snapshot(tree.path)
    stub_tree(tmp_path, monkeypatch, target(), folder=folder)
    assert snapshot(tree.path) == before
    assert (tree.path / "weights/dense.bin").read_bytes() == (folder.path / "dense.bin").read_bytes()
    assert (tree.path / "weights/dense.bin").stat().st_nlink == 1


def test_generated_files_name_no_time_host_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = target()
    board, toolchain = where
    sysroot = replace(toolchain, cflags=(*toolchain.cflags, "--sysroot=/opt/sdk/root", "-I/opt/sdk/include"))
    first = stub_tree(tmp_path, monkeypatch, (board, sysroot))
    config = (first.path / "generated/board_config.h").read_text(encoding="utf-8")
    assert "/opt" not in config
    assert "--sysroot=..." in config
    for name in first.files:
        if name.startswith("generated/"):
            text = (first.path / name).read_text(encoding="utf-8")
            assert str(tmp_path) not in text
            assert "__DATE__" not in text


def test_every_generated_file_has_the_banner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_folder(tmp_path)
    tree = stub_tree(tmp_path, monkeypatch, target("x86-64-v3", "zig"), folder=folder)
    for name in [*(n for n in tree.files if n.startswith("generated/") and "tokenizer" not in n), "Makefile"]:
        first_line = (tree.path / name).read_text(encoding="utf-8").splitlines()[0]
        assert "Generated by colibri-build" in first_line
        assert folder.digest in first_line


def test_only_this_boards_kernels_are_taken() -> None:
    for board, own, other in (("cortex-a53", "_neon.", "_avx2."), ("x86-64-v3", "_avx2.", "_neon.")):
        names = runtime_files(load_board(board), OPTIONS)
        assert any(own in name for name in names)
        assert any("_portable." in name for name in names)
        assert not any(other in name for name in names)
        assert "runtime_c/app/main.c" in names


def test_incbin_and_xxd_embed_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = target()
    folder = tiny_folder(tmp_path)
    sections = []
    for embed in ("incbin", "xxd"):
        options = BuildOptions(32, 2, 16, embed)
        tree = stub_tree(tmp_path, monkeypatch, where, tmp_path / embed, options=options, folder=folder)
        firmware = compile_tree(tree, *where)
        obj = tree.path / "objects/generated/weights.o"
        lengths = subprocess.run(["nm", "-n", str(obj)], check=True, capture_output=True, text=True).stdout
        symbols = sorted(line.split()[2] for line in lengths.splitlines() if "_bin" in line)
        sections.append(
            (section_bytes(tmp_path, obj, ".weights"), section_bytes(tmp_path, firmware.elf, ".weights"), symbols)
        )
    assert sections[0] == sections[1]
    assert "expert_0_2_bin_len" in sections[0][2]
    first = folder.files["routing.bin"].bytes
    assert sections[0][0][:first] == (folder.path / "routing.bin").read_bytes()


@pytest.mark.parametrize("toolchain", ["debian-gcc", "zig"])
def test_weights_in_several_files_make_the_same_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: str
) -> None:
    """A 7B model in one file took 5.4 GB of memory; however they are cut, the weights lie in the same order."""
    where, found = target("x86-64-v3", toolchain), []
    for share in (SHARE_BYTES, 30000):
        monkeypatch.setattr(weights, "SHARE_BYTES", share)
        tree = stub_tree(tmp_path / str(share), monkeypatch, where, folder=tiny_folder(tmp_path))
        firmware = compile_tree(tree, *where)
        symbols = subprocess.run(["nm", str(firmware.elf)], check=True, capture_output=True, text=True).stdout
        lengths = sorted(line.split()[2] for line in symbols.splitlines() if line.endswith("_bin_len"))
        found.append((section_bytes(tmp_path, firmware.elf, ".weights"), lengths))
        parts = [name for name in tree.sources if name.startswith("generated/weights")]
        assert len(parts) == 1 if share == SHARE_BYTES else len(parts) > 2
    assert found[0] == found[1]
    assert len(found[0][1]) == 8


def test_the_assembly_names_each_files_hash(tmp_path: Path) -> None:
    """zig caches objects by the text of the source and does not look into .incbin files: old weights would stay."""
    folder = tiny_folder(tmp_path)
    text = weights_sources(folder, "incbin")["weights.S"]
    for name, record in folder.files.items():
        assert (record.sha256 in text) == name.endswith(".bin")


def test_changed_weights_reach_a_binary_of_zig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = target("x86-64-v3", "zig")
    for seed in (1, 2):
        folder = tiny_folder(tmp_path, seed=seed)
        tree = stub_tree(tmp_path, monkeypatch, where, folder=folder)
        firmware = compile_tree(tree, *where)
        assert (folder.path / "expert_1_2.bin").read_bytes() in firmware.elf.read_bytes()


def test_too_much_for_c_arrays_is_refused_with_the_way_out(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)
    huge = replace(folder.files["dense.bin"], bytes=MAX_XXD_BYTES + 1)
    with pytest.raises(RenderError, match="--embed incbin"):
        weights_sources(replace(folder, files={**folder.files, "dense.bin": huge}), "xxd")


def test_far_weights_get_an_address_of_their_own_only_when_needed(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)
    _, gcc = target()
    small = tuple(folder.files.values())
    large = (replace(small[0], bytes=FAR_WEIGHTS_BYTES + 1),)
    assert not any("section-start" in flag for flag in link_flags(small, gcc))
    assert "-Wl,--section-start=.weights=0x100000000" in link_flags(large, gcc)
    assert ".weights 0x" not in layout_source(folder, small)
    assert ".weights 0x100000000 :" in layout_source(folder, large)


@pytest.mark.parametrize("toolchain", ["debian-gcc", "clang", "zig"])
def test_a_large_models_build_id_is_ours_and_follows_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: str
) -> None:
    """To hash a binary, GNU ld reads all of it into memory: 2 GB for 2 GB of weights, 0.4 GB without."""
    where, found = target("x86-64-v3", toolchain), []
    monkeypatch.setattr(link, "OWN_BUILD_ID_BYTES", 1)
    for seed in (1, 1, 2):
        tree = stub_tree(tmp_path, monkeypatch, where, folder=tiny_folder(tmp_path, seed=seed))
        wanted = next(flag for flag in tree.link_flags if "build-id" in flag).partition("0x")[2]
        notes = subprocess.run(
            ["readelf", "-n", str(compile_tree(tree, *where).elf)], check=True, capture_output=True, text=True
        ).stdout
        assert f"Build ID: {wanted}" in notes
        found.append(wanted)
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("toolchain", ["debian-gcc", "clang", "zig"])
def test_weights_at_an_address_of_their_own_link_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: str
) -> None:
    """Large models only differ in the limit: here it is lowered, and the firmware must give the same answer."""
    where = target("x86-64-v3", toolchain)
    folder = tiny_folder(tmp_path)
    answers = []
    for limit in (FAR_WEIGHTS_BYTES, 1):
        monkeypatch.setattr(link, "FAR_WEIGHTS_BYTES", limit)
        firmware = compile_tree(stub_tree(tmp_path, monkeypatch, where, folder=folder), *where)
        section = read_facts(firmware.elf).section(".weights")
        assert section is not None
        assert (section.address == 0x100000000) == (limit == 1)
        answers.append(subprocess.run([str(firmware.elf)], check=True, capture_output=True).stdout)
    assert answers[0] == answers[1]


def test_a_golden_prompt_without_answer_is_refused(tmp_path: Path) -> None:
    board, toolchain = target()
    with pytest.raises(RenderError, match="no answer"):
        render_tree(
            tiny_folder(tmp_path), board, toolchain, OPTIONS, replace(GOLDEN, ids=()), TOKENIZER, tmp_path / "out"
        )
