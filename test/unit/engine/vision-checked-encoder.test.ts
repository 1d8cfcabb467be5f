/** The image encoder on a GPU, compared with the CPU at its first run. */
import { expect, test } from 'vitest'
import type { GpuComparison } from '../../../src/device/gpu-verdict.ts'
import {
  createCheckedEncoder,
  type OpenEncoder,
} from '../../../src/engine/onnx/vision/checked-encoder.ts'
import { InoriginError } from '../../../src/error.ts'

const ROWS = Float32Array.of(1, -2, 3, -4)

function encoder(rows: Float32Array | Error): OpenEncoder & { runs: number; released: number } {
  const opened = {
    runs: 0,
    released: 0,
    async run() {
      opened.runs += 1
      if (rows instanceof Error) throw rows
      return rows
    },
    async release() {
      opened.released += 1
    },
  }
  return opened
}

function check(ours: Float32Array, theirs: Float32Array | Error) {
  const [onGpu, onCpu] = [encoder(ours), encoder(theirs)]
  const comparisons: GpuComparison[] = []
  const run = createCheckedEncoder({
    onGpu,
    openOnCpu: async () => onCpu,
    onComparison: (comparison) => comparisons.push(comparison),
  })
  return { onGpu, onCpu, comparisons, encode: () => run({}, 4) }
}

test('runs on the GPU after rows that agree, and frees the CPU', async () => {
  const near = ROWS.map((number) => number * 1.01)
  const { onGpu, onCpu, comparisons, encode } = check(near, ROWS)
  expect(await encode()).toEqual(near)
  expect(await encode()).toEqual(near)
  expect(comparisons).toEqual([
    { agrees: true, why: 'the rows of its image encoder differ from those of the CPU by 1.0 %' },
  ])
  expect([onGpu.runs, onCpu.runs, onGpu.released, onCpu.released]).toEqual([2, 1, 0, 1])
})

test.each([
  ['far', ROWS.map((number) => number * 1.5)],
  ['NaN', ROWS.with(2, NaN)],
  ['too few', ROWS.slice(0, 3)],
])('runs on the CPU if the rows of the GPU are %s', async (_, wrong) => {
  const { onGpu, onCpu, comparisons, encode } = check(wrong, ROWS)
  expect(await encode()).toEqual(ROWS)
  expect(await encode()).toEqual(ROWS)
  expect(comparisons).toMatchObject([{ agrees: false }])
  expect([onGpu.runs, onCpu.runs, onGpu.released, onCpu.released]).toEqual([1, 2, 1, 0])
})

test('stays on the GPU if the CPU cannot run the encoder, and compares at the next load', async () => {
  const failure = new InoriginError('unavailable', 'It has no such kernel.')
  const { onGpu, onCpu, comparisons, encode } = check(ROWS, failure)
  await encode()
  await encode()
  expect(comparisons).toMatchObject([{ agrees: true, isTransient: true }])
  expect([onGpu.runs, onCpu.runs, onCpu.released]).toEqual([2, 1, 1])
})

test('reports a lost device, and compares again', async () => {
  const lost = new InoriginError('unavailable', 'The GPU was lost.', { code: 'device_lost' })
  const { onCpu, comparisons, encode } = check(ROWS, lost)
  await expect(encode()).rejects.toBe(lost)
  await expect(encode()).rejects.toBe(lost)
  expect(onCpu.runs).toBe(2)
  expect(comparisons).toEqual([])
})
