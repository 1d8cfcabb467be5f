import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Device } from '../../../src/types/index.ts'
import {
  maxDifference,
  greedy,
  openDecoder,
  openRuntime,
  prefill,
  takeRow,
  type OpenedDecoder,
  type OpenedRuntime,
} from '../../models/layouts.ts'
import expected from '../../models/layouts/expected.json'
import { hasHalves } from '../halves.ts'

const EXACT = 2e-5

const PATHS = {
  plain: { model: 'plain/onnx/model.onnx' },
  conv: { model: 'conv/onnx/model.onnx' },
  recurrent: { model: 'recurrent/onnx/model.onnx' },
  split: {
    model: 'split/onnx/decoder_model_merged.onnx',
    embed: 'layouts/split/onnx/embed_tokens.onnx',
  },
  branch: { model: 'branch/onnx/model.onnx', firstPosition: 1, heads: 4 },
  q4: { model: 'q4/onnx/model_q4.onnx' },
  fp16: { model: 'fp16/onnx/model_fp16.onnx' },
  q4f16: { model: 'q4f16/onnx/model_q4f16.onnx' },
  branch16: { model: 'branch16/onnx/model_fp16.onnx', firstPosition: 1, heads: 4 },
} as const

type Layout = keyof typeof PATHS

/** Layouts whose states cannot be taken back. */
const WITH_STATES: readonly Layout[] = ['conv', 'recurrent']
const BATCHED: readonly Layout[] = ['split', 'q4', 'fp16', 'q4f16']
/** Half precision rounds otherwise where more is computed at once. */
const HALVES: readonly Layout[] = ['fp16', 'q4f16', 'branch16']

/**
 * Runtimes that the layouts share, by device and build. A GPU made of software compiles shaders for seconds,
 * and each runtime on WASM is compiled anew.
 */
const runtimes = new Map<string, Promise<OpenedRuntime>>()

afterAll(async () => {
  for (const runtime of runtimes.values()) (await runtime).close()
})

const open = async (
  device: 'wasm' | 'webgpu',
  layout: Layout,
  large: boolean,
): Promise<OpenedDecoder> => {
  const build = `${device}, large: ${large}`
  const runtime = runtimes.get(build) ?? openRuntime(device, large)
  runtimes.set(build, runtime)
  const paths = PATHS[layout]
  return openDecoder({ device, large, ...paths, model: `layouts/${paths.model}` }, await runtime)
}

const layouts = Object.keys(PATHS) as Layout[]
// WASM adds halves up in 32 bits; a GPU does not, and has scores that are 0.008 apart where they are 8.
const closeness = (device: Device, layout: Layout): number =>
  HALVES.includes(layout) ? { wasm: 0.02, webgpu: 0.1 }[device] : EXACT

const SETTINGS = [
  ...layouts.map((layout) => ({ device: 'wasm' as const, layout, count: 12, large: false })),
  // The build for large models, which reads weights from a file apart as it needs them.
  ...(['q4', 'split'] as const).map((layout) => ({
    device: 'wasm' as const,
    layout,
    count: 12,
    large: true,
  })),
  ...layouts
    .filter((layout) => hasHalves || !HALVES.includes(layout))
    .map((layout) => ({ device: 'webgpu' as const, layout, count: 4, large: false })),
]

type Setting = (typeof SETTINGS)[number]

describe.each(SETTINGS.filter(({ device }) => device === 'wasm'))(
  '$layout on $device',
  (setting) => void suite(setting),
)
// A GPU made of software compiles the shaders of a model for seconds.
describe.each(SETTINGS.filter(({ device }) => device === 'webgpu'))(
  '$layout on $device',
  { tags: ['slow'] },
  (setting) => void suite(setting),
)

function suite({ device, layout, count, large }: Setting): void {
  const cases = expected[layout]
  const text = cases[2]?.prompt as number[]
  const hasStates = WITH_STATES.includes(layout)
  let opened: OpenedDecoder
  beforeAll(async () => {
    opened = await open(device, layout, large)
  })
  afterAll(() => opened.close())

  // A device of software takes seconds to compile what each length of a prompt needs.
  const some = device === 'webgpu' ? cases.slice(1, 2) : cases
  test.each(some.map((each) => ({ ...each, length: each.prompt.length })))(
    'chooses the tokens of the reference after $length tokens',
    async ({ prompt, greedy: tokens }) => {
      for (const chunk of device === 'wasm' && prompt.length > 1 ? [64, 5] : [64]) {
        const sequence = opened.decoder.open()
        expect(await greedy(sequence, prompt, count, chunk)).toEqual(tokens.slice(0, count))
        sequence.close()
      }
    },
  )

  test('goes back, forks, and continues as if it had never been elsewhere', async () => {
    const { decoder } = opened
    const expectNext = async (sequence: typeof first, before: number[], next: number) => {
      const afresh = decoder.open()
      const wanted = await prefill(afresh, [...before, next], decoder.maxChunkTokens)
      afresh.close()
      const scores = await takeRow(await sequence.forward([next]))
      expect(maxDifference(scores, wanted)).toBeLessThan(closeness(device, layout))
    }
    const first = decoder.open()
    await first.extend(text.slice(0, 20))
    first.checkpoint()
    await first.extend(text.slice(20, 33))
    expect(first.reusableLength(33)).toBe(33)
    expect(first.reusableLength(25)).toBe(hasStates ? 20 : 25)
    expect(first.reusableLength(19)).toBe(hasStates ? 0 : 19)
    const second = await first.fork(20)
    const third = await first.fork(33)
    await expectNext(first, text.slice(0, 33), 3)
    await first.truncate(20)
    await expectNext(first, text.slice(0, 20), 4)
    await expectNext(second, text.slice(0, 20), 5)
    first.close()
    await expectNext(third, text.slice(0, 33), 6)
    await second.truncate(0)
    await second.extend(text.slice(0, 2))
    await expectNext(second, text.slice(0, 2), 7)
    second.close()
    third.close()
  })

  test.runIf(BATCHED.includes(layout))('computes several of unequal length at once', async () => {
    const { decoder } = opened
    const texts = [text.slice(0, 30), text.slice(0, 7), text.slice(5, 25)]
    const together = texts.map(() => decoder.open())
    for (const [index, sequence] of together.entries()) await sequence.extend(texts[index] ?? [])
    for (const token of [11, 12]) {
      const logits = await decoder.step(together.map((sequence) => ({ sequence, token })))
      for (const [row, before] of texts.entries()) {
        before.push(token)
        const afresh = decoder.open()
        const wanted = await prefill(afresh, before)
        afresh.close()
        expect(maxDifference(await logits.row(row), wanted)).toBeLessThan(closeness(device, layout))
      }
      logits.release()
    }
    for (const sequence of together) sequence.close()
  })

  test('says how many it computes at once', () => {
    expect(opened.decoder.maxBatchSize > 1).toBe(BATCHED.includes(layout))
  })
}
