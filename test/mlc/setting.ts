/** Which real model the tests are run with, and whether it can be had and run on this machine. */
import { existsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Page } from 'playwright'
import { readList } from './list.ts'

const { env } = process

export interface Setting {
  /** As the catalog's entry has it. */
  mlc: string | { model_id: string; model: string; model_lib: string }
  /** Folders of this machine to be served, by path. */
  folders: Record<string, string>
  /** What has to be reached elsewhere. */
  remote: string[]
  /** Whether a GPU made of software will do: slow, and only weights of 32 bits. */
  software: boolean
}

const USAGE = `
  MLC_MODEL     id in WebLLM's list. Default: SmolLM2-360M-Instruct-q4f32_1-MLC (about 200 MB)
  MLC_WEIGHTS   folder or URL that has mlc-chat-config.json, weights and tokenizer; instead of the list's
  MLC_LIBRARY   path or URL of the library, a .wasm file that was compiled for it; goes with MLC_WEIGHTS
  MLC_GPU       "software" to run on SwiftShader where there is no GPU, with fewer tokens`

/** Throws with what is missing, and how to give it. */
export function readSetting(): Setting {
  const id = env['MLC_MODEL'] ?? 'SmolLM2-360M-Instruct-q4f32_1-MLC'
  const { MLC_WEIGHTS: weights, MLC_LIBRARY: library, MLC_GPU: gpu } = env
  const software = gpu === 'software'
  if (gpu !== undefined && !software)
    throw new Error(`MLC_GPU is ${gpu}; it can be "software".${USAGE}`)
  if ((weights === undefined) !== (library === undefined)) {
    throw new Error(`MLC_WEIGHTS and MLC_LIBRARY go together.${USAGE}`)
  }
  if (weights === undefined || library === undefined) {
    const record = readList().find(({ model_id }) => model_id === id)
    if (!record) throw new Error(`WebLLM's list has no ${id}.${USAGE}`)
    const config = `${record.model}/resolve/main/mlc-chat-config.json`
    return { mlc: id, folders: {}, remote: [config, record.model_lib], software }
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
  const model = urlOf(weights.replace(/\/?$/, '/'), '/weights/', 'mlc-chat-config.json')
  return {
    mlc: { model_id: id, model, model_lib: urlOf(library, '/library/', '') },
    folders,
    remote,
    software,
  }
}

/** Tokens that a test asks for at most on a GPU made of software, which takes seconds for each. */
const MAX_SOFTWARE_TOKENS = 8

/** Returns how many tokens a test that needs no particular number asks for. */
export const limitTokens = (wanted: number): number =>
  env['MLC_GPU'] === 'software' ? Math.min(wanted, MAX_SOFTWARE_TOKENS) : wanted

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
      `Not run: there is no GPU here, only ${adapter.name}, which is software. MLC_GPU=software runs it all the same.`,
    )
  }
  return adapter.name
}
