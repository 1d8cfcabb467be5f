/** Draws the weights of a model that is only measured. */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

interface Listed {
  config: Record<string, unknown>
  weights: { kind: 'normal' | 'one' | 'head' | 'cos' | 'sin'; shape: number[] }[]
}

/** Writes the model into `folder` in the layout of a hub, unless it is there. */
export function drawModel(name: string, folder: string, tokenizer: string): void {
  if (existsSync(join(folder, 'config.json'))) return
  const source = (type: string) => join(import.meta.dirname, `${name}.${type}`)
  const { config, weights } = JSON.parse(readFileSync(source('json'), 'utf8')) as Listed
  mkdirSync(join(folder, 'onnx'), { recursive: true })
  writeFileSync(join(folder, 'onnx/model.onnx'), readFileSync(source('onnx')))
  const random = createRandom(7)
  const file = openSync(join(folder, 'onnx/model.onnx_data'), 'w')
  for (const { kind, shape } of weights)
    writeSync(file, Buffer.from(draw(kind, shape, random).buffer))
  closeSync(file)
  // No text of these ends by itself: the end token's score is always 0, and others are above.
  const eos_token_id = config['eos_token_id']
  writeFileSync(join(folder, 'generation_config.json'), JSON.stringify({ eos_token_id }))
  for (const text of ['tokenizer.json', 'tokenizer_config.json']) {
    writeFileSync(join(folder, text), readFileSync(join(tokenizer, text)))
  }
  // Last, since it says that all is there.
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
}

function draw(
  kind: Listed['weights'][number]['kind'],
  shape: readonly number[],
  random: () => number,
): Float32Array {
  const values = new Float32Array(shape.reduce((product, length) => product * length, 1))
  const columns = shape.at(-1) ?? 1
  const scale = 1 / Math.sqrt(shape[0] ?? 1)
  for (let index = 0; index < values.length; index += 1) {
    const column = index % columns
    const angle = Math.floor(index / columns) / 10_000 ** (column / columns)
    if (kind === 'one') values[index] = 1
    else if (kind === 'cos') values[index] = Math.cos(angle)
    else if (kind === 'sin') values[index] = Math.sin(angle)
    else if (kind === 'head' && column === columns - 1) values[index] = 0
    // Uniform and of the same deviation as a normal one, for a tenth of the time.
    else values[index] = (random() - 0.5) * 3.46 * scale
  }
  return values
}

/** Numbers in [0, 1), the same for the same seed on every machine. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
