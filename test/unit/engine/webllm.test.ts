/** Models of WebLLM: their configuration, the release of their library, and the queue of their answers. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { parseTemplate } from '../../../src/engine/text/chat-template.ts'
import {
  readChatConfig,
  toConfigFiles,
  withOverrides,
} from '../../../src/engine/webllm/config-files.ts'
import { GenerationQueue } from '../../../src/engine/webllm/index.ts'
import { findForeignRelease, WEBLLM_RELEASE } from '../../../src/engine/webllm/pipeline.ts'
import type { ChatMessage } from '../../../src/types/index.ts'

const files = new Map([
  [
    'mlc-chat-config.json',
    new Blob(['{"context_window_size": 131072, "sliding_window_size": 4096, "vocab_size": 7}']),
  ],
  ['tokenizer.json', new Blob(['{}'])],
])

test('the catalog overrides the configuration of MLC', async () => {
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
  'a conversation template of MLC becomes a chat template: %s',
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

test('a folder without a conversation template has no chat template', async () => {
  for (const conv_template of [undefined, {}, { ...BARE, seps: [] }, { ...BARE, roles: 1 }]) {
    const own = new Map([['mlc-chat-config.json', new Blob([JSON.stringify({ conv_template })])]])
    const made = await toConfigFiles(own)
    expect(made.has('chat_template.jinja')).toBe(false)
    expect(JSON.parse((await made.get('config.json')?.text()) ?? '')).toEqual({})
  }
})

/** A library that only imports these functions. */
function libraryImporting(...names: readonly string[]): Blob {
  const text = (word: string) => [word.length, ...new TextEncoder().encode(word)]
  const imports = [names.length, ...names.flatMap((name) => [...text('env'), ...text(name), 0, 0])]
  const header = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
  const length = [(imports.length & 0x7f) | 0x80, imports.length >> 7]
  return new Blob([Uint8Array.from([...header, 1, 4, 1, 0x60, 0, 0, 2, ...length, ...imports])])
}

/** What all libraries import that were compiled for releases until 0.2.84. */
const THREADS = [
  '_ZN3tvm7runtime9threading10NumThreadsEv',
  '_ZN3tvm7runtime9threading15ResetThreadPoolEv',
  'emscripten_notify_memory_growth',
]

const OLDEST =
  /^m\.wasm was compiled for WebLLM 0\.2\.79 or earlier: it imports TVMWasmPackedCFunc,/
const MIDDLE = /^m\.wasm was compiled for WebLLM 0\.2\.80 to 0\.2\.84: it imports _ZN3tvm7runtime/

/** What MLC's own libraries import from `env`, by their folder and when they were compiled. */
test.each([
  ['v0_2_30 to v0_2_48', ['TVMWasmPackedCFunc', 'TVMWasmPackedCFuncFinalizer'], OLDEST],
  [
    'v0_2_80, August and November 2025',
    ['TVMFFIWasmFunctionDeleter', 'TVMFFIWasmSafeCall'],
    MIDDLE,
  ],
  [
    'v0_2_80, September 2025',
    ['TVMFFIEnvModRegisterSystemLibSymbol', 'TVMFFIWasmFunctionDeleter', 'TVMFFIWasmSafeCall'],
    MIDDLE,
  ],
  [
    'v0_2_80, October 2025',
    [
      'TVMFFIEnvCheckSignals',
      'TVMFFIEnvGetStream',
      'TVMFFIEnvSetStream',
      'TVMFFIWasmFunctionDeleter',
      'TVMFFIWasmSafeCall',
    ],
    MIDDLE,
  ],
])('a library of %s names the release that it needs', async (_, names, message) => {
  const library = libraryImporting(...names, ...THREADS)
  const error = await findForeignRelease('m.wasm', library, 'cause')
  expect(error).toMatchObject({ kind: 'unavailable', code: 'model_unusable', cause: 'cause' })
  expect(error?.message).toMatch(message)
  expect(error?.message).toContain(`WebLLM ${WEBLLM_RELEASE} of this app`)
})

test('a library of this release, and a file that is no library, is no error', async () => {
  expect(await findForeignRelease('m', libraryImporting('TVMFFIWasmSafeCall'), 0)).toBeNull()
  expect(await findForeignRelease('m', new Blob(['no library']), 0)).toBeNull()
})

test('the release is the one in package.json', () => {
  const file = readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8')
  expect(file).toContain(`"@mlc-ai/web-llm": "${WEBLLM_RELEASE}"`)
})

describe('the queue of answers', () => {
  const never = new AbortController().signal

  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  /** Returns the names of the answers that ran, in their order. */
  function record(): { had: string[]; take: (name: string, taking: Promise<void>) => void } {
    const had: string[] = []
    return {
      had,
      take: (name, taking) =>
        void taking.then(
          () => had.push(name),
          () => had.push(`not ${name}`),
        ),
    }
  }

  const turns = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0)

  test('runs answers in their order, each to its end', async () => {
    const queue = new GenerationQueue(100)
    const [a, b, c] = [queue.add(never), queue.add(never), queue.add(never)]
    const { had, take } = record()
    take('a', a.acquire())
    take('b', b.acquire())
    take('c', c.acquire())
    a.markIdle()
    take('a', a.acquire())
    await turns()
    expect(had).toEqual(['a', 'a'])
    a.release()
    await turns()
    b.release()
    await turns()
    expect(had).toEqual(['a', 'a', 'b', 'c'])
  })

  test('passes an idle answer while others wait', async () => {
    const queue = new GenerationQueue(100)
    const [a, b] = [queue.add(never), queue.add(never)]
    const { had, take } = record()
    take('a', a.acquire())
    a.markIdle()
    take('b', b.acquire())
    await vi.advanceTimersByTimeAsync(99)
    expect(had).toEqual(['a'])
    await vi.advanceTimersByTimeAsync(1)
    expect(had).toEqual(['a', 'b'])
    take('a', a.acquire())
    await turns()
    expect(had).toEqual(['a', 'b'])
    b.release()
    await turns()
    expect(had).toEqual(['a', 'b', 'a'])
  })

  test('runs an answer at once after an idle one', async () => {
    const queue = new GenerationQueue(100)
    const [a, b] = [queue.add(never), queue.add(never)]
    const { had, take } = record()
    take('a', a.acquire())
    a.markIdle()
    await vi.advanceTimersByTimeAsync(500)
    take('b', b.acquire())
    await turns()
    expect(had).toEqual(['a', 'b'])
  })

  test('drops an aborted answer', async () => {
    const queue = new GenerationQueue(100)
    const giving = new AbortController()
    const [a, b, c] = [queue.add(never), queue.add(giving.signal), queue.add(never)]
    const { had, take } = record()
    take('a', a.acquire())
    take('b', b.acquire())
    take('c', c.acquire())
    giving.abort()
    b.release()
    await turns()
    expect(had).toEqual(['a', 'not b'])
    a.release()
    await turns()
    expect(had).toEqual(['a', 'not b', 'c'])
    await expect(b.acquire()).rejects.toMatchObject({ kind: 'aborted' })
  })
})
