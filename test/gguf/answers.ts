/** Compares the tokens that models of GGUF files find best with those of the files in 32 bits. */
import { existsSync, mkdtempSync, openAsBlob, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { describeModel } from '../../src/engine/gguf/card.ts'
import { readGguf, toByteSource } from '../../src/engine/gguf/header.ts'
import type { Device, Precision } from '../../src/types/index.ts'
import { buildScripts } from '../bench/scripts.ts'
import { openSite, type Site } from '../support/site.ts'
import type { Answer, Order } from './worker.ts'

/** An answer of a reference, which `tools/gguf/make.py` writes. */
interface ReferenceAnswer {
  prompt: readonly number[]
  answer: readonly number[]
  /** Best token in place of each token of the answer. */
  best: readonly number[]
  /** Distance of the two best logits in the same places. */
  margins: readonly number[]
}

interface Reference {
  /** Number of matrices of each type. */
  matrices: Readonly<Record<string, number>>
  answers: readonly ReferenceAnswer[]
}

/** How to run a model. */
export interface AnswerOptions {
  device: Device
  precision: Precision
  /** How many of the prompts. Default: all. */
  prompts?: number | undefined
  /** `true` to write the answers, too, token by token. */
  writes: boolean
}

/** Result for one file. */
export interface AnswerComparison {
  matrices: Reference['matrices']
  /** Milliseconds of the load. */
  load: number
  /** Places that were compared after the same tokens, and those with the same best token. */
  places: number
  same: number
  /** Margins of the reference in the other places. */
  lost: number[]
  /** Answers that were written as a whole; `null` if none was written. */
  written: { answers: number; equal: number; ties: number; other: number } | null
}

/** Margin below which two tokens are as good as each other. */
const TIE = 0.02
const THREADS = 2
/** Most tokens of a sequence. */
const CONTEXT_TOKENS = 2_048

const SCRIPTS = join(import.meta.dirname, '../../node_modules/.cache/inorigin-gguf')
const ISOLATION = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
}

const referenceOf = (path: string): string => path.replace(/\.gguf$/, '.json')

/** Returns `true` if the file has a reference beside it. */
export const hasReference = (path: string): boolean => existsSync(referenceOf(path))

/** Opens a site with the files of a folder. */
export async function openAnswers(folder: string): Promise<Site> {
  await buildScripts(SCRIPTS, { worker: '../gguf/worker.ts' }, 'error')
  // A private profile keeps blobs in memory only, and cannot read what exceeds its limit.
  const profile = mkdtempSync(join(tmpdir(), 'inorigin-gguf-'))
  const site = await openSite({
    profile,
    gpu: 'software',
    folders: { '/gguf/files/': folder, '/gguf/': SCRIPTS },
    pages: { '/gguf.html': '<!doctype html><meta charset="utf-8"><title>gguf</title>' },
    headers: ISOLATION,
  })
  return {
    ...site,
    async close() {
      await site.close()
      rmSync(profile, { recursive: true, force: true })
    },
  }
}

/** Resolves with the comparison of a file, whose folder the site has. */
export async function compareAnswers(
  site: Site,
  path: string,
  { device, precision, prompts, writes }: AnswerOptions,
): Promise<AnswerComparison> {
  const { answers, matrices } = JSON.parse(readFileSync(referenceOf(path), 'utf8')) as Reference
  const { metadata } = await readGguf(toByteSource(await openAsBlob(path)))
  const { contextTokens = CONTEXT_TOKENS } = describeModel(metadata)
  const { order, close } = await openWorker(site)
  const compared = { matrices, places: 0, same: 0, lost: [] as number[] }
  const written = { answers: 0, equal: 0, ties: 0, other: 0 }
  try {
    const load = await order({
      type: 'open',
      path: `/gguf/files/${basename(path)}`,
      device,
      precision,
      threads: device === 'wasm' ? THREADS : 1,
      contextTokens: Math.min(contextTokens, CONTEXT_TOKENS),
    })
    for (const { prompt, answer, best, margins } of answers.slice(0, prompts)) {
      const found = await order({ type: 'judge', prompt, answer })
      if (found.length !== best.length) throw new Error(`${path}: ${found.length} tokens`)
      const different = best.flatMap((token, at) => (found[at] === token ? [] : [at]))
      compared.places += best.length
      compared.same += best.length - different.length
      compared.lost.push(...different.map((at) => margins[at] ?? 0))
      if (!writes) continue
      const own = await order({ type: 'write', prompt, count: answer.length })
      const first = answer.findIndex((token, at) => own[at] !== token)
      written.answers += 1
      written[first < 0 ? 'equal' : (margins[first] ?? 0) < TIE ? 'ties' : 'other'] += 1
    }
    return { ...compared, load, written: writes ? written : null }
  } finally {
    await close()
  }
}

async function openWorker(site: Site) {
  const page = await site.open('/gguf.html')
  await page.evaluate(() => {
    Object.assign(globalThis, { worker: new Worker('/gguf/worker.js', { type: 'module' }) })
  })
  async function order<T extends Order['type']>(given: Order & { type: T }): Promise<Answer<T>> {
    const { answer, error } = await page.evaluate((sent) => {
      const { worker } = globalThis as unknown as { worker: Worker }
      return new Promise<{ answer?: unknown; error?: string }>((resolve) => {
        worker.onmessage = ({ data }) => resolve(data)
        worker.onerror = ({ message }) => resolve({ error: message })
        worker.postMessage(sent)
      })
    }, given)
    if (error !== undefined) throw new Error(error)
    return answer as Answer<T>
  }
  return { order, close: () => page.close() }
}
