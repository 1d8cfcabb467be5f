/** A GPU is trusted only with what it computes right, its loss is survived, and sessions out of memory say so. */
import type { Tensor } from 'onnxruntime-web'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { findAdapter } from '../../../src/device/adapter.ts'
import { requestGpu } from '../../../src/device/gpu.ts'
import { loadDecoder } from '../../../src/engine/onnx/load.ts'
import { rowOf } from '../../../src/engine/onnx/logits/gpu.ts'
import { loadRuntime, type Runtime, type Session } from '../../../src/engine/onnx/runtime.ts'
import {
  EXPECTED_LOGITS,
  HEAD,
  KV_HEADS,
  LOCATION,
} from '../../../src/engine/onnx/selftest/graphs.ts'
import {
  computesCorrectly,
  graphOf,
  idAt,
  weightsOf,
} from '../../../src/engine/onnx/selftest/selftest.ts'
import { openTrusted } from '../../../src/engine/onnx/selftest/open.ts'
import { takeRow } from '../../models/layouts.ts'
import { CASES, FIRST_SCORES, runtimeFolder, tinyFiles } from '../../models/tiny.ts'
import { oneOperator } from '../../support/protobuf.ts'
import { hasHalves } from '../halves.ts'
import { decoded, GREEDY, load, never, promptOf, WEIGHTS } from './run-engine.ts'

const folder = runtimeFolder()
const right = { features: [] }
// A software GPU compiles shaders for seconds, on a busy machine for many.
const slow = { tags: ['slow'], timeout: 600_000 }

afterEach(() => {
  vi.restoreAllMocks()
})

/** Requests devices with the features that `change` returns. Collects the features of the requests, and the devices. */
function spyOnDevices(change = (features: readonly string[]): readonly string[] => features) {
  const requests: string[][] = []
  const devices: GPUDevice[] = []
  const request = GPUAdapter.prototype.requestDevice
  vi.spyOn(GPUAdapter.prototype, 'requestDevice').mockImplementation(async function (
    this: GPUAdapter,
    wanted = {},
  ) {
    const features = [...(wanted.requiredFeatures ?? [])]
    requests.push(features)
    const requiredFeatures = change(features) as GPUFeatureName[]
    const device = await request.call(this, { ...wanted, requiredFeatures })
    devices.push(device)
    return device
  })
  return { requests, devices }
}

const expand = oneOperator('Expand', { x: 'float32', shape: 'int64' })
const full = { kind: 'unavailable', code: 'out_of_memory' }

/** Resolves with the number 3, `count` times. */
async function threes({ ort }: Runtime, session: Session, count: number): Promise<unknown> {
  const { y } = await session.run({
    x: new ort.Tensor('float32', [3], [1]),
    shape: new ort.Tensor('int64', [BigInt(count)], [1]),
  })
  return y?.data
}

describe('the self-test', () => {
  test.each(['float32', 'float16'] as const)(
    'has the logits that WASM computes, %s',
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
        const expected = EXPECTED_LOGITS[name as keyof typeof lengths]
        expect(scores.length).toBe(expected.length)
        // WASM multiplies one of the weights in 8 bits, as it may.
        expected.forEach((logit, index) =>
          expect(Math.abs(scores[index]! - logit)).toBeLessThan(0.02),
        )
      }
      await session.release()
    },
  )

  test('runs again without a feature with which a GPU is wrong', slow, async () => {
    const offered = [...((await findAdapter())?.features ?? []), 'shader-f16']
    vi.spyOn(GPUAdapter.prototype, 'features', 'get').mockReturnValue(new Set(offered) as never)
    // With this one the adapter does compute wrong numbers.
    const { requests } = spyOnDevices((features) => (features.length > 0 ? ['subgroups'] : []))
    const { gpu, runtime, verdict } = await openTrusted({ folder }, never)
    expect(requests).toEqual([['shader-f16'], []])
    expect(verdict.features).toEqual([])
    runtime.release()
    gpu.destroy()
  })

  // On other adapters, llvmpipe for one, numbers are right with that feature.
  test.skipIf(hasHalves)(
    'tries subgroups on hardware, and drops them where they are wrong',
    slow,
    async () => {
      const info = { vendor: 'acme', architecture: 'one', device: '', description: '' }
      vi.spyOn(GPUAdapter.prototype, 'info', 'get').mockReturnValue(info as never)
      const { requests } = spyOnDevices()
      const { gpu, runtime, verdict } = await openTrusted({ folder }, never)
      expect(requests).toEqual([['subgroups'], []])
      expect(verdict.features).toEqual([])
      runtime.release()
      gpu.destroy()
    },
  )

  test('fails for a GPU that refuses a device after a run', slow, async () => {
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
    'fails for a GPU that is wrong with every set of features',
    slow,
    async () => {
      // A browser or an extension that gives every device the feature.
      spyOnDevices(() => ['subgroups'])
      await expect(openTrusted({ folder }, never)).rejects.toMatchObject({
        kind: 'unavailable',
        code: 'gpu_untrusted',
        details: { verdict: { features: null } },
      })
    },
  )

  test('does not run if its verdict is known', async () => {
    const untrusted = openTrusted({ folder, verdict: { features: null } }, never)
    await expect(untrusted).rejects.toMatchObject({ code: 'gpu_untrusted' })
    const submitted = vi.spyOn(GPUQueue.prototype, 'submit')
    const { gpu, runtime } = await openTrusted({ folder, verdict: right }, never)
    expect(submitted).not.toHaveBeenCalled()
    runtime.release()
    gpu.destroy()
  })

  test('names a feature that the GPU lacks, or gets wrong', slow, async () => {
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

  test('can be canceled', async () => {
    await expect(openTrusted({ folder }, AbortSignal.abort())).rejects.toMatchObject({
      kind: 'aborted',
    })
  })
})

describe('when a device is lost', slow, () => {
  test('a decoder is opened again if there is a GPU, and computes the same scores', async () => {
    const { devices } = spyOnDevices()
    const options = {
      device: 'webgpu',
      runtime: folder,
      contextWindow: 64,
      firstPosition: 0,
    } as const
    const loaded = await loadDecoder(
      { ...options, verdict: right },
      await tinyFiles(WEIGHTS),
      never,
    )
    const computeScores = async (): Promise<Float32Array> => {
      const sequence = loaded.decoder.open()
      const row = await takeRow(await sequence.forward(CASES[1]?.prompt ?? []))
      sequence.close()
      return row
    }
    const [lost] = devices as [GPUDevice]
    lost.destroy()
    await lost.lost
    await expect(computeScores()).rejects.toMatchObject({ code: 'device_lost' })
    const request = vi.spyOn(navigator.gpu, 'requestAdapter').mockResolvedValueOnce(null)
    await loaded.reopen(never)
    expect(devices.at(-1)).not.toBe(lost)
    const again = await computeScores()
    FIRST_SCORES.forEach((score, index) => expect(again[index]).toBeCloseTo(score, 3))
    request.mockResolvedValue(null)
    await expect(loaded.reopen(never)).rejects.toMatchObject({ code: 'no_webgpu' })
    await loaded.release()
    await expect(devices.at(-1)?.lost).resolves.toMatchObject({ reason: 'destroyed' })
  })

  test('answers continue with not a token changed', async () => {
    const { devices } = spyOnDevices()
    const engine = await load({ device: 'webgpu', verdict: right })
    const opened = devices.length
    const cases = CASES.slice(0, 2)
    const cached: number[] = []
    let count = 0
    const texts = await Promise.all(
      cases.map(async ({ prompt }) => {
        const onStart = ({ cachedTokens }: { cachedTokens: number }): void =>
          void cached.push(cachedTokens)
        let text = ''
        const options = { ...GREEDY, maxTokens: 8, onStart }
        for await (const piece of engine.generate(promptOf(prompt), options)) {
          text += piece.text
          count += 1
          // In the middle of the next step of both.
          if (count === 4) setTimeout(() => devices.at(-1)?.destroy(), 5)
        }
        return text
      }),
    )
    expect(devices).toHaveLength(opened + 1)
    expect(texts).toEqual(cases.map(({ greedy }) => decoded(greedy.slice(0, 8))))
    expect(cached).toEqual([0, 0])
    await engine.close()
  })
})

describe('out of memory', slow, () => {
  test('a run on WASM that needs too much fails alone', async () => {
    const runtime = await loadRuntime({ device: 'wasm', folder })
    const session = await runtime.createSession(expand)
    await expect(threes(runtime, session, 2 ** 31)).rejects.toMatchObject(full)
    expect(await threes(runtime, session, 2)).toEqual(Float32Array.of(3, 3))
    await session.release()
  })

  test('inputs on WASM that do not fit are not written over something else', async () => {
    const runtime = await loadRuntime({ device: 'wasm', folder, large: true })
    // Of a file that the graph never reads from.
    const piece = new Blob([new Uint8Array(2 ** 24)])
    const data = new Blob(Array.from({ length: 256 }, () => piece))
    expect(data.size).toBe(2 ** 32)
    const session = await runtime.createSession(expand, { externalData: [{ path: 'w', data }] })
    await expect(threes(runtime, session, 2)).rejects.toMatchObject(full)
    await session.release()
  })

  test('a run on WebGPU rejects more than a buffer can hold', async () => {
    const { device: gpu, adapter } = await requestGpu()
    const runtime = await loadRuntime({ device: 'webgpu', folder, gpu })
    const session = await runtime.createSession(expand)
    expect(await threes(runtime, session, 2)).toEqual(Float32Array.of(3, 3))
    const most = (adapter.limits['maxBufferSize'] ?? 0) / 4
    // The first is more than the runtime counts, whatever the GPU could hold.
    for (const tooMany of new Set([2 ** 30 + 1024, most + 1024])) {
      await expect(threes(runtime, session, tooMany)).rejects.toMatchObject(full)
    }
    gpu.destroy()
  })

  test('a run on a device of the lowest limits is split or rejected', async () => {
    const adapter = await navigator.gpu.requestAdapter()
    const gpu = (await adapter?.requestDevice()) as GPUDevice
    const runtime = await loadRuntime({ device: 'webgpu', folder, gpu })
    const session = await runtime.createSession(expand)
    expect(await threes(runtime, session, 5)).toEqual(new Float32Array(5).fill(3))
    const tooMany = gpu.limits.maxStorageBufferBindingSize / 4 + 1024
    const result = await threes(runtime, session, tooMany).catch((error: unknown) => error)
    // Either it is split into pieces that can be bound, or refused.
    if (result instanceof Float32Array) expect(result.at(-1)).toBe(3)
    else expect(result).toMatchObject(full)
    gpu.destroy()
  })

  test('the kernels of language models are right on a device of the lowest limits', async () => {
    const adapter = await navigator.gpu.requestAdapter()
    const gpu = (await adapter?.requestDevice()) as GPUDevice
    const runtime = await loadRuntime({ device: 'webgpu', folder, gpu })
    expect(await computesCorrectly(runtime, gpu, 'float32')).toBe(true)
    gpu.destroy()
  })
})

// The self-test continues in its thread, so this is the last test.
test('a self-test that takes too long reports that, and no wrong numbers', slow, async () => {
  const timeout = globalThis.setTimeout
  // The self-test has no time at all.
  const hurry = (work: () => void, delay?: number, ...given: unknown[]) =>
    timeout(work, delay === 100_000 ? 0 : delay, ...given)
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(hurry as typeof setTimeout)
  await expect(openTrusted({ folder }, never)).rejects.toMatchObject({
    code: 'gpu_untrusted',
    message: expect.stringContaining('self-test timed out'),
    details: { verdict: { features: null, late: true } },
  })
})
