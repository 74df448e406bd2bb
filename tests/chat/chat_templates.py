"""Chat templates in the styles that published checkpoints have, and the tokens that they name."""

from __future__ import annotations

from dataclasses import dataclass, field

from colibri_build.artifacts import ChatTemplate


@dataclass(frozen=True)
class Style:
    """A template, its tokens, and what it makes of the text "TEXT", with and without the system message "SYS"."""

    template: str
    tokens: dict[str, str]
    plain: str
    with_system: str | None  # None: it takes no system message
    trims: bool = False
    chat: ChatTemplate = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "chat", ChatTemplate(self.template, self.tokens))


CHATML = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"""

# With a default system message, tools, and a loop from the end that looks at what the texts start with.
CHATML_TOOLS = """\
{%- if tools %}
    {{- '<|im_start|>system\n# Tools\n' }}
    {%- for tool in tools %}{{- tool | tojson }}{%- endfor %}
    {{- '<|im_end|>\n' }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\n' + messages[0]['content'] + '<|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if message.role == "user" and not (message.content.startswith('<tool_response>')
                                           and message.content.endswith('</tool_response>')) %}
        {%- set ns.last = index %}
        {%- break %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "user" or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- elif message.role == "assistant" %}
        {%- generation %}{{- message.content.split('</think>')[-1] }}{%- endgeneration %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
{%- endif %}
"""

LLAMA3 = """\
{%- set loop_messages = messages %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined and tools is not none %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- endif %}
{%- endif %}
{%- for message in loop_messages %}
    {%- set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'
                      + message['content'] | trim + '<|eot_id|>' %}
    {%- if loop.index0 == 0 %}
        {%- set content = bos_token + content %}
    {%- endif %}
    {{- content }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}
{%- endif %}
"""

MISTRAL = """\
{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('Roles must alternate user/assistant') }}{% endif %}{% if message['role'] == 'user' %}\
{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}\
{{ message['content'] + eos_token }}{% endif %}{% endfor %}"""

GEMMA = """\
{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
{% for message in messages %}{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}\
{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"""

DEEPSEEK = """\
{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}\
{% set ns = namespace(system_prompt='', is_first=true) %}{%- for message in messages %}\
{%- if message['role'] == 'system' %}{%- if ns.is_first %}\
{%- set ns.system_prompt = ns.system_prompt + message['content'] %}{%- set ns.is_first = false %}\
{%- else %}{%- set ns.system_prompt = ns.system_prompt + '\n\n' + message['content'] %}{%- endif %}{%- endif %}\
{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}\
{%- if message['role'] == 'user' %}{{ '<\uff5cUser\uff5c>' + message['content'] }}{%- endif %}\
{%- if message['role'] == 'assistant' and message['content'] is not none %}\
{{ '<\uff5cAssistant\uff5c>' + message['content'] + eos_token }}{%- endif %}{%- endfor -%}\
{% if add_generation_prompt %}{{ '<\uff5cAssistant\uff5c><think>\n' }}{% endif %}"""

_USER, _ASSISTANT = "<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>"
_IM = "<|im_start|>user\nTEXT<|im_end|>\n<|im_start|>assistant\n"
_HEADERS = "<|start_header_id|>user<|end_header_id|>\n\nTEXT<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"

STYLES: dict[str, Style] = {
    "chatml": Style(CHATML, {"eos_token": "<|im_end|>"}, _IM, f"<|im_start|>system\nSYS<|im_end|>\n{_IM}"),
    "chatml-tools": Style(
        CHATML_TOOLS,
        {},
        f"<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{_IM}",
        f"<|im_start|>system\nSYS<|im_end|>\n{_IM}",
    ),
    "llama3": Style(
        LLAMA3,
        {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
        f"<|begin_of_text|>{_HEADERS}",
        f"<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nSYS<|eot_id|>{_HEADERS}",
        trims=True,
    ),
    "mistral": Style(MISTRAL, {"bos_token": "<s>", "eos_token": "</s>"}, "<s>[INST] TEXT [/INST]", None),
    "gemma": Style(
        GEMMA,
        {"bos_token": "<bos>"},
        "<bos><start_of_turn>user\nTEXT<end_of_turn>\n<start_of_turn>model\n",
        None,
        trims=True,
    ),
    "deepseek": Style(
        DEEPSEEK,
        {"bos_token": "<\uff5cbegin\u2581of\u2581sentence\uff5c>"},
        f"<\uff5cbegin\u2581of\u2581sentence\uff5c>{_USER}TEXT{_ASSISTANT}<think>\n",
        f"<\uff5cbegin\u2581of\u2581sentence\uff5c>SYS{_USER}TEXT{_ASSISTANT}<think>\n",
    ),
}
