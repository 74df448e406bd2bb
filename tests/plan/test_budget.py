"""The budget: sums against real files and real struct sizes, refusals, and the ways out that it promises."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from colibri_build.artifacts import BuildOptions, ChatForm, Format, Kind, ModelConfig, ModelFolder
from colibri_build.errors import PlanError
from colibri_build.pack.writer import write_model_folder
from colibri_build.plan.budget import arena_bytes, check_fits, make_plan, model_prefill_batch, plan_to_json
from colibri_build.plan.memory import kv_cache_bytes
from colibri_build.resources import data_dir
from colibri_build.target.board import Board, load_board
from support.tiny_quantized import AWKWARD_CONFIG, DEFAULT_FORMATS, random_quantized

MIB = 1024 * 1024
DENSE = ("embedding", "attention weights", "norms", "lm_head")
# 190 million weights: about the largest that a board of 200 MiB holds.
LARGE = ModelConfig(
    family="mixtral", n_layers=4, dim=1024, hidden_dim=2048, n_heads=16, n_kv_heads=4, head_dim=64, vocab_size=32000,
    n_experts=8, top_k=2, norm_topk=True, rms_eps=1e-5, rope_theta=10000.0, sliding_window=0, max_context=65536,
    tied_embeddings=False, bos_id=None, eos_ids=(2,),
)  # fmt: skip


def _folder(
    config: ModelConfig = LARGE, group_size: int = 32, formats: Mapping[Kind, Format] = DEFAULT_FORMATS
) -> ModelFolder:
    return ModelFolder(Path("large"), config, group_size, formats, {}, {}, "")


def _board(**memory: object) -> Board:
    board = load_board("cortex-a53")
    return board.model_copy(update={"memory": board.memory.model_copy(update=memory)})


def _refusal(folder: ModelFolder, board: Board, options: BuildOptions) -> PlanError:
    plan = make_plan(folder, board, options)
    assert not plan_to_json(plan)["fits"]
    with pytest.raises(PlanError) as caught:
        check_fits(plan, board)
    return caught.value


@pytest.mark.parametrize(
    ("tied", "group_size", "changes"),
    [
        (False, 32, {}),
        (True, 64, {Kind.EMBEDDING: Format.F16, Kind.LM_HEAD: Format.F16}),
        (False, 128, {Kind.ATTENTION: Format.W4, Kind.EXPERT: Format.W8}),
    ],
)
def test_the_weights_of_a_plan_are_the_bytes_on_disk(
    tmp_path: Path, tied: bool, group_size: int, changes: dict[Kind, Format]
) -> None:
    """Padding included: a plan that is short would let a model through that the partition does not hold."""
    config = replace(AWKWARD_CONFIG, tied_embeddings=tied)
    model = random_quantized(config, group_size=group_size, formats={**DEFAULT_FORMATS, **changes})
    folder = write_model_folder(model, tmp_path / "model")
    plan = make_plan(folder, load_board("cortex-a53"), BuildOptions(64, 2))
    sizes = {region.name: region.flash_bytes for region in plan.regions}
    on_disk = {path.name: path.stat().st_size for path in folder.path.iterdir()}
    assert sizes["experts"] == sum(size for name, size in on_disk.items() if name.startswith("expert_"))
    assert sizes["router"] == on_disk["routing.bin"]
    assert sum(sizes.get(name, 0) for name in DENSE) == on_disk["dense.bin"]
    assert ("lm_head" in sizes) == (not tied)


NO_EXPERTS = {"dense_layers": (0, 1), "dense_hidden_dim": 77, "n_experts": 0, "top_k": 0, "hidden_dim": 0}


@pytest.mark.parametrize(
    ("config", "group_size", "context", "batch"),
    [
        (AWKWARD_CONFIG, 32, 64, 1),
        (AWKWARD_CONFIG, 128, 33, 64),
        (LARGE, 128, 4096, 32),
        (replace(AWKWARD_CONFIG, head_dim=32, n_heads=5, n_kv_heads=5, top_k=1, n_experts=1), 64, 1, 4),
        (replace(AWKWARD_CONFIG, n_experts=60, top_k=16), 64, 9, 3),
        (replace(AWKWARD_CONFIG, shared_hidden_dim=100), 64, 9, 5),
        (replace(AWKWARD_CONFIG, dense_layers=(0,), dense_hidden_dim=77, shared_hidden_dim=33), 32, 9, 2),
        (replace(AWKWARD_CONFIG, **NO_EXPERTS), 32, 9, 7),
        (replace(AWKWARD_CONFIG, kv_rank=20, rotary_dim=2, value_dim=10, n_kv_heads=3), 32, 9, 4),
        (replace(AWKWARD_CONFIG, kv_rank=40, q_rank=36, rotary_dim=4, value_dim=4, n_kv_heads=3), 32, 9, 4),
    ],
)
def test_arena_and_cache_are_as_large_as_the_c_structs(
    tmp_path: Path, config: ModelConfig, group_size: int, context: int, batch: int
) -> None:
    """The compiler is the judge: a formula that forgets a buffer of the runtime fails here."""
    options = BuildOptions(context, 4, prefill_batch=batch)
    names = ("n_layers", "dim", "hidden_dim", "n_heads", "n_kv_heads", "head_dim", "vocab_size", "n_experts", "top_k")
    values = {name.upper(): getattr(config, name) for name in names} | {"CONTEXT": context, "GROUP_SIZE": group_size}
    values |= {"BATCH": options.batch}
    values |= {
        name.upper(): getattr(config, name) for name in ("dense_hidden_dim", "shared_hidden_dim", "kv_rank", "q_rank")
    }
    values |= {"VALUE_DIM": config.v_head_dim, "ROTARY_DIM": config.rotary_dim or config.head_dim}
    values |= {
        "HAS_EXPERTS": config.n_expert_layers,
        "DENSE_FORMAT": config.dense_hidden_dim + config.shared_hidden_dim,
    }
    defines = "".join(f"#define MODEL_{name} {value}\n" for name, value in values.items() if value)
    (tmp_path / "model_config.h").write_text(f"#pragma once\n{defines}", encoding="ascii")
    (tmp_path / "board_config.h").write_text("#define BOARD_KERNELS_PORTABLE 1\n", encoding="ascii")
    (tmp_path / "sizes.c").write_text(
        '#include "model/arena.h"\n'
        f'_Static_assert(sizeof(Arena) == {arena_bytes(config, options, group_size)}, "arena");\n'
        f'_Static_assert(sizeof(KvCache) == {kv_cache_bytes(config, context)}, "cache");\n',
        encoding="ascii",
    )
    runtime = data_dir("runtime_c")
    command = ["gcc", "-std=c11", "-fsyntax-only", f"-I{runtime}", f"-I{runtime}/include", f"-I{tmp_path}", "sizes.c"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_the_cache_shows_its_sum() -> None:
    plan = make_plan(_folder(), load_board("cortex-a53"), BuildOptions(512, 4))
    cache = next(region for region in plan.regions if region.name == "KV cache")
    assert (cache.ram_bytes, cache.flash_bytes) == (4 * 2 * 4 * 64 * 512 * 2, 0)
    assert cache.sum == "4 layers x 2 x 4 heads x 64 x 512 positions x 2 B"


def test_a_token_reads_its_experts_all_dense_weights_and_one_row() -> None:
    every_expert = replace(LARGE, top_k=LARGE.n_experts)
    plan = make_plan(_folder(every_expert), load_board("cortex-a53"), BuildOptions(512, 4))
    sizes = {region.name: region.flash_bytes for region in plan.regions}
    weights = sum(sizes[name] for name in (*DENSE, "experts", "router"))
    assert plan.active_weight_bytes == weights - sizes["embedding"] + sizes["embedding"] // LARGE.vocab_size
    two = make_plan(_folder(), load_board("cortex-a53"), BuildOptions(512, 4))
    assert plan.active_weight_bytes - two.active_weight_bytes == sizes["experts"] * 6 // 8


def test_tied_embeddings_are_read_whole_by_the_head() -> None:
    tied, untied = (replace(LARGE, tied_embeddings=value) for value in (True, False))
    plans = [make_plan(_folder(config), load_board("tda4vm"), BuildOptions(512, 2)) for config in (tied, untied)]
    row = 1024 + 1024 // 32 * 2
    assert plans[1].active_weight_bytes - plans[0].active_weight_bytes == row


def test_the_bound_is_bandwidth_by_bytes_and_absent_without_a_figure() -> None:
    plan = make_plan(_folder(), load_board("cortex-a53"), BuildOptions(512, 4))
    assert plan.bound_tokens_per_s == pytest.approx(2240e6 / plan.active_weight_bytes)
    assert make_plan(_folder(), load_board("x86-64-v3"), BuildOptions(512, 4)).bound_tokens_per_s is None


def test_a_model_that_fits_is_let_through() -> None:
    small = replace(LARGE, n_layers=1)
    plan = make_plan(_folder(small), load_board("cortex-a53"), BuildOptions(512, 4))
    check_fits(plan, load_board("cortex-a53"))
    assert plan.ways_out == ()


def test_the_refusal_says_how_much_is_lacking_with_the_sums() -> None:
    error = _refusal(_folder(), load_board("cortex-a53"), BuildOptions(16384, 4))
    assert re.match(
        r"large with 16384 positions needs 26\d\.\d MiB of RAM where cortex-a53 has 200\.0 MiB, 6\d\.\d ", error.what
    )
    assert "experts 114.0 MiB: 4 layers x 8 experts x 3735552 B (3 x 1024 x 2048 w4, groups of 32)" in error.what
    assert "KV cache 64.0 MiB: 4 layers x 2 x 4 heads x 64 x 16384 positions x 2 B" in error.what
    assert "flash where" not in error.what
    assert error.exit_code == 1


def test_the_context_that_is_offered_is_the_largest_that_fits() -> None:
    board = load_board("cortex-a53")
    error = _refusal(_folder(), board, BuildOptions(16384, 4))
    offered = re.search(r"--ctx (\d+)", str(error.hint))
    assert offered
    largest = int(offered[1])
    check_fits(make_plan(_folder(), board, BuildOptions(largest, 4)), board)
    with pytest.raises(PlanError):
        check_fits(make_plan(_folder(), board, BuildOptions(largest + 1, 4)), board)


@pytest.mark.parametrize("n_tokens", [10, 99, 100, 101, 5000])
def test_no_context_is_offered_that_the_chat_form_fills(n_tokens: int) -> None:
    """The next run with the offered --ctx would be refused for its form, without another way out."""
    folder, chat = _folder(replace(LARGE, n_layers=1)), ChatForm("A:", "", trim=False, n_tokens=n_tokens)
    fitting = make_plan(folder, load_board("cortex-a53"), BuildOptions(100, 4, chat=chat)).ram_bytes
    larger = make_plan(folder, load_board("cortex-a53"), BuildOptions(101, 4, chat=chat)).ram_bytes
    board = _board(ram_budget_mib=fitting / MIB)
    assert fitting < larger
    plan = make_plan(folder, board, BuildOptions(16384, 4, chat=chat))
    offers = [way.split(" (")[0] for way in plan.ways_out if way.startswith("--ctx ")]
    assert offers == (["--ctx 100"] if n_tokens < 100 else [])


def test_every_way_out_really_is_one() -> None:
    """Each offer is tried: larger groups, narrower attention, and another board."""
    needed = make_plan(_folder(), load_board("cortex-a53"), BuildOptions(1024, 4)).ram_bytes
    board = _board(ram_budget_mib=needed // MIB - 1)
    plan = make_plan(_folder(), board, BuildOptions(1024, 4))
    offers = [way.split(" (")[0] for way in plan.ways_out]
    assert offers[0].startswith("--ctx ")
    assert {"--group-size 128", "--format attention=w4", "--board tda4vm"} <= set(offers)
    check_fits(make_plan(_folder(group_size=128), board, BuildOptions(1024, 4)), board)
    narrow = {**DEFAULT_FORMATS, Kind.ATTENTION: Format.W4}
    check_fits(make_plan(_folder(formats=narrow), board, BuildOptions(1024, 4)), board)
    check_fits(make_plan(_folder(), load_board("tda4vm"), BuildOptions(1024, 4)), load_board("tda4vm"))


def test_the_refusal_names_a_few_of_the_boards_that_would_do() -> None:
    board = _board(ram_budget_mib=2)
    error = _refusal(_folder(replace(LARGE, n_layers=1)), board, BuildOptions(512, 4))
    boards = str(error.hint).rpartition("--board ")[2]
    assert re.fullmatch(r"[a-z0-9/-]+, [a-z0-9/-]+, [a-z0-9/-]+, \.\.\. \(\d more\)", boards)


def test_fewer_threads_are_offered_where_the_stacks_are_too_much() -> None:
    board = load_board("cortex-a53")
    folder = _folder(replace(LARGE, n_layers=1))
    base = make_plan(folder, board, BuildOptions(512, 1)).ram_bytes
    tight = _board(ram_budget_mib=-(-base // MIB))
    room = (tight.ram_budget_bytes - base) // (128 * 1024) + 1
    plan = make_plan(folder, tight, BuildOptions(512, 64))
    assert any(way.startswith(f"--threads {room} (") for way in plan.ways_out)


def test_a_smaller_batch_is_offered_where_the_prompt_buffers_are_too_much() -> None:
    """The offer is the largest batch that fits, not just any."""
    board, folder = load_board("cortex-a53"), _folder(replace(LARGE, n_layers=1))
    needed = make_plan(folder, board, BuildOptions(512, 4, prefill_batch=20)).ram_bytes
    tight = _board(ram_budget_mib=needed / MIB)
    plan = make_plan(folder, tight, BuildOptions(512, 4, prefill_batch=64))
    assert any(way.startswith("--prefill-batch 20 (") for way in plan.ways_out)


def test_the_default_batch_takes_a_few_percent_of_the_weights() -> None:
    """Nobody's memory is spent on prompts without being asked: a small model gets small batches."""
    assert model_prefill_batch(_folder()) == 32
    small = _folder(replace(LARGE, n_layers=1, dim=128, hidden_dim=256, vocab_size=768))
    assert model_prefill_batch(small) == 4
    middle = _folder(replace(LARGE, n_layers=1, vocab_size=256))
    batch = model_prefill_batch(middle)
    one, many = (make_plan(middle, load_board("tda4vm"), BuildOptions(512, 1, prefill_batch=n)) for n in (1, batch))
    weights = sum(region.flash_bytes for region in many.regions if region.name in (*DENSE, "experts", "router"))
    assert 4 < batch < 32
    assert (
        many.ram_bytes - one.ram_bytes < 0.03 * weights < (many.ram_bytes - one.ram_bytes) * (batch + 5) / (batch - 1)
    )


def test_a_batch_is_no_longer_than_the_context() -> None:
    short = make_plan(_folder(), load_board("tda4vm"), BuildOptions(5, 1, prefill_batch=32))
    assert short.ram_bytes == make_plan(_folder(), load_board("tda4vm"), BuildOptions(5, 1, prefill_batch=5)).ram_bytes


def test_changes_are_combined_where_no_single_one_is_enough() -> None:
    wide = {**DEFAULT_FORMATS, Kind.EXPERT: Format.W8}
    smallest = {**DEFAULT_FORMATS, Kind.ATTENTION: Format.W4}
    least = make_plan(
        _folder(group_size=128, formats=smallest), load_board("cortex-a53"), BuildOptions(512, 1)
    ).ram_bytes
    board = _board(ram_budget_mib=-(-least // MIB))
    plan = make_plan(_folder(formats=wide), board, BuildOptions(4096, 4, prefill_batch=32))
    pattern = r"--group-size 128 --bits 4 --format attention=w4 --threads 1 --prefill-batch 1 --ctx (\d+) \(needs .*"
    match = re.fullmatch(pattern, plan.ways_out[0])
    assert match, plan.ways_out
    assert int(match[1]) >= 512
    check_fits(make_plan(_folder(group_size=128, formats=smallest), board, BuildOptions(int(match[1]), 1)), board)
    assert all(way.startswith("--board ") for way in plan.ways_out[1:])


def test_a_model_that_fits_no_board_says_so() -> None:
    error = _refusal(_folder(replace(LARGE, n_layers=400)), load_board("cortex-a53"), BuildOptions(512, 4))
    assert error.hint == "a smaller model: no option makes this one fit, on any board"
    assert "of RAM where cortex-a53 has 200.0 MiB" in error.what
    assert "of flash where cortex-a53 has 512.0 MiB" in error.what


def test_the_plan_as_json() -> None:
    plan = make_plan(_folder(), load_board("cortex-a53"), BuildOptions(16384, 4))
    value = json.loads(json.dumps(plan_to_json(plan)))
    assert set(value) == {
        "board", "model", "options", "regions", "flash_bytes", "flash_budget_bytes", "ram_bytes", "ram_budget_bytes",
        "fits", "active_weight_bytes", "bound_tokens_per_s", "ways_out",
    }  # fmt: skip
    assert value["ram_bytes"] == sum(region["ram_bytes"] for region in value["regions"])
    assert value["options"] == {
        "context": 16384, "max_threads": 4, "activation_bits": 16, "embed": "incbin", "debug": [],
        "prefill_batch": 1,
    }  # fmt: skip
    assert set(value["regions"][0]) == {"name", "flash_bytes", "ram_bytes", "sum"}
    assert value["fits"] is False
