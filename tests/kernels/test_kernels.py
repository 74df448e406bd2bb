"""Every kernel on every instruction set gives the bits of docs/numerics.md.

The expected bytes come from NumPy (colibri_build.reference.numbers), so that an error which two kernel sets share is
seen as well as one that tells them apart. Without these tests a firmware that was validated under QEMU could answer
differently on the board.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from column_cases import column_cases
from kernel_build import GCC_AVX2, MAIN_PLATFORMS, OTHER_PLATFORMS, PLATFORMS, Builder, Platform
from kernel_protocol import Case, differences, encode_cases, untouched
from product_cases import exact_product, product_cases
from vector_cases import vector_cases

from colibri_build.reference import numbers

CONFIGURATIONS = [(group_size, bits) for group_size in (32, 64, 128) for bits in (8, 16)]
BUILDS = [(platform, *configuration) for platform in MAIN_PLATFORMS for configuration in CONFIGURATIONS]
BUILDS += [(platform, *configuration) for platform in OTHER_PLATFORMS for configuration in ((64, 8), (128, 16))]


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("kernels"))


class CaseFiles:
    """Cases and their file, made once for all platforms."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: dict[str, tuple[list[Case], Path]] = {}

    def get(self, name: str, make: Callable[..., list[Case]], *arguments: int) -> tuple[list[Case], Path]:
        if name not in self.made:
            cases = make(*arguments)
            path = self.folder / f"{name}.cases"
            path.write_bytes(encode_cases(cases))
            self.made[name] = (cases, path)
        return self.made[name]


@pytest.fixture(scope="session")
def case_files(tmp_path_factory: pytest.TempPathFactory) -> CaseFiles:
    return CaseFiles(tmp_path_factory.mktemp("cases"))


def check(builder: Builder, platform: Platform, binary: Path, cases: list[Case], file: Path) -> None:
    done = builder.run(platform, binary, file)
    assert done.returncode == 0, done.stderr
    wrong = differences(cases, binary.with_suffix(".results").read_bytes())
    assert not wrong, f"{len(wrong)} of {len(cases)} cases:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_vector_kernels_give_the_reference_bits(platform: Platform, builder: Builder, case_files: CaseFiles) -> None:
    cases, file = case_files.get("vector", vector_cases)
    check(builder, platform, builder.harness(platform, 128, 16), cases, file)


@pytest.mark.parametrize("platform, group_size, bits", BUILDS, ids=str)
def test_products_give_the_reference_bits(
    platform: Platform, group_size: int, bits: int, builder: Builder, case_files: CaseFiles
) -> None:
    cases, file = case_files.get(f"product-{group_size}-{bits}", product_cases, group_size, bits)
    check(builder, platform, builder.harness(platform, group_size, bits), cases, file)


@pytest.mark.parametrize("platform, group_size, bits", BUILDS, ids=str)
def test_products_with_columns_give_the_reference_bits(
    platform: Platform, group_size: int, bits: int, builder: Builder, case_files: CaseFiles
) -> None:
    """Otherwise the answer to a prompt would depend on how many of its tokens ran together."""
    cases, file = case_files.get(f"columns-{group_size}-{bits}", column_cases, group_size, bits)
    check(builder, platform, builder.harness(platform, group_size, bits), cases, file)


def test_fused_multiply_add_is_noticed(builder: Builder, case_files: CaseFiles) -> None:
    """Built with contraction, both the products and the element-wise kernels differ: the comparison is not blind."""
    fused = replace(GCC_AVX2, contract="fast")
    binary = builder.harness(fused, 128, 16)
    for name, make, arguments in (
        ("vector", vector_cases, ()),
        ("product-128-16", product_cases, (128, 16)),
        ("columns-128-16", column_cases, (128, 16)),
    ):
        cases, file = case_files.get(name, make, *arguments)
        assert builder.run(fused, binary, file).returncode == 0
        wrong = differences(cases, binary.with_suffix(".results").read_bytes())
        assert len(wrong) > len(cases) // 8, f"{name}: only {len(wrong)} of {len(cases)} cases differ"


@pytest.mark.parametrize(
    "operation, status, message",
    [("write_before_buffer", 3, "a byte outside this buffer"), ("write_past_page", 4, "touched memory outside")],
)
def test_the_harness_notices_writes_outside_a_buffer(
    operation: str, status: int, message: str, builder: Builder, tmp_path: Path
) -> None:
    """Otherwise an overrun that destroys a neighbour in the arena would pass every comparison here."""
    file = tmp_path / "overrun.cases"
    file.write_bytes(encode_cases([Case(operation, operation, [untouched(8, "f4")], {})]))
    done = builder.run(GCC_AVX2, builder.harness(GCC_AVX2, 128, 16), file)
    assert done.returncode == status
    assert message in done.stderr


@pytest.mark.parametrize("group_size, bits", CONFIGURATIONS)
def test_expected_products_are_near_the_exact_ones(group_size: int, bits: int) -> None:
    """The expectation itself, against float64 without any quantized activation: a wrong zero point or scale shows."""
    rng = np.random.default_rng(9)
    rows, cols = 24, 576
    x = rng.standard_normal(cols).astype(np.float32)
    groups = numbers.group_count(cols, group_size)
    codes = rng.integers(0, 16, (rows, cols)).astype(np.uint8)
    zeros = rng.integers(0, 16, (rows, groups)).astype(np.uint8)
    scales = rng.uniform(0.01, 0.02, (rows, groups)).astype(np.float16)
    spread = [np.repeat(a.astype(np.float64), group_size, axis=1)[:, :cols] for a in (zeros, scales)]
    exact = ((codes - spread[0]) * spread[1]) @ x.astype(np.float64)
    y = exact_product(codes, zeros, scales, numbers.quantize_activation(x, group_size, bits))
    error = np.linalg.norm(y - exact) / np.linalg.norm(exact)
    assert error < {8: 1e-2, 16: 4e-5}[bits]
