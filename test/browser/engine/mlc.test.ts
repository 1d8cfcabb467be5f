/**
 * Engines behind both wire styles: the one for ONNX with a real model, and the one for models that MLC
 * compiled over a stand-in for WebLLM. Both compute the same scores, so each has to answer as the other
 * does, word by word. Then what only the second does, and the package itself up to its files.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Sequence } from '../../../src/engine/decoder.ts'
import type { Engine, Prompt } from '../../../src/engine/engine.ts'
import { loadDecoder } from '../../../src/engine/onnx/load.ts'
import {
  type LoadedPipeline,
  MODEL_URL,
  openArtifacts,
  openPipeline,
  DeviceWatch,
} from '../../../src/engine/webllm/pipeline.ts'
import { openWithPipeline } from '../../../src/engine/webllm/index.ts'
import { runGeneration } from '../../../src/generation/generate.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import { withTimeout } from '../../../src/values/promises.ts'
import type { Host } from '../../../src/types/index.ts'
import { constraintFolder, runtimeFolder, tinyFiles } from '../../models/tiny.ts'
import { type Answered, type Body, chat, checkGeneration, postTo } from '../../contract/wire.ts'
import { CHAT } from '../../support/requests.ts'
import { TAGGED } from '../../support/templates.ts'
import { fetchOf, scriptedHost, send, TINY } from '../../unit/wire/scripted-host.ts'
import { decoded, GREEDY, load, long, never, run, short, textOf, WEIGHTS } from './run-engine.ts'

/** Begins to reason when it may. */
const TEMPLATE = `${TAGGED}{%- if add_generation_prompt and enable_thinking %}{{- '<think>\\n' }}{%- endif %}`
/** Fewer tokens than the model could have. */
const CONTEXT_WINDOW = 480
const options = {
  maxInputTokens: CONTEXT_WINDOW,
  texts: { 'chat_template.jinja': new Blob([TEMPLATE]) },
}

/** What the stand-in was called with. */
const log = {
  opened: 0,
  contextWindow: 0,
  resets: 0,
  /** Tokens of each call. */
  forwards: [] as number[],
  /** Calls that fail as a lost device does; counted down. */
  failures: 0,
}

/** The engine for MLC over the stand-in. */
let mlc: Engine
beforeAll(async () => {
  mlc = await loadStandIn()
})
afterAll(() => mlc.close())

const ENGINES: readonly (readonly [name: string, load: () => Promise<Engine>])[] = [
  ['the engine for ONNX', () => load(options)],
  ['the engine for MLC, over the stand-in', async () => mlc],
]

/** Accepts as the real one does; answers of one test alone share what is cached. */
const hostOf = (engine: Engine): Host =>
  scriptedHost({
    overrides: {
      async generate(request, { signal }) {
        const planned = await planGeneration(engine, request)
        const partition = expect.getState().currentTestName ?? ''
        const limits = { maxOutputTokens: 160, plan: planned, partition }
        return { events: runGeneration(engine, request, limits, signal) }
      },
      countTokens: async (request) => (await planGeneration(engine, request)).prompt.tokens.length,
    },
  })

/** Answers of the engine before, without what differs each time. */
const answers = new Map<string, string>()

function sameAsBefore(name: string, answer: unknown): void {
  const stable = JSON.stringify(answer).replace(/"(id|request_id|created)":("[^"]*"|\d+),?/g, '')
  // Of the last digits of a probability, the order of additions decides.
  const known = stable.replace(/-?\d+\.\d{4,}(e-\d+)?/g, (number) => Number(number).toFixed(2))
  expect(known).toBe(answers.get(name) ?? known)
  answers.set(name, known)
}

describe.each(ENGINES)('%s', (_, open) => {
  let engine: Engine
  let host: Host
  beforeAll(async () => {
    engine = await open()
    host = hostOf(engine)
  }, 120_000)
  afterAll(() => (engine === mlc ? undefined : engine.close()))

  const endpoint = {
    fetch: (path: string, init?: RequestInit) => fetchOf(host)(`http://localhost${path}`, init),
  }
  const contentOf = async (more: Body): Promise<string> => {
    const { text } = await postTo(endpoint, CHAT, { model: TINY.tag, ...chat(more) })
    return (JSON.parse(text) as Answered).choices[0].message.content
  }

  const traits = { model: TINY.tag, contextWindow: CONTEXT_WINDOW, reasons: true, goesOn: true }
  checkGeneration(
    () => endpoint,
    () => traits,
    sameAsBefore,
  )

  test('an abort ends one answer and leaves the other as it is', async () => {
    const other = { messages: [{ role: 'user', content: 'another one' }], max_tokens: 40 }
    const alone = await contentOf(other)
    const canceling = new AbortController()
    const body = chat({ model: TINY.tag, stream: true, max_tokens: 160 })
    const canceled = await send(host, CHAT, { body, signal: canceling.signal })
    const reader = canceled.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
    await reader.read()
    const together = contentOf(other)
    await reader.read()
    await reader.cancel()
    canceling.abort()
    expect(await together).toBe(alone)
  })

  test('an answer that is not read does not block another', async () => {
    const idle = engine.generate(short.prompt, { ...GREEDY, partition: 'idle', maxTokens: 8 })
    const first = await idle.next()
    const { pieces } = await run(engine, short.prompt, {
      ...GREEDY,
      partition: 'busy',
      maxTokens: 8,
    })
    let rest = first.done ? '' : first.value.text
    for await (const { text } of idle) rest += text
    expect(rest).toBe(textOf(pieces))
  })
})

describe('the engine for MLC', () => {
  beforeEach(() => Object.assign(log, { resets: 0, forwards: [] }))

  const cachedOf = async (prompt: Prompt, partition = 'one'): Promise<number> => {
    let cached = -1
    const onStart = (started: { cachedTokens: number }) => (cached = started.cachedTokens)
    await run(mlc, prompt, { ...GREEDY, maxTokens: 4, partition, onStart })
    return cached
  }

  test('has memory for no more than the catalog promises', () => {
    expect(log.contextWindow).toBe(CONTEXT_WINDOW)
    expect(mlc.contextWindow).toBe(CONTEXT_WINDOW)
  })

  /** A prompt that begins with the conversation of the short one. */
  const turn: Prompt = {
    ...short.prompt,
    tokens: [
      ...short.prompt.tokens,
      ...short.greedy.slice(0, 4),
      ...long.prompt.tokens.slice(0, 9),
    ],
    boundaries: [],
  }

  test('continues from its KV cache within a partition, and counts the cached tokens', async () => {
    expect(await cachedOf(short.prompt)).toBe(0)
    const computed = log.forwards.reduce((sum, count) => sum + count, 0)
    Object.assign(log, { resets: 0, forwards: [] })
    expect(await cachedOf(turn)).toBe(computed)
    expect(log.resets).toBe(0)
    expect(log.forwards[0]).toBe(turn.tokens.length - computed)
  })

  test('computes the whole prompt of another partition', async () => {
    await cachedOf(short.prompt)
    Object.assign(log, { resets: 0, forwards: [] })
    expect(await cachedOf(turn, 'two')).toBe(0)
    expect(log.resets).toBe(1)
    expect(log.forwards[0]).toBe(turn.tokens.length)
  })

  test('computes answers one after the other, and an abort ends only its own', async () => {
    const canceling = new AbortController()
    const waiting = run(mlc, short.prompt, { ...GREEDY, partition: 'b', signal: canceling.signal })
    const [first, second] = [
      run(mlc, long.prompt, { ...GREEDY, partition: 'a' }),
      run(mlc, short.prompt, { ...GREEDY, partition: 'c' }),
    ]
    canceling.abort()
    await expect(waiting).rejects.toMatchObject({ kind: 'aborted' })
    expect(textOf((await first).pieces)).toBe(decoded(long.greedy))
    expect(textOf((await second).pieces)).toBe(decoded(short.greedy))
    expect(log.resets).toBeLessThanOrEqual(3)
  })

  test('stops within one token of an abort', async () => {
    const canceling = new AbortController()
    const running = mlc.generate(short.prompt, {
      ...GREEDY,
      maxTokens: 400,
      signal: canceling.signal,
    })
    await running.next()
    const { length } = log.forwards
    canceling.abort()
    await expect(running.next()).rejects.toMatchObject({ kind: 'aborted' })
    expect(log.forwards.length - length).toBeLessThanOrEqual(1)
  })

  test('continues an answer when its device is lost', async () => {
    const { opened } = log
    log.failures = 1
    const { pieces } = await run(mlc, short.prompt, { ...GREEDY, partition: 'lost' })
    expect(textOf(pieces)).toBe(decoded(short.greedy))
    expect(log.opened).toBe(opened + 1)
  })
})

describe('the package WebLLM', () => {
  // It can get files only from `caches`, which the pipeline replaces in its thread.
  const caches = Object.getOwnPropertyDescriptor(globalThis, 'caches') as PropertyDescriptor
  afterAll(() => void Object.defineProperty(globalThis, 'caches', caches))

  const config = { tokenizer_files: ['tokenizer.json'], context_window_size: 128, vocab_size: 64 }
  /** A module with a memory and the functions of another version, each of which does nothing. */
  const FOREIGN = moduleOf(['_initialize', 'TVMWasmAllocSpace', 'TVMWasmFreeSpace', 'TVMFuncCall'])
  /** A module that wants what WebLLM has not. */
  const WANTING = Uint8Array.of(...EMPTY, 1, 4, 1, 0x60, 0, 0, 2, 7, 1, 1, 0x65, 1, 0x66, 0, 0)
  const files = async (given: Readonly<Record<string, BlobPart>>): Promise<Map<string, Blob>> => {
    const all = await tinyFiles(['tokenizer.json'])
    all.set('mlc-chat-config.json', new Blob([JSON.stringify(config)]))
    for (const [name, content] of Object.entries(given)) all.set(name, new Blob([content]))
    return all
  }

  test.each<[string, Readonly<Record<string, BlobPart>>, RegExp]>([
    ['no library', {}, /no resource of type wasm/],
    [
      'a library that is none',
      { 'lib.wasm': 'hello' },
      /The model cannot be used: .*(wasm|magic)/i,
    ],
    ['a library that is cut', { 'lib.wasm': EMPTY.slice(0, 6) }, /The model cannot be used: /],
    ['a library of something else', { 'lib.wasm': EMPTY }, /The model cannot be used: /],
    ['a library of another version', { 'lib.wasm': FOREIGN }, /The model cannot be used: /],
    [
      'a library that wants what is not there',
      { 'lib.wasm': WANTING },
      /The model cannot be used: .*import/i,
    ],
    [
      'a configuration that is none',
      { 'lib.wasm': EMPTY, 'mlc-chat-config.json': '{' },
      /The model cannot be used: .*JSON/,
    ],
  ])('rejects a model with %s', async (_, given, says) => {
    await expect(
      openPipeline(await files(given), { contextWindow: 128, signal: never }),
    ).rejects.toMatchObject({
      kind: 'unavailable',
      message: expect.stringMatching(says),
    })
  })

  test('destroys the device of a load that does not complete', async () => {
    const given: GPUDevice[] = []
    const { requestDevice } = GPUAdapter.prototype
    GPUAdapter.prototype.requestDevice = async function (this: GPUAdapter, ...asked) {
      const device = await requestDevice.apply(this, asked)
      given.push(device)
      return device
    }
    try {
      const watch = new DeviceWatch()
      const adapter = await navigator.gpu.requestAdapter()
      const working = watch.guard(() => new Promise(() => undefined))
      await adapter?.requestDevice()
      watch.release()
      expect((await given[0]?.lost)?.reason).toBe('destroyed')
      await expect(withTimeout(200, working, 'still waiting')).resolves.toBe('still waiting')
    } finally {
      GPUAdapter.prototype.requestDevice = requestDevice
    }
  })

  test.each([
    // The package destroys its device where a buffer finds no room.
    ['out_of_memory', (device: GPUDevice) => device.destroy()],
    [
      'gpu_error',
      (device: GPUDevice) =>
        device.queue.writeBuffer(
          device.createBuffer({ size: 4, usage: 0x80 }),
          0,
          new Uint8Array(4),
        ),
    ],
  ])('rejects calls that wait, and later ones, with %s', async (code, harm) => {
    const watch = new DeviceWatch()
    const device = await (await navigator.gpu.requestAdapter())?.requestDevice()
    const waiting = watch.guard(() => new Promise(() => undefined))
    if (device) harm(device)
    await expect(waiting).rejects.toMatchObject({ kind: 'unavailable', code })
    await expect(watch.guard(async () => 'fine')).rejects.toMatchObject({ code })
    watch.release()
  })

  test('rejects a load that is canceled', async () => {
    const canceling = new AbortController()
    const opening = openPipeline(await files({ 'lib.wasm': EMPTY }), {
      contextWindow: 128,
      signal: canceling.signal,
    })
    canceling.abort()
    await expect(opening).rejects.toMatchObject({ kind: 'aborted' })
  })

  test('finds its files without asking for any, and names the one that is missing', async () => {
    const given = await files({
      'ndarray-cache.json': '{"records": []}',
      'params_shard_0.bin': 'abc',
    })
    const cache = await openArtifacts(given).open('webllm/model')
    const read = async (name: string) => (await cache.match(new Request(MODEL_URL + name)))?.text()
    expect(await read('params_shard_0.bin')).toBe('abc')
    // What the list was called before.
    expect(await read('tensor-cache.json')).toBe('{"records": []}')
    await expect(read('params_shard_1.bin')).rejects.toMatchObject({
      code: 'model_unusable',
      message: expect.stringContaining('no resource named params_shard_1.bin'),
    })
  })
})

/** A configuration as MLC writes it. */
const MLC_CHAT = {
  context_window_size: 512,
  model_config: {},
  eos_token_id: 0,
  tokenizer_files: ['tokenizer.json'],
}

async function loadStandIn(): Promise<Engine> {
  const config = (await (await tinyFiles(['config.json'])).get('config.json')?.text()) ?? '{}'
  const { eos_token_id } = JSON.parse(config) as { eos_token_id: unknown }
  const names = ['tokenizer.json', 'tokenizer_config.json', ...Object.keys(options.texts)]
  const texts = await tinyFiles(names, options.texts)
  texts.set('mlc-chat-config.json', new Blob([JSON.stringify({ ...MLC_CHAT, eos_token_id })]))
  const engine = await openWithPipeline(
    async (_files, { signal, contextWindow }) => {
      log.opened += 1
      log.contextWindow = contextWindow
      return openStandIn(signal)
    },
    {
      ...options,
      device: 'webgpu',
      runtime: runtimeFolder(),
      constraints: constraintFolder(),
      texts,
    },
  )
  await engine.load(new Map(), never)
  return engine
}

/**
 * A stand-in for WebLLM at its documented low-level calls: libraries and weights that MLC compiled cannot
 * be had here. It computes scores by the tiny model.
 */
async function openStandIn(signal: AbortSignal): Promise<LoadedPipeline> {
  const setup = {
    device: 'wasm',
    runtime: runtimeFolder(),
    constraints: constraintFolder(),
    contextWindow: 512,
    warm: false,
  } as const
  const model = await loadDecoder({ ...setup, firstPosition: 0 }, await tinyFiles(WEIGHTS), signal)
  let sequence: Sequence = model.decoder.open()
  return {
    async forward(tokens) {
      log.forwards.push(tokens.length)
      if (log.failures > 0) {
        log.failures -= 1
        throw new Error('Device is lost')
      }
      const logits = await sequence.forward(tokens)
      const row = (await logits.row(0)).slice()
      logits.release()
      return row
    },
    async reset() {
      log.resets += 1
      sequence.close()
      sequence = model.decoder.open()
    },
    release: () => model.release(),
  }
}

/** The smallest module that there is, which is no model's. */
const EMPTY = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)

/** A module that exports a memory, and functions of no parameters under these names. */
function moduleOf(names: readonly string[]): Uint8Array<ArrayBuffer> {
  const section = (id: number, content: readonly number[]): number[] => [
    id,
    content.length,
    ...content,
  ]
  const named = (name: string, kind: number, index: number): number[] => {
    const bytes = [...new TextEncoder().encode(name)]
    return [bytes.length, ...bytes, kind, index]
  }
  const exported = [
    ...named('memory', 2, 0),
    ...names.flatMap((name, index) => named(name, 0, index)),
  ]
  return Uint8Array.of(
    ...EMPTY,
    ...section(1, [1, 0x60, 0, 0]),
    ...section(3, [names.length, ...names.map(() => 0)]),
    ...section(5, [1, 0, 1]),
    ...section(7, [names.length + 1, ...exported]),
    ...section(10, [names.length, ...names.flatMap(() => [2, 0, 0x0b])]),
  )
}
