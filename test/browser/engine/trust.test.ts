/** That a GPU is trusted only with what it computes right, and that its loss is got over. */
import type { Tensor } from 'onnxruntime-web'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { findAdapter } from '../../../src/device/adapter.ts'
import type { LoadedDecoder } from '../../../src/engine/decoder-engine.ts'
import { loadDecoder } from '../../../src/engine/onnx/load.ts'
import { loadRuntime } from '../../../src/engine/onnx/runtime.ts'
import { rowOf } from '../../../src/engine/onnx/logits/row.ts'
import { graphOf, idAt, weightsOf } from '../../../src/engine/onnx/selftest/selftest.ts'
import {
  EXPECTED_LOGITS,
  HEAD,
  KV_HEADS,
  LOCATION,
} from '../../../src/engine/onnx/selftest/graphs.ts'
import { openTrusted } from '../../../src/engine/onnx/selftest/open.ts'
import { CASES, FIRST_SCORES, runtimeFolder, tinyFiles } from '../../models/tiny.ts'
import { hasHalves } from '../halves.ts'

const folder = runtimeFolder()
const never = new AbortController().signal
const right = { features: [] }

afterEach(() => {
  vi.restoreAllMocks()
})

// A software GPU compiles shaders for seconds, on a busy machine for many.
describe('the trial', { timeout: 600_000 }, () => {
  test.each(['float32', 'float16'] as const)(
    'has the answers that WASM gives, %s',
    async (precision) => {
      const runtime = await loadRuntime({ device: 'wasm', folder })
      const { Tensor: OrtTensor } = runtime.ort
      const session = await runtime.createSession(graphOf(precision), {
        externalData: [{ path: LOCATION, data: weightsOf(precision) }],
      })
      const none = precision === 'float16' ? new Uint16Array() : new Float32Array()
      let past: Tensor[] = ['key', 'value'].map(
        () => new OrtTensor(precision, none, [1, KV_HEADS, 0, HEAD]),
      )
      const lengths = { prompt: 40, more: 31, token: 1 } as const
      let end = 0
      for (const [name, length] of Object.entries(lengths)) {
        const ids = Array.from({ length }, (_, index) => BigInt(idAt(end + index)))
        end += length
        const results = await session.run({
          input_ids: new OrtTensor('int64', BigInt64Array.from(ids), [1, length]),
          attention_mask: new OrtTensor('int64', new BigInt64Array(end).fill(1n), [1, end]),
          'past.key': past[0]!,
          'past.value': past[1]!,
        })
        past = [results['present.key']!, results['present.value']!]
        const scores = rowOf(results['scores']!.reshape([1, length * 4]), 0)
        const answers = EXPECTED_LOGITS[name as keyof typeof lengths]
        expect(scores.length).toBe(answers.length)
        // WASM multiplies one of the weights in 8 bits, as it may.
        answers.forEach((answer, index) =>
          expect(Math.abs(scores[index]! - answer)).toBeLessThan(0.02),
        )
      }
      await session.release()
    },
  )

  test('leads from a feature with which a GPU is wrong to none', { tags: ['slow'] }, async () => {
    const offered = [...((await findAdapter())?.features ?? []), 'shader-f16']
    vi.spyOn(GPUAdapter.prototype, 'features', 'get').mockReturnValue(new Set(offered) as never)
    const request = GPUAdapter.prototype.requestDevice
    const asked: string[][] = []
    vi.spyOn(GPUAdapter.prototype, 'requestDevice').mockImplementation(function (
      this: GPUAdapter,
      wanted = {},
    ) {
      const features = [...(wanted.requiredFeatures ?? [])]
      asked.push(features)
      // With this one the adapter does compute wrong numbers.
      const requiredFeatures = (features.length > 0 ? ['subgroups'] : []) as never
      return request.call(this, { ...wanted, requiredFeatures })
    })
    const { gpu, runtime, verdict } = await openTrusted({ folder }, never)
    expect(asked).toEqual([['shader-f16'], []])
    expect(verdict.features).toEqual([])
    runtime.release()
    gpu.destroy()
  })

  test('leaves a GPU that gives nothing more after a trial', { tags: ['slow'] }, async () => {
    const adapter = (await findAdapter()) as GPUAdapter
    const features = ['shader-f16', ...adapter.features]
    vi.spyOn(adapter, 'features', 'get').mockReturnValue(new Set(features) as never)
    const request = adapter.requestDevice.bind(adapter)
    // Wrong with this one; where it is right, what needs the other cannot be compiled.
    vi.spyOn(adapter, 'requestDevice').mockImplementationOnce((wanted) =>
      request({ ...wanted, requiredFeatures: ['subgroups'] as never }).finally(() => {
        vi.spyOn(navigator.gpu, 'requestAdapter').mockResolvedValue(null)
      }),
    )
    vi.spyOn(navigator.gpu, 'requestAdapter').mockResolvedValue(adapter)
    await expect(openTrusted({ folder }, never)).rejects.toMatchObject({
      code: 'gpu_untrusted',
      details: { verdict: { features: null, late: true } },
    })
  })

  // On other adapters, llvmpipe for one, numbers are right with that feature.
  test.skipIf(hasHalves)(
    'leaves a GPU that is wrong with every set of features',
    { tags: ['slow'] },
    async () => {
      // A browser or an extension that gives every device the feature.
      const request = GPUAdapter.prototype.requestDevice
      vi.spyOn(GPUAdapter.prototype, 'requestDevice').mockImplementation(function (
        this: GPUAdapter,
        wanted = {},
      ) {
        return request.call(this, { ...wanted, requiredFeatures: ['subgroups'] as never })
      })
      await expect(openTrusted({ folder }, never)).rejects.toMatchObject({
        kind: 'unavailable',
        code: 'gpu_untrusted',
        details: { verdict: { features: null } },
      })
    },
  )

  test('is not repeated where its verdict is known', async () => {
    await expect(openTrusted({ folder, verdict: { features: null } }, never)).rejects.toMatchObject(
      {
        code: 'gpu_untrusted',
      },
    )
    // Nothing is computed.
    const submitted = vi.spyOn(GPUQueue.prototype, 'submit')
    const { gpu, runtime } = await openTrusted({ folder, verdict: right }, never)
    expect(submitted).not.toHaveBeenCalled()
    runtime.release()
    gpu.destroy()
  })

  test('names a feature that the GPU lacks, or gets wrong', { tags: ['slow'] }, async () => {
    const features = ['shader-f16']
    const adapter = (await findAdapter()) as GPUAdapter
    vi.spyOn(navigator.gpu, 'requestAdapter').mockResolvedValue(adapter)
    const has = vi.spyOn(adapter, 'features', 'get').mockReturnValue(new Set() as never)
    await expect(openTrusted({ folder, features, verdict: right }, never)).rejects.toMatchObject({
      code: 'no_webgpu',
      message: expect.stringContaining('shader-f16'),
    })
    has.mockReturnValue(new Set(features) as never)
    await expect(openTrusted({ folder, features, verdict: right }, never)).rejects.toMatchObject({
      code: 'gpu_untrusted',
      message: expect.stringContaining('only without shader-f16'),
      details: { verdict: right },
    })
  })

  test('can be given up', async () => {
    await expect(openTrusted({ folder }, AbortSignal.abort())).rejects.toMatchObject({
      kind: 'aborted',
    })
  })
})

describe('a decoder whose device is lost', { tags: ['slow'], timeout: 600_000 }, () => {
  const load = async (): Promise<{ loaded: LoadedDecoder; devices: GPUDevice[] }> => {
    const devices: GPUDevice[] = []
    const request = GPUAdapter.prototype.requestDevice
    vi.spyOn(GPUAdapter.prototype, 'requestDevice').mockImplementation(async function (
      this: GPUAdapter,
      wanted,
    ) {
      const device = await request.call(this, wanted)
      devices.push(device)
      return device
    })
    const options = {
      device: 'webgpu',
      runtime: folder,
      contextWindow: 64,
      firstPosition: 0,
    } as const
    const weights = await tinyFiles(['onnx/model.onnx'])
    return { loaded: await loadDecoder({ ...options, verdict: right }, weights, never), devices }
  }
  const [, short] = CASES
  const prompt = short?.prompt ?? []

  const scores = async (loaded: LoadedDecoder): Promise<Float32Array> => {
    const sequence = loaded.decoder.open()
    const logits = await sequence.forward(prompt)
    const row = Float32Array.from(await logits.row(0))
    logits.release()
    sequence.close()
    return row
  }

  // Answers that go on when their device is lost in the middle of a run are in run-lost.test.ts.
  test('is opened again when a GPU is there, computes what it did before, and else says so', async () => {
    const { loaded, devices } = await load()
    const [lost] = devices as [GPUDevice]
    lost.destroy()
    await lost.lost
    await expect(scores(loaded)).rejects.toMatchObject({ code: 'device_lost' })
    const request = vi.spyOn(navigator.gpu, 'requestAdapter').mockResolvedValueOnce(null)
    await loaded.reopen(never)
    expect(devices.at(-1)).not.toBe(lost)
    const again = await scores(loaded)
    FIRST_SCORES.forEach((score, index) => expect(again[index]).toBeCloseTo(score, 3))
    request.mockResolvedValue(null)
    await expect(loaded.reopen(never)).rejects.toMatchObject({ code: 'no_webgpu' })
    await loaded.release()
    await expect(devices.at(-1)?.lost).resolves.toMatchObject({ reason: 'destroyed' })
  })
})
