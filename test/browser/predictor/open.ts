/** Predictors of the embedded catalog, and of graphs that tests write. */
import { parse } from 'valibot'
import catalog from '../../../demo/models/catalog.json'
import { predictorEntrySchema, type PredictorEntry } from '../../../src/catalog/schema.ts'
import { openPredictor, type OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import type { Device } from '../../../src/types/index.ts'
import { runtimeFolder } from '../../models/tiny.ts'

type Implementation = PredictorEntry['implementations'][number]

export function entryOf(name: string): PredictorEntry {
  return parse(
    predictorEntrySchema,
    catalog.entries.find(({ tag }) => tag === `@inorigin/${name}`),
  )
}

/** Returns the tags of a test on that device: a GPU made of software compiles shaders for seconds. */
export const tagsOf = (device: Device): string[] => (device === 'webgpu' ? ['slow'] : [])

interface Opening {
  /** Device on which it runs, if that is not its own. */
  device?: Device
  change?: (entry: PredictorEntry) => PredictorEntry
  /** Files in place of the real ones. */
  files?: ReadonlyMap<string, Blob>
  signal?: AbortSignal
}

/** Opens an implementation of an embedded predictor, such as `fp32-wasm`. */
export async function openEmbedded(
  name: string,
  id: string,
  { device, change = (entry) => entry, files, signal }: Opening = {},
): Promise<OpenPredictor> {
  const entry = change(entryOf(name))
  const implementation = entry.implementations.find((each) => each.id === id) as Implementation
  const fetched = implementation.resources.map(async (resource) => {
    const response = await fetch(`/demo/models/${resource.url}`)
    return [resource.name, await response.blob()] as const
  })
  return openPredictor(
    {
      entry,
      implementation,
      files: files ?? new Map(await Promise.all(fetched)),
      device: device ?? implementation.device,
      runtime: runtimeFolder(),
    },
    signal,
  )
}

export interface GraphPredictor extends Pick<PredictorEntry, 'signature' | 'states'> {
  model: BlobPart
  bindings?: Implementation['bindings']
  device?: Device
}

/** Opens a predictor whose only file is that graph. */
export function openGraph(
  { model, signature, states, bindings, device = 'wasm' }: GraphPredictor,
  onComparison?: Parameters<typeof openPredictor>[2],
): Promise<OpenPredictor> {
  const name = 'deep/m.onnx'
  const file = new Blob([model])
  const implementation: Implementation = {
    id: device,
    engine: 'onnx',
    device,
    resources: [{ type: 'onnx', url: 'm', name, bytes: file.size, sha256: '0'.repeat(64) }],
    bindings,
  }
  const entry: PredictorEntry = {
    type: 'predictor',
    tag: '@test/graph',
    name: 'Graph',
    created: '2026-01-01T00:00:00Z',
    signature,
    states,
    implementations: [implementation],
  }
  return openPredictor(
    { entry, implementation, files: new Map([[name, file]]), device, runtime: runtimeFolder() },
    undefined,
    onComparison,
  )
}
