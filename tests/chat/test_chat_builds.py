"""From a checkpoint with a chat template to a firmware: its prompts are the template's, natively and emulated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_templates import STYLES
from tokenizers import Tokenizer, processors

from colibri_build import pipeline
from colibri_build.artifacts import ChatTemplate
from colibri_build.build_folder import open_build
from colibri_build.checkpoint.reader import read_checkpoint
from colibri_build.errors import CheckpointError, ColibriError, PackError, PlanError
from colibri_build.pack.reader import read_model_folder
from colibri_build.pipeline import BuildRequest, BuildResult
from support.builds import QUANTIZE, build_tiny, quick_board, run
from support.command_line import error_line, runner
from support.model_folders import rehash
from support.tiny_checkpoint import END_TOKEN, tiny_tokenizer, write_json, write_tiny_checkpoint

SYSTEM = 'Say "y".\n\\ ? \u00e9'
PROMPTS = (" turn it on \n", f"a {END_TOKEN} b")


def checkpoint(folder: Path, style: str, **config: object) -> Path:
    """A tiny checkpoint whose tokenizer puts <|end|> before a plain prompt, which no chat form may get twice."""
    write_tiny_checkpoint(folder, max_position_embeddings=160, **config)
    tokenizer = tiny_tokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{END_TOKEN} $A", special_tokens=[(END_TOKEN, 0)])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(STYLES[style].template, encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {"bos_token": {"content": END_TOKEN}, "eos_token": END_TOKEN})
    return folder


def expected_ids(folder: Path, style: str, text: str, system: str | None = None) -> list[int]:
    """The style's text by hand, encoded by the library as `apply_chat_template` does."""
    chosen = STYLES[style]
    whole = chosen.plain if system is None else str(chosen.with_system).replace("SYS", system)
    whole = whole.replace(chosen.tokens.get("bos_token", "\0"), END_TOKEN)
    whole = whole.replace("TEXT", text.strip() if chosen.trims else text)
    library = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return list(library.encode(whole, add_special_tokens=False).ids)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    folder = tmp_path_factory.mktemp("gemma")
    model = checkpoint(folder / "tiny", "gemma")
    return build_tiny(
        folder, quick_board(folder), model=model, chat=True, prompts=PROMPTS, context=100, golden_tokens=3
    )


def test_golden_prompts_are_in_the_template_s_form(built: BuildResult) -> None:
    """Of tokens in the user's text, too: `apply_chat_template` knows them there."""
    model = built.out.parent / "tiny"
    for golden in built.golden:
        assert list(golden.prompt_ids) == expected_ids(model, "gemma", golden.prompt)


def test_the_firmware_keeps_its_promises_and_answers_as_the_reference(built: BuildResult) -> None:
    assert built.report.ok, [check for check in built.report.checks if not check.ok]
    _, verdict = pipeline.verify(open_build(built.out))
    pipeline.require_verified(verdict)
    assert run(built, "--selftest").status["status"] == "ok"
    assert pipeline.inspect(built.out).ok


def test_raw_is_the_plain_prompt_with_the_tokenizer_s_own_ids(built: BuildResult) -> None:
    ids = Tokenizer.from_file(str(built.out.parent / "tiny" / "tokenizer.json")).encode("window").ids
    plain = run(built, "--tokens", ",".join(map(str, ids)), "--max-tokens", "6").status
    raw = run(built, "--prompt", "window", "--max-tokens", "6", "--raw").status
    assert raw["prompt_tokens"] == len(ids)
    assert (raw["ids"], raw["logits_hash"]) == (plain["ids"], plain["logits_hash"])
    lines = run(built, "--stdin", "--max-tokens", "6", "--raw", stdin=b"window\n")
    assert lines.status["prompt_tokens"] == len(ids)


def test_info_says_that_there_is_a_form(built: BuildResult) -> None:
    chat = built.plan.options.chat
    assert chat is not None and chat.trim
    info = json.loads(run(built, "--info").stdout)
    assert info["chat_form_bytes"] == len((chat.prefix + chat.suffix).encode())


def test_the_plan_counts_the_form(built: BuildResult) -> None:
    (region,) = [region for region in built.plan.regions if region.name == "chat form"]
    chat = built.plan.options.chat
    assert chat is not None and region.flash_bytes == len((chat.prefix + chat.suffix).encode())
    assert chat.n_tokens == len(expected_ids(built.out.parent / "tiny", "gemma", ""))
    assert f"{chat.n_tokens} of 100 positions" in region.sum


def test_an_emulated_board_gives_the_same_answers(tmp_path: Path) -> None:
    model = checkpoint(tmp_path / "tiny", "deepseek")
    board = tmp_path / "a53.toml"
    board.write_text(
        'extends = "cortex-a53"\n[flags.gcc]\ncompile = ["-mcpu=cortex-a53+nocrypto", "-O1"]\n', encoding="utf-8"
    )
    how = {"chat": True, "system": SYSTEM, "prompts": PROMPTS[:1], "context": 100, "golden_tokens": 3}
    result = build_tiny(tmp_path, str(board), model=model, **how)
    (golden,) = result.golden
    assert list(golden.prompt_ids) == expected_ids(model, "deepseek", golden.prompt, SYSTEM)
    _, verdict = pipeline.verify(open_build(result.out), threads=(1,))
    pipeline.require_verified(verdict)


def test_a_build_without_chat_is_told_of_the_template_and_has_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a template or without one, the same sources but for the model's digest, and no byte of the form."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    board = quick_board(tmp_path)
    command = runner(monkeypatch, capsys)
    model = checkpoint(tmp_path / "tiny", "gemma")
    code, _, stderr = command("-b", board, "-o", tmp_path / "out", "--golden-tokens", "1", model)
    notes = [line for line in stderr.splitlines() if line.startswith("note: ")]
    assert code == 0 and notes == [
        "note: the model has a chat template; --chat puts every prompt into its form (docs/chat.md)"
    ]
    generated = {path.name for path in (tmp_path / "out" / "generated").iterdir()}
    assert "chat_form.c" not in generated
    assert "CHAT" not in (tmp_path / "out" / "generated" / "model_config.h").read_text()
    elf = (tmp_path / "out" / "colibri_inference").read_bytes()
    assert all(word not in elf for word in (b"start_of_turn", b"chat_", b"--raw"))
    code, _, stderr = command("run", tmp_path / "out", "--prompt", "a", "--raw")
    assert code == 2 and "this build has no chat form" in error_line(stderr)


def test_the_model_folder_keeps_the_template_and_old_folders_stay_as_they_are(tmp_path: Path) -> None:
    with_chat = pipeline.quantize_checkpoint(checkpoint(tmp_path / "a", "gemma"), tmp_path / "with", QUANTIZE)[0]
    assert with_chat.chat == ChatTemplate(STYLES["gemma"].template, {"bos_token": END_TOKEN, "eos_token": END_TOKEN})
    assert read_model_folder(with_chat.path) == with_chat
    value = json.loads((with_chat.path / "chat.json").read_bytes())
    assert set(value) == {"template", "tokens"}
    for name in ("chat_template.jinja", "tokenizer_config.json"):
        (tmp_path / "a" / name).unlink()
    without = pipeline.quantize_checkpoint(tmp_path / "a", tmp_path / "without", QUANTIZE)[0]
    assert without.chat is None and "chat.json" not in without.files
    assert not (without.path / "chat.json").exists()
    (without.path / "chat.json").write_bytes((with_chat.path / "chat.json").read_bytes())
    with pytest.raises(PackError, match="files that the model does not have; the first: chat.json"):
        read_model_folder(without.path)


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"template": 1, "tokens": {}}', '{"template": "", "tokens": {"a": 1}}', "\xff"]
)
def test_a_damaged_template_file_is_one_line(tmp_path: Path, text: str) -> None:
    folder = pipeline.quantize_checkpoint(checkpoint(tmp_path / "a", "gemma"), tmp_path / "model", QUANTIZE)[0].path
    (folder / "chat.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(PackError, match="config.json says"):
        read_model_folder(folder)
    rehash(folder)
    with pytest.raises(PackError, match=r"chat\.json: no object with a text `template`"):
        read_model_folder(folder)


def test_a_template_may_be_in_the_configuration_alone_or_among_others(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path / "tiny")

    def template(value: object) -> str | None:
        write_json(folder / "tokenizer_config.json", {"chat_template": value, "bos_token": None, "pad_token": "<p>"})
        chat = read_checkpoint(folder).chat
        assert chat is None or chat.tokens == {"pad_token": "<p>"}
        return None if chat is None else chat.template

    assert template("A") == "A"
    assert template([{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]) == "D"
    assert template([{"name": "tool_use", "template": "T"}]) is None
    assert template(None) is None
    digest = read_checkpoint(folder).digest
    (folder / "chat_template.jinja").write_text("J")
    assert template("A") == "J"
    assert read_checkpoint(folder).digest != digest
    with pytest.raises(CheckpointError, match='"chat_template" is neither a text nor a list'):
        (folder / "chat_template.jinja").unlink()
        template(5)
    write_json(folder / "tokenizer_config.json", {"chat_template": "A", "bos_token": 7})
    with pytest.raises(CheckpointError, match='"bos_token" is no text'):
        read_checkpoint(folder)


def test_half_a_character_is_refused_when_the_checkpoint_is_read(tmp_path: Path) -> None:
    """JSON can hold it, the model folder cannot: that must not be found out after quantizing."""
    folder = write_tiny_checkpoint(tmp_path / "tiny")
    for values in ({"chat_template": "a\ud800"}, {"chat_template": "a", "bos_token": "\udfff"}):
        write_json(folder / "tokenizer_config.json", values)
        with pytest.raises(CheckpointError, match=r"tokenizer_config\.json: .* holds a lone surrogate: '\\ud"):
            read_checkpoint(folder)


def test_what_cannot_be_had_is_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    board = quick_board(tmp_path)
    model = checkpoint(tmp_path / "tiny", "mistral")
    plain = write_tiny_checkpoint(tmp_path / "plain")

    def refusal(**changes: object) -> ColibriError:
        with pytest.raises(ColibriError) as caught:
            pipeline.plan_build(BuildRequest(**{"model": model, "board": board, "quantize": QUANTIZE, **changes}))
        assert not isinstance(caught.value, PlanError) and caught.value.hint
        return caught.value

    assert "has no chat template" in refusal(model=plain, chat=True).what
    assert refusal(system="x").what == "--system without --chat"
    assert "Roles must alternate" in refusal(chat=True, system="x").what
    assert "the chat form takes" in refusal(chat=True, context=4).what


def test_the_run_command_turns_the_form_off(
    built: BuildResult, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def prompt_tokens(*options: str) -> int:
        code, _, stderr = runner(monkeypatch, capsys)(
            "run", built.out, "--prompt", "window", *options, "--", "--max-tokens", "1"
        )
        assert code == 0
        return int(json.loads(stderr.splitlines()[-1].removeprefix("COLIBRI_STATUS "))["prompt_tokens"])

    model = built.out.parent / "tiny"
    assert prompt_tokens() == len(expected_ids(model, "gemma", "window"))
    assert prompt_tokens("--raw") == len(Tokenizer.from_file(str(model / "tokenizer.json")).encode("window").ids)
