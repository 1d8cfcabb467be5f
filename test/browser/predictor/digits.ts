/** The embedded predictor as its catalog entry says. */
import catalog from '../../../demo/models/catalog.json'
import { predictorEntrySchema, type PredictorEntry } from '../../../src/catalog/schema.ts'
import { openPredictor, type OpenPredictor } from '../../../src/predictor/run.ts'
import type { Device } from '../../../src/types/index.ts'
import { parse } from 'valibot'

export const runtime = new URL('/node_modules/onnxruntime-web/dist/', location.href).href

export function digitsEntry(): PredictorEntry {
  return parse(
    predictorEntrySchema,
    catalog.entries.find(({ tag }) => tag === '@inorigin/digits'),
  )
}

export async function modelFile(): Promise<Blob> {
  return (await fetch('/demo/models/digits/model.onnx')).blob()
}

/** The predictor on a device; `change` alters its entry first. */
export async function openDigits(
  device: Device,
  change: (entry: PredictorEntry) => PredictorEntry = (entry) => entry,
): Promise<OpenPredictor> {
  const entry = change(digitsEntry())
  const implementation = entry.implementations.find((candidate) => candidate.device === device)
  if (!implementation) throw new Error(`No implementation for ${device}.`)
  const files = new Map([['model.onnx', await modelFile()]])
  return openPredictor({ entry, implementation, files, device, runtime })
}
