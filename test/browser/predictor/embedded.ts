/** Embedded predictors as their catalog entries say. */
import { parse } from 'valibot'
import catalog from '../../../demo/models/catalog.json'
import { predictorEntrySchema, type PredictorEntry } from '../../../src/catalog/schema.ts'
import { openPredictor, type OpenPredictor } from '../../../src/predictor/open-predictor.ts'
import type { Device } from '../../../src/types/index.ts'

export const runtime = new URL('/node_modules/onnxruntime-web/dist/', location.href).href

export function entryOf(name: string): PredictorEntry {
  return parse(
    predictorEntrySchema,
    catalog.entries.find(({ tag }) => tag === `@inorigin/${name}`),
  )
}

/** Returns the tags of a test on that device: a GPU made of software compiles shaders for seconds. */
export const tagsOf = (device: Device): string[] => (device === 'webgpu' ? ['slow'] : [])

interface Opening {
  /** Where it runs instead of on its own device. */
  device?: Device
  change?: (entry: PredictorEntry) => PredictorEntry
}

/** An implementation, such as `fp32-wasm`. */
export async function openEmbedded(
  name: string,
  id: string,
  { device, change = (entry) => entry }: Opening = {},
): Promise<OpenPredictor> {
  const entry = change(entryOf(name))
  const implementation = entry.implementations.find((candidate) => candidate.id === id)
  if (!implementation) throw new Error(`No implementation ${id}.`)
  const files = new Map(
    await Promise.all(
      implementation.resources.map(async (resource) => {
        const response = await fetch(`/demo/models/${resource.url}`)
        return [resource.name, await response.blob()] as const
      }),
    ),
  )
  return openPredictor({
    entry,
    implementation,
    files,
    device: device ?? implementation.device,
    runtime,
  })
}
