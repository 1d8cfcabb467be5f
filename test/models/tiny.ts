/** The tiny model as the engine gets it. `tiny.py` makes it and says what it must answer. */
import expected from './tiny/expected.json'

export const TEXTS = [
  'config.json',
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
]

/** Prompts and the tokens a greedy run answers them with. */
export const CASES: readonly { prompt: number[]; greedy: number[] }[] = expected.cases

/** The first scores after the second case's prompt. */
export const FIRST_SCORES: readonly number[] = expected.firstScores

/** Files of the model by name; `overrides` replace one, or leave it out where they are `null`. */
export async function tinyFiles(
  names: readonly string[],
  overrides: Readonly<Record<string, unknown>> = {},
): Promise<Map<string, Blob>> {
  const files = new Map<string, Blob>()
  for (const name of names) {
    const override = overrides[name]
    if (override === null) continue
    if (override === undefined) files.set(name, await tinyFile(name))
    else files.set(name, override instanceof Blob ? override : new Blob([JSON.stringify(override)]))
  }
  return files
}

async function tinyFile(name: string): Promise<Blob> {
  const response = await fetch(`/test/models/tiny/${name}`)
  if (!response.ok) throw new Error(`${name}: ${response.status}`)
  return response.blob()
}

/** Where the test server has the runtime's wasm files. */
/** Folder with the engine of constraints, without its worker. */
export const constraintFolder = (): string => new URL('/src/constraint/', location.href).href

export const runtimeFolder = (): string =>
  new URL('/node_modules/onnxruntime-web/dist/', location.href).href
