/** Chat templates small enough to read, each with the ways of one kind of real ones. */

/** Reasons, and writes tools and calls in tags; calls' arguments as data or as they come. */
export const TAGGED =
  "{%- if tools %}{{- '<|im_start|>system\\n' }}" +
  "{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}" +
  "{{- '<tools>' }}{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}" +
  "{{- '\\n</tools>\\nAnswer in <tool_call></tool_call>.<|im_end|>\\n' }}" +
  "{%- elif messages[0].role == 'system' %}" +
  "{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}" +
  '{%- for m in messages %}' +
  "{%- if m.role == 'user' or (m.role == 'system' and not loop.first) %}" +
  "{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}" +
  "{%- elif m.role == 'assistant' %}{%- set thought = '' %}{%- set content = m.content or '' %}" +
  '{%- if m.reasoning_content is string %}{%- set thought = m.reasoning_content %}' +
  "{%- elif '</think>' in content %}" +
  "{%- set thought = content.split('</think>')[0].split('<think>')[-1].strip('\\n') %}" +
  "{%- set content = content.split('</think>')[-1].lstrip('\\n') %}{%- endif %}" +
  "{{- '<|im_start|>assistant\\n' }}" +
  "{%- if thought %}{{- '<think>\\n' + thought + '\\n</think>\\n\\n' }}{%- endif %}{{- content }}" +
  '{%- for call in m.tool_calls %}{%- set call = call.function %}' +
  '{{- \'<tool_call>\\n{"name": "\' + call.name + \'", "arguments": \' }}' +
  '{%- if call.arguments is string %}{{- call.arguments }}' +
  '{%- else %}{{- call.arguments | tojson }}{%- endif %}' +
  "{{- '}\\n</tool_call>' }}{%- endfor %}{{- '<|im_end|>\\n' }}" +
  "{%- elif m.role == 'tool' %}" +
  "{{- '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}" +
  '{%- endif %}{%- endfor %}' +
  "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}" +
  '{%- if enable_thinking is defined and enable_thinking is false %}' +
  "{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}"

/** Particular about ids, takes arguments as data alone, and writes tools before the last question. */
export const BRACKETS =
  '{%- if messages[0].role == "system" %}{%- set system = messages[0].content %}' +
  '{%- set messages = messages[1:] %}{%- endif %}{{- bos_token }}' +
  '{%- set asked = messages | selectattr("role", "equalto", "user") | list %}' +
  '{%- for m in messages %}{%- if m.role == "user" %}' +
  '{%- if tools is defined and tools is not none and m == asked[-1] %}' +
  '{{- "[TOOLS]" + (tools | tojson) + "[/TOOLS]" }}{%- endif %}' +
  '{{- "[INST]" }}{%- if loop.last and system is defined %}{{- system + "\\n\\n" }}{%- endif %}' +
  '{{- m.content + "[/INST]" }}' +
  '{%- elif m.tool_calls is defined %}{{- "[CALLS][" }}{%- for call in m.tool_calls %}' +
  '{%- set out = call.function | tojson %}{{- out[:-1] }}' +
  '{%- if call.id | length != 9 %}{{- raise_exception("Ids have 9 characters.") }}{%- endif %}' +
  '{{- \', "id": "\' + call.id + \'"}\' }}{%- if not loop.last %}{{- ", " }}{%- endif %}' +
  '{%- endfor %}{{- "]" + eos_token }}' +
  '{%- elif m.role == "tool" %}{{- "[RESULTS]" + ({"content": m.content, "call_id": ' +
  'm.tool_call_id} | tojson) + "[/RESULTS]" }}' +
  '{%- else %}{{- m.content + eos_token }}{%- endif %}{%- endfor %}'

/** Takes arguments as text alone, and content of none where there are calls. */
export const JOINED =
  "{%- for m in messages %}{%- if m.role == 'user' %}{{- '<|im_start|>' + m.content }}{%- endif %}" +
  "{%- if m.role == 'assistant' and m.tool_calls %}{%- for call in m.tool_calls %}" +
  "{{- '<tool_call>' + call.type + ':' + call.function.name + '\\n' + call.function.arguments }}" +
  "{%- endfor %}{{- '<|im_end|>' }}{%- endif %}" +
  "{%- if m.role == 'assistant' and m.content is not none %}" +
  "{{- m.content.split('</think>')[-1] + '<|im_end|>' }}{%- endif %}" +
  "{%- if m.role == 'tool' %}{{- '<result>' + m.content }}{%- endif %}{%- endfor %}" +
  "{%- if add_generation_prompt %}{{- '<|im_start|>assistant<think>\\n' }}{%- endif %}"

/** Calls as Python writes them, and tools by their parts; never a content of none. */
export const PYTHONIC =
  "{%- macro show(value) -%}{%- if value is string -%}{{- '\"' + value + '\"' -}}" +
  '{%- else -%}{{- value | string -}}{%- endif -%}{%- endmacro -%}' +
  "{%- for tool in tools or [] %}{%- set tool = tool.function %}{{- 'def ' + tool.name + '(' }}" +
  '{%- for name, about in tool.parameters.properties.items() %}' +
  "{{- name + ': ' + about.type }}{%- if name in (tool.parameters.required or []) %}{{- '!' }}{%- endif %}" +
  "{{- ' ' + about.description | trim }}{%- if not loop.last %}{{- ', ' }}{%- endif %}{%- endfor %}" +
  "{{- ') # ' + tool.description + '\\n' }}{%- endfor %}" +
  "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + m.content }}" +
  '{%- if m.tool_calls is defined %}{%- for call in m.tool_calls %}{%- set ns = namespace(parts=[]) %}' +
  '{%- for name, value in call.function.arguments.items() %}' +
  "{%- set ns.parts = ns.parts + [name + '=' + show(value)] %}{%- endfor %}" +
  "{{- '<tool_call>' + call.function.name + '(' + (ns.parts | join(', ')) + ')' }}" +
  "{%- endfor %}{%- endif %}{% generation %}{{- '<|im_end|>' }}{% endgeneration %}{%- endfor %}" +
  "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"

/** Knows of users and assistants, and nothing else. */
export const PLAIN =
  "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}" +
  "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"

export const KINDS: Readonly<Record<string, string>> = {
  TAGGED,
  BRACKETS,
  JOINED,
  PYTHONIC,
  PLAIN,
}
