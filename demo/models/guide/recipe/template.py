"""The chat format: one rule in Python for the training text, the same rule as a Jinja template for everyone else."""
import json
from pathlib import Path

TEMPLATE = Path(__file__).with_name('chat_template.jinja').read_text()

TOOLS = ('# Tools\n<tools>', '\n</tools>\nTo use a tool, answer with:\n<tool_call>\n'
         '{"name": <name>, "arguments": <object>}\n</tool_call>')


def dump(value) -> str:
    return json.dumps(value, ensure_ascii=False)


def pieces(messages, tools=None, add_generation_prompt=False, enable_thinking=False):
    """The chat as (text, said by the assistant) pieces; joined, they are what the template renders."""
    out, system = [], messages[0]['role'] == 'system'
    if tools or system:
        opening = [messages[0]['content']] if system else []
        if tools:
            opening.append(TOOLS[0] + ''.join('\n' + dump(t) for t in tools) + TOOLS[1])
        out.append(('<|im_start|>system\n' + '\n\n'.join(opening) + '<|im_end|>\n', False))
    asked = max((i for i, m in enumerate(messages) if m['role'] == 'user'), default=-1)
    role = lambda i: messages[i]['role'] if 0 <= i < len(messages) else None
    for i, m in enumerate(messages):
        if m['role'] == 'tool':
            start = '' if role(i - 1) == 'tool' else '<|im_start|>user'
            end = '' if role(i + 1) == 'tool' else '<|im_end|>\n'
            out.append((f'{start}\n<tool_response>\n{m["content"]}\n</tool_response>{end}', False))
        elif m['role'] == 'assistant':
            out.append(('<|im_start|>assistant\n', False))
            out.append((answer(m, i > asked) + '<|im_end|>', True))
            out.append(('\n', False))
        elif not (i == 0 and system):
            out.append((f'<|im_start|>{m["role"]}\n{m["content"]}<|im_end|>\n', False))
    if add_generation_prompt:
        out.append(('<|im_start|>assistant\n' + ('<think>\n' if enable_thinking else ''), False))
    return out


def answer(message, latest: bool) -> str:
    text = message.get('content') or ''
    calls = []
    for call in message.get('tool_calls') or []:
        function = call.get('function', call)
        arguments = function['arguments']
        arguments = arguments if isinstance(arguments, str) else dump(arguments)
        calls.append(f'<tool_call>\n{{"name": {dump(function["name"])}, "arguments": {arguments}}}\n</tool_call>')
    thought = message.get('reasoning_content') if latest else None
    return (f'<think>\n{thought}\n</think>\n\n' if thought else '') + '\n'.join(([text] if text else []) + calls)


def render(messages, **options) -> str:
    return ''.join(text for text, _ in pieces(messages, **options))
