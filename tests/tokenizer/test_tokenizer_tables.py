"""The generated tables: the same on every run, readable, small, and quick to make and compile at 128k tokens."""

from __future__ import annotations

import random
import resource
import subprocess
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tokenizer_corpus import plain, with_template, with_whole_words
from tokenizer_firmware import RUNTIME, STRICT

from colibri_build.artifacts import AddedToken, Tokenizer
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.errors import RenderError
from colibri_build.render.tokenizer_tables import c_list, c_string, tokenizer_tables, tokenizer_tables_source


def ours() -> Tokenizer:
    return read_tokenizer_bytes(with_template().to_str().encode(), 1600)


def large_tokenizer() -> Tokenizer:
    """128k tokens of 8 bytes on average and 280k merges: the size of today's largest byte-level vocabularies."""
    rng = np.random.default_rng(2)
    ends = np.cumsum(rng.integers(3, 13, 128_000 - 256))
    text = rng.bytes(int(ends[-1]))
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [text[start:end] for start, end in pairwise([0, *ends.tolist()])]
    pairs = np.unique(rng.integers(0, 128_000, (280_000, 2)), axis=0)
    pairs = rng.permutation(pairs).tolist()
    merges = tuple((left, right, 256 + index % 127_744) for index, (left, right) in enumerate(pairs))
    return Tokenizer(tuple(tokens), merges, (), "gpt2", False, True, (), (), b"{}")


def object_bytes(source: str, folder: Path, vocab_size: int) -> int:
    """Compile the tables strictly and return the size of their constants."""
    (folder / "tokenizer_tables.c").write_text(source)
    (folder / "model_config.h").write_text(f"#define MODEL_VOCAB_SIZE {vocab_size}\n#define MODEL_CONTEXT 4096\n")
    includes = [f"-I{RUNTIME}", f"-I{RUNTIME / 'include'}", f"-I{folder}"]
    output = folder / "tokenizer_tables.o"
    command = ["gcc", "-O3", *STRICT, *includes, "-c", str(folder / "tokenizer_tables.c"), "-o", str(output)]
    subprocess.run(command, check=True)
    return int(subprocess.run(["size", str(output)], check=True, capture_output=True).stdout.split()[6])


def test_the_same_tokenizer_renders_to_the_same_bytes_within_120_columns() -> None:
    source = tokenizer_tables_source(ours())
    assert source == tokenizer_tables_source(ours())
    assert max(map(len, source.split("\n"))) <= 120
    assert source.isascii()


def test_128k_tokens_and_280k_merges_render_and_compile_in_seconds(tmp_path: Path) -> None:
    tokenizer = large_tokenizer()
    start = time.process_time()
    source = tokenizer_tables_source(tokenizer)
    assert time.process_time() - start < 5
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    size = object_bytes(source, tmp_path, 128_000)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start < 10
    assert size < 6.5e6


def test_tables_of_a_trained_vocabulary_take_at_most_four_times_its_text(tmp_path: Path) -> None:
    """Constants of 13 bytes a token: two index tables, two columns of merges. A pair of 8-byte columns would show."""
    tokenizer = read_tokenizer_bytes(plain().to_str().encode(), 1500)
    assert not tokenizer_tables(tokenizer).merge_ranks
    text_bytes = sum(map(len, tokenizer.tokens))
    assert object_bytes(tokenizer_tables_source(tokenizer), tmp_path, 1500) < text_bytes + 14 * 1500 + 2500


def test_ranks_are_written_where_the_ids_of_results_do_not_follow_them() -> None:
    tokenizer = read_tokenizer_bytes(with_whole_words().to_str().encode(), 2000)
    assert tokenizer_tables(tokenizer).merge_ranks


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 50, 61, 400])
def test_literals_and_lists_come_back_from_the_compiler_as_they_were(tmp_path: Path, length: int) -> None:
    rng = random.Random(length)
    data = bytes(rng.choice((*b'"\\?=/ 01a\n', 0, 127, 128, 255)) for _ in range(length))
    numbers = [rng.randrange(10**9) for _ in range(length)]
    program = tmp_path / "literals.c"
    program.write_text(
        '#include <stdio.h>\n#pragma GCC diagnostic ignored "-Woverlength-strings"\n'
        f"static const unsigned char text[] ={c_string(data)};\nstatic const unsigned numbers[] = {{{c_list(numbers)}}};\n"
        "int main(void) {\n fwrite(text, 1, sizeof text - 1, stdout);\n"
        ' for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) printf(",%u", numbers[i]);\n return 0; }\n'
    )
    subprocess.run(["gcc", *STRICT, str(program), "-o", str(tmp_path / "literals")], check=True)
    output = subprocess.run([str(tmp_path / "literals")], check=True, capture_output=True).stdout
    assert output == data + b"".join(b",%d" % number for number in numbers or [0])


def test_a_firmware_for_another_runtime_or_vocabulary_does_not_compile(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        object_bytes(tokenizer_tables_source(ours()), tmp_path, 1599)
    source = tokenizer_tables_source(ours())
    assert "#if COLIBRI_ABI != 1\n" in source
    with pytest.raises(subprocess.CalledProcessError):
        object_bytes(source.replace("COLIBRI_ABI != 1", "COLIBRI_ABI != 2"), tmp_path, 1600)


def test_what_the_runtime_lacks_is_refused() -> None:
    with pytest.raises(RenderError, match="the runtime has no pre-tokenizer 'llama3'"):
        tokenizer_tables_source(replace(ours(), pretokenizer="llama3"))
    many = tuple(AddedToken(0, b"%d" % i, False) for i in range(65536))
    with pytest.raises(RenderError, match="65536 added tokens, the tables hold 65535"):
        tokenizer_tables_source(replace(ours(), added=many))
