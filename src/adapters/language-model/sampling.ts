/** Sampling modes, and the parameters that stand behind them. */
import { domException } from './errors.ts'
import type {
  LanguageModelCreateCoreOptions,
  LanguageModelParams,
  LanguageModelSamplingMode,
} from './types.ts'

export const PARAMS: LanguageModelParams = Object.freeze({
  defaultTopK: 40,
  maxTopK: 128,
  defaultTemperature: 1,
  maxTemperature: 2,
})

/** Temperatures of the modes. `balanced` is what the model itself prefers. */
const TEMPERATURES: Readonly<Record<Exclude<LanguageModelSamplingMode, 'balanced'>, number>> = {
  'most-predictable': 0,
  predictable: 0.3,
  'slightly-predictable': 0.6,
  'slightly-creative': 1.15,
  creative: 1.3,
  'most-creative': 1.5,
}

/** Sampling parameters of a session. */
export interface Sampling {
  /** `null` if the page gave parameters instead. */
  mode: LanguageModelSamplingMode | null
  topK: number
  temperature: number
  /** Fields of a request. */
  fields: { temperature?: number; top_k?: number }
}

/**
 * Returns how a session samples. Without `legacy`, parameters have no effect.
 *
 * @throws RangeError for parameters below their minimum.
 * @throws DOMException `NotSupportedError` if only one of the two parameters is given.
 */
export function toSampling(
  { samplingMode, topK, temperature }: LanguageModelCreateCoreOptions,
  legacy: boolean,
): Sampling {
  const { defaultTopK, maxTopK, defaultTemperature, maxTemperature } = PARAMS
  const defaults = { topK: defaultTopK, temperature: defaultTemperature }
  if (!legacy || (topK === undefined && temperature === undefined)) {
    const mode = samplingMode ?? 'balanced'
    if (mode !== 'balanced') {
      const own = TEMPERATURES[mode]
      return { mode, ...defaults, temperature: own, fields: { temperature: own } }
    }
    const fields = { temperature: defaultTemperature, top_k: defaultTopK }
    return { mode, ...defaults, fields: legacy ? fields : {} }
  }
  if (topK === undefined || temperature === undefined) {
    throw domException('NotSupportedError', 'Give both topK and temperature, or neither.')
  }
  if (!(topK >= 1)) throw new RangeError(`topK is ${topK}. It must be at least 1.`)
  if (!(temperature >= 0)) {
    throw new RangeError(`temperature is ${temperature}. It must be at least 0.`)
  }
  const own = {
    topK: Math.min(Math.floor(topK), maxTopK),
    temperature: Math.min(temperature, maxTemperature),
  }
  return { mode: null, ...own, fields: { temperature: own.temperature, top_k: own.topK } }
}

/** Throws if the page gave both a mode and parameters, which contradict each other. */
export function assertOneSampling(
  { samplingMode, topK, temperature }: LanguageModelCreateCoreOptions,
  legacy: boolean,
): void {
  if (!legacy || samplingMode === undefined) return
  if (topK === undefined && temperature === undefined) return
  throw new TypeError('Give either samplingMode, or topK and temperature.')
}
