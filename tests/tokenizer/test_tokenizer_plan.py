"""The plan of a model whose tokenizer changes text, with a long context, covers what the binary really has."""

from __future__ import annotations

from pathlib import Path

from elftools.elf.elffile import ELFFile
from tokenizer_families import FAMILIES

from support.builds import build_tiny, quick_board
from support.tiny_checkpoint import write_tiny_checkpoint

CONTEXT = 32768


def test_static_memory_stays_within_the_plan_s_regions(tmp_path: Path) -> None:
    """Work memory that the plan forgets is memory that the board may not have; zeros in the file are flash."""
    tokenizer = FAMILIES["qwen2"]()
    folder = write_tiny_checkpoint(
        tmp_path / "tiny", vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=CONTEXT
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    how = {"context": CONTEXT, "golden_tokens": 1, "prompts": ("a",), "max_threads": 1}
    result = build_tiny(tmp_path, quick_board(tmp_path), **how)
    assert result.report.ok, [check for check in result.report.checks if not check.ok]
    planned = {region.name: region.ram_bytes for region in result.plan.regions}
    with result.firmware.elf.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab")
        sizes = {symbol.name: symbol["st_size"] for symbol in symbols.iter_symbols()}
        file.seek(0)
        data = ELFFile(file).get_section_by_name(".data")["sh_size"]
        zeros = ELFFile(file).get_section_by_name(".bss")["sh_size"]
    assert sizes["tokenizer_text"] == 16 * CONTEXT
    assert data < 65536
    assert data + zeros < planned["KV cache"] + planned["arena"] + planned["buffers"]
