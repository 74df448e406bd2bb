"""The generated tables: the same on every run, readable, small, and quick to make and compile at 128k tokens."""

from __future__ import annotations

import random
import resource
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizer_corpus import plain, with_template, with_whole_words
from tokenizer_firmware import RUNTIME, STRICT

from colibri_build.artifacts import AddedToken, Tokenizer
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.errors import RenderError
from colibri_build.render.c_data import c_list, c_string
from colibri_build.render.tokenizer_tables import tokenizer_tables, tokenizer_tables_source


def ours() -> Tokenizer:
    return read_tokenizer_bytes(with_template().to_str().encode(), 1600)


def large_tokenizer() -> Tokenizer:
    """128k tokens of 7 bytes on average, and every split of them as a merge: as large vocabularies of today have it."""
    rng = random.Random(2)
    tokens = {bytes([byte]): byte for byte in range(256)}
    pool = list(tokens)
    while len(tokens) < 128_000:
        text = rng.choice(pool) + rng.choice(pool[: 1 + len(pool) // 8])
        if len(text) < 14 and text not in tokens:
            tokens[text] = len(tokens)
            pool.append(text)
    merges: list[tuple[int, int, int]] = []
    for text, token in tokens.items():
        splits = [(tokens.get(text[:at]), tokens.get(text[at:])) for at in range(1, len(text))]
        merges += [(left, right, token) for left, right in sorted(pair for pair in splits if None not in pair)]
    return replace(ours(), tokens=tuple(tokens), merges=tuple(merges), added=(), ignore_merges=True)


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


def test_128k_tokens_and_all_their_splits_take_less_than_twice_their_text(tmp_path: Path) -> None:
    """And they render and compile in seconds."""
    tokenizer = large_tokenizer()
    start = time.process_time()
    source = tokenizer_tables_source(tokenizer)
    assert time.process_time() - start < 8
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    size = object_bytes(source, tmp_path, 128_000)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start < 10
    assert size < 2 * sum(map(len, tokenizer.tokens))


def test_merges_of_a_trained_vocabulary_take_one_byte_a_token() -> None:
    tokenizer = read_tokenizer_bytes(plain().to_str().encode(), 1500)
    assert tokenizer_tables(tokenizer).n_exceptions == 0


def test_merges_out_of_the_order_of_ids_are_listed() -> None:
    tokenizer = read_tokenizer_bytes(with_whole_words().to_str().encode(), 2000)
    assert 0 < tokenizer_tables(tokenizer).n_exceptions < len(tokenizer.merges)


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
    stages = ours().splits * 9
    with pytest.raises(RenderError, match="the pre-tokenizer has 9 stages, the runtime holds 8"):
        tokenizer_tables_source(replace(ours(), splits=stages))
    many = tuple(AddedToken(0, b"%d" % i, False) for i in range(65536))
    with pytest.raises(RenderError, match="65536 added tokens, the tables hold 65535"):
        tokenizer_tables_source(replace(ours(), added=many))
