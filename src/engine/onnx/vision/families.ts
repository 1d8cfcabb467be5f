/** Chooses the family of a model that sees images. */
import type { Files } from '../../engine.ts'
import type { VisionFamily } from './family.ts'
import { createIdefics3 } from './idefics3.ts'
import { createLfm2 } from './lfm2.ts'
import { createQwen } from './qwen.ts'
import { type ProcessorSettings, readProcessorSettings } from './settings.ts'

const FAMILIES: Readonly<Record<string, (settings: ProcessorSettings) => VisionFamily>> = {
  idefics3: createIdefics3,
  smolvlm: createIdefics3,
  lfm2_vl: createLfm2,
  qwen2_vl: createQwen,
  qwen2_5_vl: createQwen,
  qwen3_vl: createQwen,
  qwen3_5: createQwen,
}

/** Returns `true` if the configuration is that of a model that sees images. */
export const isVisionModel = (config: Readonly<Record<string, unknown>>): boolean =>
  Object.hasOwn(FAMILIES, String(config['model_type']))

/** Values of `model_type` of the models that see images, in the order of the documentation. */
export const VISION_MODEL_TYPES: readonly string[] = Object.keys(FAMILIES)

/** Resolves with the family of a model; `null` if it has none that is supported. */
export async function readVisionFamily(texts: Files): Promise<VisionFamily | null> {
  const settings = await readProcessorSettings(texts)
  const create = isVisionModel(settings.config) ? FAMILIES[settings.modelType] : undefined
  return create?.(settings) ?? null
}
