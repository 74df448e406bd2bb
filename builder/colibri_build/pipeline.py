"""The stages in order: the table of contents of the program."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from colibri_build import __version__
from colibri_build.artifacts import (
    BuildOptions,
    BuildPlan,
    BuildReport,
    ChatForm,
    Firmware,
    Generation,
    ModelFolder,
    QuantizedModel,
)
from colibri_build.build_folder import (
    BINARY_NAME,
    BUILD_FILE,
    PLAN_FILE,
    RECORDS,
    REPORT_FILE,
    WEIGHTS_FOLDER,
    Built,
    is_as_inspected,
    json_bytes,
    open_build,
    read_golden,
    remove_build,
    require_writable,
    taken,
    write_golden,
)
from colibri_build.checkpoint.tokenizer import read_tokenizer_bytes
from colibri_build.checkpoint.tokenizer_encode import encode_prompt, encode_text
from colibri_build.compile.build import built_objects, compile_tree
from colibri_build.elf.inspect import inspect_firmware, report_to_json
from colibri_build.errors import ColibriError, ImageError, VerifyError
from colibri_build.events import SILENT, Events
from colibri_build.files import sha256_of, write_whole
from colibri_build.image.boot_files import read_boot_files
from colibri_build.image.first_stage import compile_first_stage
from colibri_build.image.flash import FlashEvents, FlashOptions, FlashResult
from colibri_build.image.flash import flash as flash_image
from colibri_build.image.initramfs import write_initramfs
from colibri_build.image.make import ImageOptions, make_image
from colibri_build.image.manifest import IMAGE_FILE, Manifest
from colibri_build.layout import TOKENIZER_FILE
from colibri_build.model_source import open_model
from colibri_build.model_source import quantize_checkpoint as quantize_checkpoint
from colibri_build.pack.reader import load_quantized, read_model_folder
from colibri_build.plan.budget import check_fits, make_plan, model_prefill_batch, options_to_json, plan_to_json
from colibri_build.reference.generate import generate
from colibri_build.reference.model import ReferenceModel
from colibri_build.render.chat import chat_form
from colibri_build.render.tokenizer_tables import tokenizer_tables_source
from colibri_build.render.tree import render_tree
from colibri_build.requests import DEFAULT_PROMPTS, BuildRequest, build_folder_of
from colibri_build.requests import QuantizeChoices as QuantizeChoices
from colibri_build.resources import cache_folder, code_digest
from colibri_build.run.qemu_system import DirectBoot, Hardware, QemuSystem
from colibri_build.run.runner import Runner, runner_for
from colibri_build.run.verify import VerifyReport, verify_firmware
from colibri_build.target.board import Board, load_board
from colibri_build.target.kernel import read_modules
from colibri_build.target.toolchain import VENDOR, Toolchain, resolve_toolchain
from colibri_build.up_to_date import STAMP_FILE, Watch

GOLDEN_TOKENS = (4, 32)  # tokens that the reference generates for each golden prompt: least, most
GOLDEN_BYTES = 1 << 30  # of weights that it reads for all of them, about: that takes NumPy seconds


@dataclass(frozen=True)
class BuildResult:
    """Everything that a build made."""

    out: Path
    board: Board
    toolchain: Toolchain
    folder: ModelFolder
    plan: BuildPlan
    golden: tuple[Generation, ...]
    firmware: Firmware
    report: BuildReport


def plan_build(request: BuildRequest, events: Events = SILENT) -> tuple[ModelFolder, Board, BuildPlan]:
    """The budget of a build. Does not compile, and does not refuse: see check_fits."""
    board = load_board(request.board)
    folder = open_model(request.model, request.quantize, events)
    return folder, board, make_plan(folder, board, _options(request, folder, board))


def _options(request: BuildRequest, folder: ModelFolder, board: Board) -> BuildOptions:
    context = request.context or min(board.default_context, folder.config.max_context)
    if not 1 <= context <= folder.config.max_context:
        raise ColibriError(
            f"context {context} is outside 1..{folder.config.max_context}, the positions that the model knows",
            hint=f"--ctx {min(board.default_context, folder.config.max_context)}",
        )
    threads = request.max_threads or board.cores
    chat = _chat_form(request, folder, context)
    batch = request.prefill_batch or model_prefill_batch(folder)
    return BuildOptions(context, threads, request.activation_bits, request.embed, request.debug, chat, batch)


def _chat_form(request: BuildRequest, folder: ModelFolder, context: int) -> ChatForm | None:
    """What --chat writes around every prompt. Raises ColibriError where the model has no template, or no room is left."""
    if not request.chat:
        if request.system is not None:
            raise ColibriError("--system without --chat", hint="--chat, or leave --system out")
        return None
    if folder.chat is None:
        raise ColibriError(
            f"{request.model} has no chat template: --chat has nothing to compile",
            hint="leave --chat out, or add chat_template.jinja to the checkpoint and quantize it again",
        )
    form = chat_form(folder.chat, request.system)
    n_tokens = len(encode_prompt((folder.path / TOKENIZER_FILE).read_bytes(), "", form))
    if n_tokens >= context:
        raise ColibriError(
            f"the chat form takes {n_tokens} tokens, the context holds {context}",
            hint="a larger --ctx, or a shorter --system",
        )
    return replace(form, n_tokens=n_tokens)


def build(request: BuildRequest, events: Events = SILENT) -> BuildResult:
    """model -> plan -> golden answers -> C tree -> ELF -> inspection. Raises the failing stage's error.

    What is quick to find out (board, toolchain, emulator, folder) is looked at before the model is quantized.
    """
    board = load_board(request.board)
    toolchain = resolve_toolchain(board, request.toolchain)
    if request.will_run:
        runner_for(board)
    out = build_folder_of(request)
    require_writable(out)
    watch = Watch(request, toolchain.cc)
    folder, board, plan = plan_build(request, events)
    if folder.chat is not None and not request.chat:
        events.note("the model has a chat template; --chat puts every prompt into its form (docs/chat.md)")
    events.planned(plan)
    check_fits(plan, board)
    with taken(out):
        if request.pristine:
            remove_build(out)
        (out / STAMP_FILE).unlink(missing_ok=True)
        (out / BUILD_FILE).unlink(missing_ok=True)  # from here to the end, the folder holds no finished build
        quantized = load_quantized(folder, read_tokenizer_bytes)
        golden = _golden(folder, quantized, plan, request, out, events)
        events.stage(f"render C for {board.name}")
        tables = tokenizer_tables_source(quantized.tokenizer)
        tree = render_tree(folder, board, toolchain, plan.options, golden[0], tables, out)
        because = f": {toolchain.why}" if toolchain.why else ""
        events.stage(f"compile with {toolchain.name} ({toolchain.version}){because}")
        firmware = compile_tree(tree, board, toolchain, on_command=events.command, on_progress=events.progress)
        events.stage("inspect the binary")
        report = inspect_firmware(firmware, folder, board, toolchain, plan)
        result = BuildResult(out, board, toolchain, folder, plan, golden, firmware, report)
        _write_records(result, request)
        if report.ok:
            made = (*(out / name for name in (*tree.files, *RECORDS)), firmware.elf, *built_objects(out))
            watch.finish(out, made, build_record(result))
    return result


def build_record(result: BuildResult) -> dict[str, Any]:
    """What `--json` says of a build."""
    return {
        "out": str(result.out),
        "plan": plan_to_json(result.plan),
        "toolchain": {name: getattr(result.toolchain, name) for name in ("name", "version", "why")},
        "report": report_to_json(result.report),
    }


def _golden(
    folder: ModelFolder,
    quantized: QuantizedModel,
    plan: BuildPlan,
    request: BuildRequest,
    out: Path,
    events: Events,
) -> tuple[Generation, ...]:
    """The reference's answers to the golden prompts; those of any build with the same key are kept: boards share them."""
    options = plan.options
    prompts = _golden_prompts(request, quantized, options)
    tokens = request.golden_tokens or _golden_tokens(plan, len(prompts))
    key = {
        "builder": code_digest(),
        "model": folder.digest,
        "activation_bits": options.activation_bits,
        "context": options.context,
        "tokens": tokens,
        "prompts": list(prompts),
        "chat": asdict(options.chat) if options.chat else None,
    }
    kept = read_golden(out, key) or _shared_golden(key)
    if kept:
        write_golden(out, key, kept)
        return kept
    events.stage("ask the reference for the golden answers")
    reference = ReferenceModel(quantized, activation_bits=options.activation_bits, context=options.context)
    answers: list[Generation] = []
    for prompt in prompts:
        events.progress("golden prompts", len(answers), len(prompts))
        answers.append(reference_answer(reference, quantized, prompt, tokens, options.chat))
    write_golden(out, key, answers)
    with suppress(ColibriError):  # a user without a home folder, or with a full one, builds as well
        write_golden(_golden_cache(key), key, answers)
    return tuple(answers)


def _golden_cache(key: dict[str, Any]) -> Path:
    """Where the answers are kept for other boards."""
    return cache_folder() / "golden" / hashlib.sha256(json_bytes(key)).hexdigest()[:16]


def _shared_golden(key: dict[str, Any]) -> tuple[Generation, ...]:
    """The answers of another board's build; nothing if there are none."""
    with suppress(ColibriError):
        return read_golden(_golden_cache(key), key)
    return ()


def _golden_prompts(request: BuildRequest, quantized: QuantizedModel, options: BuildOptions) -> tuple[str, ...]:
    """The user's prompts; of the built-in ones, those that a small context holds, the first in any case."""
    if request.prompts != DEFAULT_PROMPTS:
        return request.prompts
    first, *others = DEFAULT_PROMPTS
    lengths = {prompt: len(_prompt_ids(quantized, prompt, options.chat)) for prompt in others}
    return (first, *(prompt for prompt in others if lengths[prompt] <= options.context))


def _prompt_ids(quantized: QuantizedModel, prompt: str, chat: ChatForm | None) -> list[int]:
    """What the firmware feeds for a prompt."""
    if chat is None:
        return encode_text(quantized.tokenizer, prompt)
    return encode_prompt(quantized.tokenizer.json_bytes, prompt, chat)


def _golden_tokens(plan: BuildPlan, n_prompts: int) -> int:
    """How many tokens of each golden prompt's answer the reference computes."""
    least, most = GOLDEN_TOKENS
    return max(least, min(most, GOLDEN_BYTES // plan.active_weight_bytes // n_prompts))


def reference_answer(
    reference: ReferenceModel, quantized: QuantizedModel, prompt: str, max_tokens: int, chat: ChatForm | None = None
) -> Generation:
    """Encode a prompt and generate greedily. Raises ColibriError for a prompt that is empty or too long."""
    ids = _prompt_ids(quantized, prompt, chat)
    if not 0 < len(ids) <= reference.context:
        raise ColibriError(
            f"golden prompt {prompt[:40]!r} has {len(ids)} tokens, the context holds {reference.context}",
            hint="use prompts of 1 token up to the context's length",
        )
    return generate(reference, prompt, ids, max_tokens)


def _write_records(result: BuildResult, request: BuildRequest) -> None:
    """plan.json, report.json, and build.json: what `run`, `verify` and `inspect` need to find the firmware again."""
    write_whole(result.out / PLAN_FILE, json_bytes(plan_to_json(result.plan)))
    write_whole(result.out / REPORT_FILE, json_bytes(report_to_json(result.report)))
    own_profile = request.board.endswith(".toml")
    again = request.toolchain  # what `auto` chose, where a name is enough to find it again
    if again == "auto" and result.toolchain.name != VENDOR:
        again = result.toolchain.name
    record = {
        "board": str(Path(request.board).resolve()) if own_profile else request.board,
        "builder": __version__,
        "model": result.folder.digest,
        "options": options_to_json(result.plan.options),
        "toolchain": {"name": result.toolchain.name, "request": again, "version": result.toolchain.version},
    }
    write_whole(result.out / BUILD_FILE, json_bytes(record))


def inspect(out: Path, events: Events = SILENT) -> BuildReport:
    """Inspect the firmware of a finished build anew, against the copy of its model folder that the tree holds."""
    built = open_build(out)
    weights = out / WEIGHTS_FOLDER
    if not weights.is_dir():
        raise ColibriError(f"{weights} is missing: nothing to compare the binary with", hint="build again")
    folder = read_model_folder(weights)
    toolchain = resolve_toolchain(built.board, built.toolchain)
    plan = make_plan(folder, built.board, built.options)
    events.stage("inspect the binary")
    return inspect_firmware(Firmware(built.elf, ()), folder, built.board, toolchain, plan)


def verify(
    built: Built, device: str = "auto", threads: Sequence[int] = (), events: Events = SILENT
) -> tuple[Runner, VerifyReport]:
    """Run the golden prompts on the firmware and compare with the reference.

    `threads`: the numbers of threads to try; without any, 1 and 2 as far as the firmware has them.
    """
    most = built.options.max_threads
    if any(n > most for n in threads):
        raise ColibriError(
            f"{max(threads)} threads: the firmware was built for {most} at most", hint=f"--threads {most}"
        )
    runner = runner_for(built.board, device)
    events.stage(f"run the golden prompts on {runner}")
    tried = threads or tuple(n for n in (1, 2) if n <= most)
    return runner, verify_firmware(runner, built.elf, built.golden, threads=tried, on_progress=events.progress)


def require_verified(report: VerifyReport) -> None:
    """Raise VerifyError if any answer differs."""
    if not report.ok:
        raise VerifyError(
            "the firmware's answers are not the reference's (see the table)",
            hint="build with --pristine; if it persists, report the toolchain's version",
        )


def image(build_dir: Path, out: Path | None, options: ImageOptions, events: Events = SILENT) -> tuple[Path, Manifest]:
    """Make an image folder (default: `image` in the build folder) from a finished and inspected build."""
    built = open_build(build_dir)
    again = f"colibri-build inspect {build_dir}, and build again with --pristine"
    if not is_as_inspected(built):
        raise ImageError(f"{built.elf} is not the binary that was inspected ({REPORT_FILE})", hint=again)
    if not json.loads((built.out / REPORT_FILE).read_bytes())["ok"]:
        raise ImageError(f"{built.elf} breaks a promise, see {built.out / REPORT_FILE}", hint=again)
    model = str(json.loads((built.out / BUILD_FILE).read_bytes())["model"])
    folder = out or built.out / "image"
    with taken(built.out):
        return folder, make_image(built.elf, built.board, model, folder, options, events)


def initramfs(board: str, toolchain: str, modules: Path | None, out: Path) -> list[str]:
    """Make the initramfs for a board and return its modules' names; `modules` is their folder (None: none)."""
    paths = () if modules is None else read_modules(modules)
    with tempfile.TemporaryDirectory(prefix="colibri-initramfs-") as folder:
        first_stage = compile_first_stage(resolve_toolchain(load_board(board), toolchain), Path(folder) / "init")
        write_initramfs(first_stage, paths, out)
    return [path.name for path in paths]


def flash(folder: Path, device: Path, options: FlashOptions, events: FlashEvents) -> FlashResult:
    """Write an image folder, or one slot of it, to a disk or a file, read it back, and only then switch the slot."""
    return flash_image(folder, device, options, events)


def is_latest(folder: Path, result: FlashResult) -> bool:
    """Whether the build folder around an image folder, if there is one, still holds the firmware that was flashed."""
    elf = folder.absolute().parent / BINARY_NAME
    return not elf.is_file() or sha256_of(elf) == result.firmware


@contextmanager
def emulated(disk: Path, board: str | None, ram_mib: int | None) -> Iterator[QemuSystem]:
    """Boot an image folder, or a flashed file, on an emulated board; it is switched off in the end.

    `board`: default is the one that the firmware is for. `ram_mib`: default is its profile's.
    """
    path = disk / IMAGE_FILE if disk.is_dir() else disk
    found = read_boot_files(path)
    # The console of the board itself is not that of the emulated machine, which QemuSystem names.
    words = tuple(word for word in found.words if not word.startswith(("console=", "colibri.slot=")))
    with tempfile.TemporaryDirectory(prefix="colibri-boot-") as name:
        kernel, initrd = Path(name) / "kernel", Path(name) / "initrd"
        kernel.write_bytes(found.kernel)
        initrd.write_bytes(found.initrd)
        boot = DirectBoot(kernel, initrd, found.slot, found.arguments, words)
        profile = load_board(board or found.firmware.board)
        with QemuSystem(profile, path, boot, Hardware(ram_mib=ram_mib), bad_patterns=()) as machine:
            yield machine
