/** Which real model the tests are run with, and whether it can be had and run on this machine. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Page } from 'playwright'
import { writeRandomWeights } from './random-weights.ts'

const { env } = process

/** WebLLM's own list, as the package has it. */
const LIST = join(import.meta.dirname, '../../src/catalog/mlc/list.json')

export interface Setting {
  /** As the catalog's entry has it. */
  mlc: string | { model_id: string; model: string; model_lib: string }
  /** Folders of this machine to be served, by path. */
  folders: Record<string, string>
  /** What has to be reached elsewhere. */
  remote: string[]
  /** Whether a GPU made of software and random weights will do. */
  software: boolean
}

const USAGE = `
  MLC_MODEL     id in WebLLM's list. Default: SmolLM2-360M-Instruct-q4f32_1-MLC (about 200 MB)
  MLC_WEIGHTS   folder or URL that has mlc-chat-config.json, weights and tokenizer; instead of the list's
  MLC_LIBRARY   path or URL of the library, a .wasm file that was compiled for it; goes with MLC_WEIGHTS
  MLC_GPU       "software" for a few tests on SwiftShader, where there is no GPU. It makes random weights
                for MLC_LIBRARY, a file whose weights are q0f32 or q4f32_1`

/** Whether the few tests for a GPU made of software are run, in place of the others. */
export const isSoftware = env['MLC_GPU'] === 'software'

/** Throws with what is missing, and how to give it. Weights that are made go to the folder `scratch`. */
export function readSetting(scratch: string): Setting {
  const id = env['MLC_MODEL'] ?? 'SmolLM2-360M-Instruct-q4f32_1-MLC'
  const { MLC_WEIGHTS: given, MLC_LIBRARY: library, MLC_GPU: gpu } = env
  if (gpu !== undefined && !isSoftware)
    throw new Error(`MLC_GPU is ${gpu}; it can be "software".${USAGE}`)
  const weights = isSoftware ? scratch : given
  if ((weights === undefined) !== (library === undefined)) {
    const what = isSoftware
      ? 'MLC_GPU needs MLC_LIBRARY'
      : 'MLC_WEIGHTS and MLC_LIBRARY go together'
    throw new Error(`${what}.${USAGE}`)
  }
  if (weights === undefined || library === undefined) {
    const { records } = JSON.parse(readFileSync(LIST, 'utf8')) as {
      records: { model: string; model_id: string; model_lib: string }[]
    }
    const record = records.find(({ model_id }) => model_id === id)
    if (!record) throw new Error(`WebLLM's list has no ${id}.${USAGE}`)
    const config = `${record.model}/resolve/main/mlc-chat-config.json`
    return { mlc: id, folders: {}, remote: [config, record.model_lib], software: isSoftware }
  }
  const folders: Record<string, string> = {}
  const remote: string[] = []
  const urlOf = (place: string, path: string, probe: string): string => {
    if (/^https?:/.test(place)) {
      remote.push(new URL(probe, place).href)
      return place
    }
    const file = resolve(place)
    if (!existsSync(file)) throw new Error(`There is no ${file}.${USAGE}`)
    const isFolder = statSync(file).isDirectory()
    folders[path] = isFolder ? file : dirname(file)
    return path + (isFolder ? '' : file.slice(dirname(file).length + 1))
  }
  if (isSoftware) writeRandomWeights(scratch, library)
  const model = urlOf(weights.replace(/\/?$/, '/'), '/weights/', 'mlc-chat-config.json')
  return {
    mlc: { model_id: id, model, model_lib: urlOf(library, '/library/', '') },
    folders,
    remote,
    software: isSoftware,
  }
}

/** Throws where something that has to be downloaded cannot be. */
export async function checkNetwork({ remote }: Setting): Promise<void> {
  for (const url of remote) {
    const told = await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(20_000) }).then(
      ({ ok, status }) => (ok ? null : `it answers ${status}`),
      (thrown: unknown) =>
        `it cannot be reached (${thrown instanceof Error ? String(thrown.cause ?? thrown) : String(thrown)})`,
    )
    if (told !== null)
      throw new Error(`Not run: ${url} is needed, and ${told}. A copy will do:${USAGE}`)
  }
}

/** Throws where there is no GPU. Gives what there is. */
export async function checkGpu(page: Page, { software }: Setting): Promise<string> {
  const adapter = await page.evaluate(async () => {
    const found = await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' })
    const { vendor = '', architecture = '', isFallbackAdapter = false } = found?.info ?? {}
    return found ? { name: `${vendor} ${architecture}`.trim(), isFallbackAdapter } : null
  })
  if (!adapter)
    throw new Error(
      'Not run: this Chromium offers no WebGPU here. A machine with a GPU and its driver is needed.',
    )
  if (adapter.isFallbackAdapter && !software) {
    throw new Error(
      `Not run: there is no GPU here, only ${adapter.name}, which is software. MLC_GPU=software runs a few tests on it.`,
    )
  }
  return adapter.name
}
