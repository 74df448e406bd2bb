"""A GGUF file that is damaged, or that somebody made to do harm, is one clear line, never a traceback."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType

from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.errors import CheckpointError
from support.gguf_file import write_tiny_gguf

HEADER = 24  # magic, version, counts


def _refused(path: Path, pattern: str) -> CheckpointError:
    with pytest.raises(CheckpointError, match=pattern) as caught:
        read_checkpoint(path)
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return caught.value


def _patched(path: Path, change: Callable[[bytearray], None]) -> Path:
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    return path


def _put(layout: str, offset: int, value: int) -> Callable[[bytearray], None]:
    return lambda data: struct.pack_into(layout, data, offset, value)


def _behind(data: bytearray, text: bytes) -> int:
    return data.index(text) + len(text)


@pytest.mark.parametrize("size", [0, 3, 8, 20, 100, 5000, -1, -20000])
def test_a_truncated_file_is_told_with_its_size(tmp_path, size):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    data = path.read_bytes()
    path.write_bytes(data[:size])
    _refused(path, "no GGUF file" if 0 <= size < 8 else rf"truncated: {len(data[:size])} bytes")


@pytest.mark.parametrize(
    "offset, layout, value, pattern",
    [
        (0, "<I", 0x46554746, "no GGUF file"),
        (4, ">I", 3, "big-endian"),
        (4, "<I", 1, "version 1 is not supported"),
        (4, "<I", 99, "version 99 is not supported"),
        (8, "<Q", 1 << 60, "promises 1152921504606846976 tensors"),
        (16, "<Q", 1 << 63, "promises 9223372036854775808 metadata keys"),
        (HEADER, "<Q", 1 << 62, "4611686018427387904 bytes are wanted"),
    ],
)
def test_the_start_of_the_file_is_checked(tmp_path, offset, layout, value, pattern):
    _refused(_patched(write_tiny_gguf(tmp_path / "tiny.gguf"), _put(layout, offset, value)), pattern)


def test_a_git_lfs_pointer_is_known(tmp_path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n")
    assert "git lfs pull" in str(_refused(path, "Git LFS pointer"))


@pytest.mark.parametrize("alignment", [0, 3, 48, 1 << 30])
def test_an_odd_alignment_is_refused(tmp_path, alignment):
    path = write_tiny_gguf(tmp_path / "tiny.gguf", metadata={"general.alignment": 32})
    change = _put("<I", _behind(bytearray(path.read_bytes()), b"general.alignment") + 4, alignment)
    _refused(_patched(path, change), f'"general.alignment" is {alignment}, not a power of two')


def test_another_alignment_is_read(tmp_path):
    """The writer pads to the alignment that it is told; 64 is as good as 32."""
    plain = read_checkpoint(write_tiny_gguf(tmp_path / "plain.gguf"))
    wide = read_checkpoint(write_tiny_gguf(tmp_path / "wide.gguf", alignment=64))
    for name in plain.tensors:
        np.testing.assert_array_equal(wide.tensors[name], plain.tensors[name])


def _tensor_info(data: bytearray, name: bytes) -> int:
    """Where the entry of a tensor goes on behind its name."""
    return _behind(data, struct.pack("<Q", len(name)) + name)


@pytest.mark.parametrize(
    "where, layout, value, pattern",
    [
        (0, "<I", 0, "has 0 dimensions"),
        (0, "<I", 5, "has 5 dimensions"),
        (4, "<Q", 0, r"has shape \[301, 0\]"),
        (4, "<Q", 1 << 63, "of type F32 has shape"),
        (12, "<Q", 300, r"has shape \[300, 64\], config.json asks for \[301, 64\]"),
        (12, "<Q", 1 << 40, "ends at byte"),
        (20, "<I", 5, "has type id 5, which is not known"),
        (20, "<I", 1234, "has type id 1234, which is not known"),
        (20, "<I", 26, "dtype I32, supported are"),
        (20, "<I", 12, "of type Q4_K has shape"),
        (24, "<Q", 33, "starts at byte"),
        (24, "<Q", 0, "inside of another one"),
        (24, "<Q", 1 << 62, "ends at byte"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(tmp_path, where, layout, value, pattern):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    at = _tensor_info(bytearray(path.read_bytes()), b"output.weight")
    error = _refused(_patched(path, _put(layout, at + where, value)), pattern)
    assert "output.weight" in str(error) or "lm_head.weight" in str(error)


def test_a_name_that_appears_twice_is_refused(tmp_path):
    path = write_tiny_gguf(tmp_path / "tiny.gguf")
    _refused(
        _patched(path, lambda data: data.__setitem__(slice(None), data.replace(b"blk.0.attn_q.", b"blk.0.attn_v."))),
        "tensor blk.0.attn_v.weight appears twice",
    )
    path = write_tiny_gguf(tmp_path / "key.gguf")
    renamed = (b"llama.attention.head_count_kv", b"llama.attention.head_count_ku")
    _patched(path, lambda data: data.__setitem__(slice(None), data.replace(*renamed)))
    _refused(path, 'unknown key "llama.attention.head_count_ku"')


@pytest.mark.parametrize(
    "name, pattern",
    [
        ("blk.1.attn_k.weight", "1 of .* tensors are missing; the first: model.layers.1.self_attn.k_proj.weight"),
        ("blk.0.ffn_up_exps.weight", "4 of .* tensors are missing"),
        ("token_embd.weight", "no matrix token_embd.weight"),
        ("output_norm.weight", "the first: model.norm.weight"),
    ],
)
def test_a_missing_tensor_is_named(tmp_path, name, pattern):
    _refused(write_tiny_gguf(tmp_path / "tiny.gguf", edit=lambda tensors: tensors.pop(name)), pattern)


@pytest.mark.parametrize(
    "name", ["blk.0.attn_q_proj.weight", "blk.7.attn_q.weight", "mm.0.weight", "blk.0.ffn_gate_exps.scale"]
)
def test_a_tensor_without_use_is_named(tmp_path, name):
    more = {name: (np.ones((64, 64), np.float32), GGMLQuantizationType.F32)}
    _refused(write_tiny_gguf(tmp_path / "tiny.gguf", edit=lambda tensors: tensors.update(more)), r"tensor|q_proj")


def test_a_transposed_matrix_is_refused(tmp_path):
    def edit(tensors):
        values, kind = tensors["blk.0.ffn_down_exps.weight"]
        tensors["blk.0.ffn_down_exps.weight"] = (np.ascontiguousarray(values.swapaxes(1, 2)), kind)

    _refused(
        write_tiny_gguf(tmp_path / "tiny.gguf", edit=edit), r"has shape \[96, 64\], config.json asks for \[64, 96\]"
    )


def _outcome(path: Path, data: bytearray) -> str:
    """The message, or "" where the file is still a model."""
    path.write_bytes(data)
    try:
        read_checkpoint(path)
    except CheckpointError as error:
        return str(error)
    return ""


def test_no_byte_of_the_header_makes_a_traceback(tmp_path):
    """Each byte flip gives a model or a CheckpointError: nothing else ever leaves the reader."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", kind=GGMLQuantizationType.Q8_0, num_hidden_layers=1)
    sound = path.read_bytes()
    end = sound.index(b"output.weight") + 64
    generator = np.random.default_rng(0)
    messages = []
    for _ in range(300):
        data = bytearray(sound)
        for at in generator.integers(0, end, generator.integers(1, 4)):
            data[at] ^= 1 << generator.integers(0, 8)
        messages.append(_outcome(path, data))
    assert not [message for message in messages if "\n" in message]
    assert len([message for message in messages if message]) > 50


def test_no_header_field_makes_a_traceback(tmp_path):
    """Counts, lengths, types and offsets replaced by the values that break arithmetic."""
    path = write_tiny_gguf(tmp_path / "tiny.gguf", num_hidden_layers=1)
    sound = path.read_bytes()
    starts = [sound.index(key) for key in (b"llama.embedding_length", b"tokenizer.ggml.tokens", b"blk.0.ffn_up_exps")]
    messages = []
    for start in starts:
        for offset in range(start - 8, start + 72, 4):
            for value in (0, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63):
                data = bytearray(sound)
                struct.pack_into("<Q", data, offset, value)
                messages.append(_outcome(path, data))
    assert not [message for message in messages if "\n" in message]
    assert all(messages[:50])
