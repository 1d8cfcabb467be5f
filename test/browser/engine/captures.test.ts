/** Captured runs on WebGPU: the texts are those of plain runs, and the commands are those of the first run. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { runDecodeLoop } from '../../../src/engine/run/decode-loop.ts'
import { Scheduler } from '../../../src/engine/run/scheduler.ts'
import { createRandom, Sampler } from '../../../src/engine/sampling/sampler.ts'
import {
  greedy,
  openDecoder,
  openRuntime,
  prefill,
  takeRow,
  type OpenedDecoder,
  type OpenedRuntime,
} from '../../models/layouts.ts'
import { CASES } from '../../models/tiny.ts'

const TINY = 'tiny/onnx/model.onnx'
/** Number of tokens that the tiny model knows. */
const VOCABULARY = 280

let runtime: OpenedRuntime
let plain: OpenedDecoder
let captured: OpenedDecoder
beforeAll(async () => {
  runtime = await openRuntime('webgpu')
  plain = await openDecoder({ device: 'webgpu', model: TINY }, runtime)
  captured = await openDecoder({ device: 'webgpu', model: TINY, captures: true }, runtime)
})
afterAll(async () => {
  await plain.close()
  await captured.close()
  runtime.close()
})

/** Counts the dispatches, and the bind groups made for them, which a repeated run has none of. */
function countCommands() {
  const dispatch = vi.spyOn(GPUComputePassEncoder.prototype, 'dispatchWorkgroups')
  const bind = vi.spyOn(GPUDevice.prototype, 'createBindGroup')
  return {
    /** Runs the task; resolves with the number of dispatches and of bind groups meanwhile. */
    async during(task: () => Promise<unknown>): Promise<{ dispatches: number; bound: number }> {
      const before = [dispatch.mock.calls.length, bind.mock.calls.length] as const
      await task()
      return {
        dispatches: dispatch.mock.calls.length - before[0],
        bound: bind.mock.calls.length - before[1],
      }
    },
  }
}

afterEach(() => void vi.restoreAllMocks())

test('scratch', async () => {
  const commands = countCommands()
  const sequence = captured.decoder.open()
  const { prompt = [], greedy: answer = [] } = CASES[1] ?? {}
  console.log(await commands.during(() => prefill(sequence, prompt)))
  for (let i = 0; i < 4; i++) console.log(await commands.during(async () => takeRow(await sequence.forward([answer[i]!]))))
  sequence.close()
  const s2 = captured.decoder.open()
  console.log(await commands.during(() => prefill(s2, prompt)))
  for (let i = 0; i < 4; i++) console.log(await commands.during(async () => takeRow(await s2.forward([answer[i]!]))))
  s2.close()
  const s3 = captured.decoder.open()
  expect(await greedy(s3, prompt, 12)).toEqual(answer.slice(0, 12))
  s3.close()
})
