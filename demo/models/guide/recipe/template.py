"""The chat format: one rule in Python for the training text, the same rule as a Jinja template for everyone else."""
import json
from pathlib import Path

TEMPLATE = Path(__file__).with_name('chat_template.jinja').read_text()

HOW = '\nTo use a tool, answer with:\n<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>'


def dump(value) -> str:
    return json.dumps(value, ensure_ascii=False)


def kind(schema) -> str:
    """The type of a parameter in few words; whatever is not simple stays JSON."""
    if not isinstance(schema, dict):
        return 'any'
    if schema.get('enum'):
        return ' or '.join(dump(v) for v in schema['enum'])
    items, type = schema.get('items'), schema.get('type')
    if isinstance(type, str) and isinstance(items, dict) and isinstance(items.get('type'), str) and not items.get('enum') and not items.get('properties'):
        return f'{type} of {items["type"]}'
    return type if isinstance(type, str) and not schema.get('properties') and 'items' not in schema else dump(schema)


def listed(tool: dict) -> str:
    """A tool as the model sees it: its name and a line for each parameter."""
    function = tool.get('function', tool)
    description, parameters = function.get('description'), function.get('parameters')
    out = '\n' + dump(function['name']) + (f': {description}' if description else '')
    if isinstance(parameters, dict) and isinstance(parameters.get('properties'), dict):
        for name, schema in parameters['properties'].items():
            out += f'\n- {dump(name)} ({kind(schema)}{", required" if name in (parameters.get("required") or []) else ""})'
            if isinstance(schema, dict) and schema.get('description'):
                out += f': {schema["description"]}'
    return out


def pieces(messages, tools=None, add_generation_prompt=False, enable_thinking=False):
    """The chat as (text, said by the assistant) pieces; joined, they are what the template renders."""
    out, system = [], messages[0]['role'] == 'system'
    if tools or system:
        opening = [messages[0]['content']] if system else []
        if tools:
            opening.append('# Tools' + ''.join(map(listed, tools)) + HOW)
        out.append(('<|im_start|>system\n' + '\n\n'.join(opening) + '<|im_end|>\n', False))
    asked = max((i for i, m in enumerate(messages) if m['role'] == 'user'), default=-1)
    # Thoughts of earlier turns are left out, so what followed them cannot be learnt.
    thoughtful = any(m.get('reasoning_content') for m in messages)
    role = lambda i: messages[i]['role'] if 0 <= i < len(messages) else None
    for i, m in enumerate(messages):
        if m['role'] == 'tool':
            start = '' if role(i - 1) == 'tool' else '<|im_start|>user'
            end = '' if role(i + 1) == 'tool' else '<|im_end|>\n'
            out.append((f'{start}\n<tool_response>\n{m["content"]}\n</tool_response>{end}', False))
        elif m['role'] == 'assistant':
            thought, text = answer(m, i > asked)
            # Whether to think is the template's choice, so the opening is never learnt.
            out.append(('<|im_start|>assistant\n' + ('<think>\n' if thought else ''), False))
            out.append((thought + text + '<|im_end|>', i > asked or not thoughtful))
            out.append(('\n', False))
        elif not (i == 0 and system):
            out.append((f'<|im_start|>{m["role"]}\n{m["content"]}<|im_end|>\n', False))
    if add_generation_prompt:
        out.append(('<|im_start|>assistant\n' + ('<think>\n' if enable_thinking else ''), False))
    return out


def answer(message, latest: bool):
    """(the thought after its opening, the answer)"""
    text = message.get('content') or ''
    calls = []
    for call in message.get('tool_calls') or []:
        function = call.get('function', call)
        arguments = function['arguments']
        arguments = arguments if isinstance(arguments, str) else dump(arguments)
        calls.append(f'<tool_call>\n{{"name": {dump(function["name"])}, "arguments": {arguments}}}\n</tool_call>')
    thought = message.get('reasoning_content') if latest else None
    return f'{thought}\n</think>\n\n' if thought else '', '\n'.join(([text] if text else []) + calls)


def render(messages, **options) -> str:
    return ''.join(text for text, _ in pieces(messages, **options))
