/** Runs the graph that turns images into rows of floats. */
import type { Tensor } from 'onnxruntime-web'
import { halfToFloat32, toHalf } from '../../../values/half.ts'
import { modelUnusable } from '../../failure.ts'
import type { Runtime, Session } from '../runtime.ts'
import type { EncoderInput, EncoderInputs } from './family.ts'

/** Function that resolves with the rows of an image, one after the other. */
export type RunEncoder = (inputs: EncoderInputs, rows: number) => Promise<Float32Array>

const OUTPUT = 'image_features'

/** Creates the encoder over a session that the caller releases. */
export function createEncoder({ ort }: Runtime, session: Session): RunEncoder {
  const types = new Map(
    session.inputs.map((input) => [input.name, input.isTensor ? input.type : 'string']),
  )
  const [first] = session.outputs
  const output = session.outputs.find(({ name }) => name === OUTPUT) ?? first
  if (!output) throw modelUnusable('its image encoder has no output.')

  const toTensor = (name: string, { type, data, dims }: EncoderInput): Tensor => {
    const wanted = types.get(name)
    if (type === 'float' && wanted === 'float16')
      return new ort.Tensor('float16', Uint16Array.from(data as Float32Array, toHalf), dims)
    if (type === 'float') return new ort.Tensor('float32', data as Float32Array, dims)
    if (type === 'int64') return new ort.Tensor('int64', data as BigInt64Array, dims)
    return new ort.Tensor('bool', data as Uint8Array, dims)
  }

  return async (inputs, rows) => {
    // Exports leave out inputs that the graph does not use.
    const feeds = Object.fromEntries(
      Object.entries(inputs)
        .filter(([name]) => types.has(name))
        .map(([name, input]) => [name, toTensor(name, input)]),
    )
    const missing = [...types.keys()].find((name) => !(name in feeds))
    if (missing !== undefined)
      throw modelUnusable(`the input ${missing} of its image encoder is not supported.`)
    const results = await session.run(feeds, [output.name])
    const tensor = results[output.name] as Tensor
    const made = tensor.dims.slice(0, -1).reduce((product, size) => product * size, 1)
    if (made !== rows)
      throw modelUnusable(`its image encoder made ${made} rows; its configuration says ${rows}.`)
    const { data } = tensor
    return tensor.type === 'float16' ? halfToFloat32(data as Uint16Array) : (data as Float32Array)
  }
}
