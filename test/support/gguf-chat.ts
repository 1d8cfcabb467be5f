/** A tiny chat model as a GGUF file, whole and split. Its weights are random. */
import { createGgufDecoder, METADATA } from './gguf-decoder.ts'
import { byteLevelMetadata } from './gguf-tokenizers.ts'
import { type Written, writeGguf } from './gguf.ts'

/** Template that lists tools and takes their calls in the way of Hermes. */
const TEMPLATE = `{%- if tools %}<|im_start|>system
# Tools
<tools>{% for tool in tools %}
{{ tool | tojson }}{% endfor %}
</tools>
Call one within <tool_call></tool_call>: <tool_call>
{"name": <name>, "arguments": <arguments>}
</tool_call><|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

/** What the file says of the model. */
export const CARD = {
  name: 'Tiny Chat',
  license: 'apache-2.0',
  parameters: '0.1M',
  quantization: 'Q4_1',
  contextTokens: 2_048,
}

const CHAT: Readonly<Record<string, Written>> = {
  ...METADATA,
  ...byteLevelMetadata(),
  'general.name': { text: CARD.name },
  'general.license': { text: CARD.license },
  'general.size_label': { text: CARD.parameters },
  'general.languages': { texts: ['en', 'no language'] },
  'general.file_type': { uint32: 3 },
  'llama.context_length': { uint32: CARD.contextTokens },
  'tokenizer.chat_template': { text: TEMPLATE },
}

/** Returns the file. `metadata` completes or replaces its own. */
export const createGgufChat = (
  metadata: Readonly<Record<string, Written>> = {},
): Uint8Array<ArrayBuffer> => createGgufDecoder('Q4_1', { ...CHAT, ...metadata }).file

/** Returns the parts of the same file, by their names: `tiny-00001-of-00002.gguf` and so on. */
export function splitGgufChat(): Map<string, Uint8Array<ArrayBuffer>> {
  const { metadata, tensors } = createGgufDecoder('Q4_1', CHAT).contents
  const split = (number: number): Record<string, Written> => ({
    'split.no': { uint32: number },
    'split.count': { uint32: 2 },
  })
  const half = Math.ceil(tensors.length / 2)
  const parts = [
    writeGguf({ metadata: { ...metadata, ...split(0) }, tensors: tensors.slice(0, half) }),
    writeGguf({ metadata: split(1), tensors: tensors.slice(half) }),
  ]
  return new Map(parts.map((part, index) => [`tiny-0000${index + 1}-of-00002.gguf`, part]))
}
