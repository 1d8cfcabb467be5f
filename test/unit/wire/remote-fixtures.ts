/** A predictor of every kind of value, and arrays as NumPy 1.24 writes them. */
import type { PredictionEvent, PredictionResult, Signature } from '../../../src/types/index.ts'
import { InoriginError } from '../../../src/error.ts'
import { runRemotely } from '../../../src/predictor/remote/run.ts'
import { AREA, scriptedHost, type ScriptedHost } from './scripted-host.ts'

export const PATH = '/v1/predictions/remote'
export const { tag } = AREA

export const npz = (name: keyof typeof NPZ): string =>
  `data:application/octet-stream;base64,${NPZ[name]}`
export const plain = (text: string, mime = 'text/plain'): string =>
  `data:${mime};base64,${btoa(text)}`
export const bytesUrl = (bytes: ArrayBufferView): string =>
  plain(String.fromCharCode(...new Uint8Array(bytes.buffer)), 'application/octet-stream')

export interface Prediction {
  id: string
  tag: string
  created: string
  results: { data: string; dtype?: string; type?: string; shape?: number[] }[] | null
  latency: number | null
  error: string | null
  logs: null
}

export const bytesOf = (url: string): Uint8Array =>
  Uint8Array.from(atob(url.split(',')[1] ?? ''), (letter) => letter.charCodeAt(0))

/** `numpy.savez_compressed` of what the names say. */
export const NPZ = {
  /** `array(3, int32)` */
  three:
    'UEsDBC0AAAAIAAAAIQBbutM7//////////8JABQAYXJyXzAubnB5AQAQAIQAAAAAAAAARgAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2mirqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RqaOgq1ChQBLmYGBgYAUEsBAi0DLQAAAAgAAAAhAFu60ztGAAAAhAAAAAkAAAAAAAAAAAAAAIABAAAAAGFycl8wLm5weVBLBQYAAAAAAQABADcAAACBAAAAAAA=',
  /** `array([0.5, -2], float16)` */
  halves:
    'UEsDBC0AAAAIAAAAIQABvQ8I//////////8JABQAYXJyXzAubnB5AQAQAIQAAAAAAAAASAAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2akrqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RpGOpo6CrUKFAAuBguGAwBQSwECLQMtAAAACAAAACEAAb0PCEgAAACEAAAACQAAAAAAAAAAAAAAgAEAAAAAYXJyXzAubnB5UEsFBgAAAAABAAEANwAAAIMAAAAAAA==',
  /** `arange(6, dtype=float32).reshape(2, 3)` */
  matrix:
    'UEsDBC0AAAAIAAAAIQBP6QAq//////////8JABQAYXJyXzAubnB5AQAQAJgAAAAAAAAAVQAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2airqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RpGOgrGmjoKtQpkAy4GMGiwBxIOQATEDUC8wAEAUEsBAi0DLQAAAAgAAAAhAE/pACpVAAAAmAAAAAkAAAAAAAAAAAAAAIABAAAAAGFycl8wLm5weVBLBQYAAAAAAQABADcAAACQAAAAAAA=',
  /** The same in Fortran's order. */
  turned:
    'UEsDBC0AAAAIAAAAIQDOLODT//////////8JABQAYXJyXzAubnB5AQAQAJgAAAAAAAAAVgAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2airqOgnpZfVFKUmBefX5SSChIPKSpNBQoXZyQWpAK5GkY6CsaaOgq1CuQDLgYwcHBgYGiwB2IHEIeBYYEDAFBLAQItAy0AAAAIAAAAIQDOLODTVgAAAJgAAAAJAAAAAAAAAAAAAACAAQAAAABhcnJfMC5ucHlQSwUGAAAAAAEAAQA3AAAAkQAAAAAA',
  /** `array([2 ** 62], int64)` */
  large:
    'UEsDBC0AAAAIAAAAIQAw22Lk//////////8JABQAYXJyXzAubnB5AQAQAIgAAAAAAAAASAAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuk2mhrqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RqGOpo6CrUKFAAuBghwAABQSwECLQMtAAAACAAAACEAMNti5EgAAACIAAAACQAAAAAAAAAAAAAAgAEAAAAAYXJyXzAubnB5UEsFBgAAAAABAAEANwAAAIMAAAAAAA==',
  /** `array([True, False])` */
  truth:
    'UEsDBC0AAAAIAAAAIQDuGbtd//////////8JABQAYXJyXzAubnB5AQAQAIIAAAAAAAAARgAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBek2SorqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RpGOpo6CrUKFAAuRgYAUEsBAi0DLQAAAAgAAAAhAO4Zu11GAAAAggAAAAkAAAAAAAAAAAAAAIABAAAAAGFycl8wLm5weVBLBQYAAAAAAQABADcAAACBAAAAAAA=',
  /** `array([1], '>f4')` */
  swapped:
    'UEsDBC0AAAAIAAAAIQBN18NB//////////8JABQAYXJyXzAubnB5AQAQAIQAAAAAAAAASAAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBul2airqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RqGOpo6CrUKFAAu+wYGBgBQSwECLQMtAAAACAAAACEATdfDQUgAAACEAAAACQAAAAAAAAAAAAAAgAEAAAAAYXJyXzAubnB5UEsFBgAAAAABAAEANwAAAIMAAAAAAA==',
  /** `array(['a'])` */
  words:
    'UEsDBC0AAAAIAAAAIQAqpCg2//////////8JABQAYXJyXzAubnB5AQAQAIQAAAAAAAAASAAAAAAAAACb7BfqGxDJyFDGUK2eklqcXKRupaBuE2qorqOgnpZfVFKUmBefX5SSChJ3S8wpTgWKF2ckFqQC+RqGOpo6CrUKFACuRAYGBgBQSwECLQMtAAAACAAAACEAKqQoNkgAAACEAAAACQAAAAAAAAAAAAAAgAEAAAAAYXJyXzAubnB5UEsFBgAAAAABAAEANwAAAIMAAAAAAA==',
} as const

const TYPES = [
  'float16',
  'float32',
  'float64',
  'int8',
  'int16',
  'int32',
  'int64',
  'uint8',
  'uint16',
  'uint32',
  'uint64',
  'bool',
  'string',
  'list',
  'dict',
  'image',
  'binary',
] as const

/** An input and an output of every type, called by its name. */
export const SIGNATURE: Signature = {
  inputs: TYPES.map((type) => ({ name: type, type, optional: true, defaultValue: null })),
  outputs: [],
}

export interface RemoteHost extends ScriptedHost {
  /** What the predictor was run on. */
  ran: Record<string, unknown>[]
  signature: Signature
}

/**
 * A host whose predictor gives those outputs, of the types that their names say. `script` is told
 * before them: an error is thrown.
 */
export function remoteHost(
  outputs: Record<string, unknown> = {},
  script: readonly (PredictionEvent | Error)[] = [],
): RemoteHost {
  const ran: Record<string, unknown>[] = []
  const signature: Signature = {
    ...SIGNATURE,
    outputs: Object.keys(outputs).map((name) => {
      const type = TYPES.find((each) => name.startsWith(each)) ?? 'string'
      return { name, type }
    }),
  }
  const result: PredictionResult = { tag, outputs, latency: 12.5, device: 'wasm' }
  async function* events(): AsyncGenerator<PredictionEvent> {
    for (const event of script) {
      if (event instanceof Error) throw event
      yield event
    }
    yield { type: 'finish', result }
  }
  const overrides: Partial<ScriptedHost> = {
    async createRemotePrediction(request) {
      if (request.tag !== tag)
        throw new InoriginError('not_found', `There is no predictor ${request.tag}.`)
      return runRemotely(request, signature, async (inputs) => {
        ran.push(inputs)
        return { events: events() }
      })
    },
  }
  return Object.assign(scriptedHost({ overrides }), { ran, signature })
}
