"""Writes the complete C tree of a firmware."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from colibri_build.artifacts import BuildOptions, Generation, ModelFolder, SourceTree
from colibri_build.files import write_whole
from colibri_build.render.board_config import board_config_source
from colibri_build.render.chat import chat_form_source
from colibri_build.render.folder import claim, place
from colibri_build.render.link import LAYOUT_SCRIPT, build_id_flags, layout_source, link_flags, needs_layout_script
from colibri_build.render.makefile import makefile_source
from colibri_build.render.model_config import model_config_source
from colibri_build.render.model_tables import model_tables_source
from colibri_build.render.weights import weight_records, weights_sources
from colibri_build.resources import data_dir
from colibri_build.target.board import Board
from colibri_build.target.toolchain import Toolchain

COMPILE_FLAGS = ("-Iruntime_c", "-Iruntime_c/include", "-Igenerated", "-Iweights")
WEIGHTS_FOLDER = "weights"  # a whole model folder: what the firmware can be inspected against
_ISA_SUFFIXES = ("_neon", "_avx2")  # of files for one instruction set; `_portable` belongs to every board
_OTHER_PROGRAMS = ("boot",)  # folders of runtime_c whose files are no part of the firmware


def render_tree(
    folder: ModelFolder,
    board: Board,
    toolchain: Toolchain,
    options: BuildOptions,
    golden: Generation,
    tokenizer_source: str,
    out: Path,
) -> SourceTree:
    """Write generated/, runtime_c/, weights/ and Makefile into `out`, touching only what changed.

    The tree stands alone: it moves with its folder and outlives the model folder. `tokenizer_source` is the text of
    tokenizer_tables.c. Raises RenderError for values that C cannot express and for files of others in `out`.
    """
    records = weight_records(folder)
    flags = link_flags(records, toolchain)
    embedded = {f"generated/{name}": text for name, text in weights_sources(folder, options.embed).items()}
    texts = {
        "generated/board_config.h": board_config_source(folder, board, toolchain, options, flags),
        "generated/model_config.h": model_config_source(folder, options, golden),
        "generated/model_tables.c": model_tables_source(folder, golden),
        "generated/tokenizer_tables.c": tokenizer_source,
        **embedded,
    }
    if options.chat is not None:
        texts["generated/chat_form.c"] = chat_form_source(folder, options.chat)
    if needs_layout_script(toolchain):
        texts[LAYOUT_SCRIPT] = layout_source(folder, records)
    runtime = runtime_files(board, options)
    weights = {f"{WEIGHTS_FOLDER}/{name}": folder.path / name for name in (*folder.files, "config.json")}
    files = tuple(sorted((*texts, *runtime, *weights, "Makefile")))
    sources = (
        *sorted(name for name in (*texts, *runtime) if name.endswith(".c") and name not in embedded),
        *embedded,
    )
    code = texts | {name: source.read_text(encoding="utf-8") for name, source in runtime.items()}
    flags += build_id_flags(records, code)
    texts["Makefile"] = makefile_source(folder, toolchain, files, sources, COMPILE_FLAGS, flags)
    claim(out, files)
    for name, text in texts.items():
        write_whole(out / name, text.encode())
    for name, source in runtime.items():
        write_whole(out / name, source.read_bytes())
    for name, source in weights.items():
        place(source, out / name)
    return SourceTree(out, files, sources, COMPILE_FLAGS, flags)


def runtime_files(board: Board, options: BuildOptions) -> dict[str, Path]:
    """C sources of the runtime that this board and these options need, by their name in the tree."""
    root = data_dir("runtime_c")
    other_isas = tuple(suffix for suffix in _ISA_SUFFIXES if suffix != f"_{board.kernels}")
    return {
        str(PurePosixPath("runtime_c", path.relative_to(root).as_posix())): path
        for path in sorted(root.rglob("*.[ch]"))
        if not path.stem.endswith(other_isas) and path.relative_to(root).parts[0] not in _OTHER_PROGRAMS
        if options.debug or not _is_tracer(path)
    }


def _is_tracer(path: Path) -> bool:
    """Whether a source only serves debug builds. The headers beside it say how the others do without."""
    return path.parent.name == "trace" and path.suffix == ".c"
