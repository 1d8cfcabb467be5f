/** Embeddings whose model is given up in the middle, and computed by another implementation. */
import { expect, test } from 'vitest'
import { gpuDiffers } from '../../../src/device/gpu-verdict.ts'
import { InoriginError } from '../../../src/error.ts'
import { createRecentInputs } from '../../../src/host/choice/recent-inputs.ts'
import type { Lease } from '../../../src/host/models/models.ts'
import { streamEmbeddings } from '../../../src/host/requests/embedding-stream.ts'
import type { Embeddings } from '../../../src/types/index.ts'
import { predictor } from '../catalog/entries.ts'

const request = { model: '@acme/embed', input: ['a', 'b'], dimensions: undefined }
const embeddings: Embeddings = { vectors: Float32Array.of(1, 2), dimensions: 1, tokens: 2 }
const caller = { key: null, signal: new AbortController().signal }
const comparison = { agrees: false, why: 'y[0] is 1 on the GPU and 2 on the CPU' }

/** An entry with two implementations, of which only the first text is kept for measurements. */
const entry = {
  ...predictor(),
  embeddings: { input: 'text', output: 'vector', dimensions: 1, maxInputTokens: 8 },
  implementations: [...predictor().implementations, ...predictor().implementations],
}

/** Leases that fail with these errors, one after the other, and then give the embeddings. */
function leasesOf(errors: readonly Error[]) {
  let leases = 0
  let open = 0
  const acquire = async (): Promise<Lease> => {
    const error = errors[leases]
    leases += 1
    open += 1
    const events = (async function* () {
      if (error) throw error
      yield embeddings
    })()
    const instance = {
      entry,
      load: async () => undefined,
      explainFailure: async (thrown: unknown) => thrown,
      worker: { embed: async () => ({ events }) },
    }
    return { instance, release: () => (open -= 1) } as unknown as Lease
  }
  return { acquire, counts: () => [leases, open] }
}

async function collect(errors: readonly Error[]) {
  const { acquire, counts } = leasesOf(errors)
  const recentInputs = createRecentInputs()
  const { events } = await streamEmbeddings(acquire, request, caller, recentInputs)
  const found: unknown[] = []
  for await (const event of events) found.push(event)
  return { found, counts: counts(), kept: recentInputs.find(entry.tag) }
}

test('a GPU that computes other vectors than the CPU is replaced within the request', async () => {
  const { found, counts, kept } = await collect([gpuDiffers(comparison)])
  expect(found).toEqual([{ type: 'finish', embeddings }])
  expect(counts).toEqual([2, 0])
  expect(kept).toEqual({ text: 'a' })
})

test('no other failure is repeated, and a GPU not for ever', async () => {
  const failure = new InoriginError('internal', 'Out of order.')
  await expect(collect([failure])).rejects.toBe(failure)
  await expect(
    collect(Array.from({ length: 3 }, () => gpuDiffers(comparison))),
  ).rejects.toMatchObject({ code: 'gpu_untrusted', details: { comparison } })
})
