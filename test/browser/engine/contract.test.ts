/**
 * What every engine is held to, through both wire styles: the one for ONNX with a real model, the one
 * for models that MLC compiled over the stand-in for WebLLM. Both compute the same scores, so each has
 * to answer as the other does, word by word.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import { runGeneration } from '../../../src/generation/generate.ts'
import { planGeneration } from '../../../src/generation/plan.ts'
import type { Host } from '../../../src/types/index.ts'
import { type Answered, type Body, CHAT, chat, holdToContract } from '../../support/contract.ts'
import { TAGGED } from '../../support/templates.ts'
import { scriptedHost, send, TINY } from '../../unit/wire/scripted-host.ts'
import { load, short, run as runEngine, GREEDY, textOf } from './run-engine.ts'
import { loadStandIn } from './webllm-standin.ts'

/** Begins to reason where it is to. */
const TEMPLATE = `${TAGGED}{%- if add_generation_prompt and enable_thinking %}{{- '<think>\\n' }}{%- endif %}`
const texts = { 'chat_template.jinja': new Blob([TEMPLATE]) }
const options = { maxInputTokens: 512, texts }

const ENGINES: readonly (readonly [name: string, load: () => Promise<Engine>])[] = [
  ['the engine for ONNX', () => load(options)],
  ['the engine for MLC, over the stand-in', async () => (await loadStandIn(options)).engine],
]

/** Accepts as the real one does; answers of one test alone share what is cached. */
const hostOf = (engine: Engine): Host =>
  scriptedHost({
    overrides: {
      async generate(request, { signal }) {
        const planned = await planGeneration(engine, request)
        const partition = expect.getState().currentTestName ?? ''
        const limits = { maxOutputTokens: 160, plan: planned, partition }
        return { ignored: [], events: runGeneration(engine, request, limits, signal) }
      },
      countTokens: async (request) => (await planGeneration(engine, request)).prompt.tokens.length,
    },
  })

/** What each case was answered by the engine before, without what differs each time. */
const answers = new Map<string, unknown>()

function sameAsBefore(name: string, answer: unknown): void {
  const told = JSON.stringify(answer).replace(/"(id|request_id|created)":("[^"]*"|\d+),?/g, '')
  // Of the last digits of a probability, the order of additions decides.
  const known = told.replace(/-?\d+\.\d{4,}(e-\d+)?/g, (number) => Number(number).toFixed(2))
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
  afterAll(() => engine.close())

  const post = async (path: string, body: Body) => {
    const response = await send(host, path, { body })
    const ignored = response.headers.get('x-inorigin-ignored')
    return { status: response.status, ignored, text: await response.text() }
  }
  const contentOf = async (more: Body): Promise<string> => {
    const { text } = await post(CHAT, { model: TINY.tag, ...chat(more) })
    return (JSON.parse(text) as Answered).choices[0].message.content
  }

  const traits = { model: TINY.tag, contextWindow: 512, reasons: true, goesOn: true }
  holdToContract(
    () => ({ post }),
    () => traits,
    sameAsBefore,
  )

  test('an abort ends one answer and leaves the other as it is', async () => {
    const other = { messages: [{ role: 'user', content: 'another one' }], max_tokens: 40 }
    const alone = await contentOf(other)
    const giving = new AbortController()
    const body = chat({ model: TINY.tag, stream: true, max_tokens: 160 })
    const given = await send(host, CHAT, { body, signal: giving.signal })
    const reader = given.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
    await reader.read()
    const together = contentOf(other)
    await reader.read()
    await reader.cancel()
    giving.abort()
    expect(await together).toBe(alone)
  })

  test('one that is not read on does not keep another waiting', async () => {
    const idle = engine.generate(short.prompt, { ...GREEDY, partition: 'idle', maxTokens: 8 })
    const first = await idle.next()
    const { pieces } = await runEngine(engine, short.prompt, {
      ...GREEDY,
      partition: 'busy',
      maxTokens: 8,
    })
    let rest = first.done ? '' : first.value.text
    for await (const { text } of idle) rest += text
    expect(rest).toBe(textOf(pieces))
  })
})
