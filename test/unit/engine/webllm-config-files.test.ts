/** What MLC's own configuration of a model says, with what the catalog replaces in it. */
import { expect, test } from 'vitest'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'
import {
  readChatConfig,
  toConfigFiles,
  withOverrides,
} from '../../../src/engine/webllm/config-files.ts'
import type { ChatMessage } from '../../../src/types/index.ts'

const files = new Map([
  [
    'mlc-chat-config.json',
    new Blob(['{"context_window_size": 131072, "sliding_window_size": 4096, "vocab_size": 7}']),
  ],
  ['tokenizer.json', new Blob(['{}'])],
])

test('what is replaced is what the model is told of, and nothing else is', async () => {
  const overrides = { context_window_size: 4096, sliding_window_size: -1 }
  const replaced = await withOverrides(files, overrides)
  expect(await readChatConfig(replaced)).toEqual({ ...overrides, vocab_size: 7 })
  expect(replaced.get('tokenizer.json')).toBe(files.get('tokenizer.json'))
  const config = await (await toConfigFiles(replaced)).get('config.json')?.text()
  expect(JSON.parse(config ?? '')).toMatchObject({ max_position_embeddings: 4096 })
  expect(await withOverrides(files, {})).toBe(files)
})

/** A way to write that MLC has for models with a turn's end, and how it is written. */
const CHATML = {
  system_template: '<|im_start|>system\n{system_message}<|im_end|>\n',
  system_message: 'Be "kind".',
  add_role_after_system_message: true,
  roles: { user: '<|im_start|>user', assistant: '<|im_start|>assistant', tool: '<|im_start|>user' },
  role_templates: {
    user: '{user_message}',
    assistant: '{assistant_message}',
    tool: '<r>{tool_message}</r>{function_string}',
  },
  seps: ['<|im_end|>\n'],
  role_content_sep: '\n',
  role_empty_sep: '\n',
  stop_str: ['<|im_end|>', 'no token'],
  stop_token_ids: [2],
}
const LLAMA = {
  system_template: '[INST] <<SYS>>\n{system_message}\n<</SYS>>\n\n',
  system_message: 'Help.',
  system_prefix_token_ids: [1],
  add_role_after_system_message: false,
  roles: { user: '<s>[INST]', assistant: '[/INST]' },
  role_templates: {},
  seps: [' ', ' </s>'],
  role_content_sep: ' ',
  role_empty_sep: ' ',
  stop_token_ids: [2],
}
const BARE = {
  system_template: '{system_message}',
  system_message: '',
  render_empty_system_message: false,
  roles: { user: 'Human', assistant: 'AI' },
  seps: ['\n'],
}

const user = (content: string) => ({ role: 'user' as const, content })
const assistant = (content: string) => ({ role: 'assistant' as const, content })
const TURNS = [user('Hi {{ x }}'), assistant('Yes?'), user('Bye')]

test.each<[string, object, ChatMessage[], string]>([
  [
    'turns that end',
    CHATML,
    TURNS,
    '<|im_start|>system\nBe "kind".<|im_end|>\n<|im_start|>user\nHi {{ x }}<|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n' +
      '<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n',
  ],
  [
    'what a tool answered',
    CHATML,
    [
      { role: 'system', content: 'S' },
      user('U'),
      assistant('A'),
      { role: 'tool', toolCallId: 'c', name: 't', content: 'T' },
    ],
    '<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n' +
      '<|im_start|>user\n<r>T</r><|im_end|>\n<|im_start|>assistant\n',
  ],
  [
    'a first turn without a name',
    LLAMA,
    TURNS,
    '<s>[INST] <<SYS>>\nHelp.\n<</SYS>>\n\nHi {{ x }} [/INST] Yes? </s><s>[INST] Bye [/INST] ',
  ],
  ['names and colons', BARE, TURNS, 'Human: Hi {{ x }}\nAI: Yes?\nHuman: Bye\nAI: '],
  [
    'a system that is said',
    BARE,
    [{ role: 'system', content: 'S. ' }, user('U')],
    'S. Human: U\nAI: ',
  ],
])(
  "without a template of its own, MLC's way to write is one: %s",
  async (_, conv_template, messages, text) => {
    const tokenizer = {
      added_tokens: [
        { id: 1, content: '<s>' },
        { id: 7, content: '<|im_end|>' },
      ],
    }
    const own = new Map([
      ['mlc-chat-config.json', new Blob([JSON.stringify({ conv_template, eos_token_id: [2] })])],
      ['tokenizer.json', new Blob([JSON.stringify(tokenizer)])],
    ])
    const made = await toConfigFiles(own)
    const template = await made.get('chat_template.jinja')?.text()
    expect(parseTemplate(template ?? '', {}).render({ messages }).text).toBe(text)
    const { eos_token_id: ends } = JSON.parse(
      (await made.get('generation_config.json')?.text()) ?? '',
    )
    expect(ends).toEqual(conv_template === CHATML ? [2, 7] : [2])
    const config = new Blob(['{"chat_template": "own"}'])
    expect(
      (await toConfigFiles(new Map([...own, ['tokenizer_config.json', config]]))).has(
        'chat_template.jinja',
      ),
    ).toBe(false)
  },
)

test('of a folder that knows no way to write there is no template', async () => {
  for (const conv_template of [undefined, {}, { ...BARE, seps: [] }, { ...BARE, roles: 1 }]) {
    const own = new Map([['mlc-chat-config.json', new Blob([JSON.stringify({ conv_template })])]])
    const made = await toConfigFiles(own)
    expect(made.has('chat_template.jinja')).toBe(false)
    expect(JSON.parse((await made.get('config.json')?.text()) ?? '')).toEqual({})
  }
})
