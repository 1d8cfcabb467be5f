/** SmolLM2-135M-Instruct from its committed file, and its answers as transformers computes them in 32 bits. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright'
import type { ServeOptions, Server, Tag } from '../../src/index.ts'
import { CHAT, fetchIn } from './requests.ts'
import { openSite, serveIn, type Site, type SiteOptions } from './site.ts'

export const REAL_MODEL: Tag = '@huggingfacetb/smollm2-135m'

const FOLDER = '/models/smollm2-135m'
const TEXTS = ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json']
const WEIGHTS = 'SmolLM2-135M-Instruct.Q4_1.gguf'

/** URLs of the files on a site of {@link openRealSite}, by name. The weights are in parts. */
export const REAL_FILES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(TEXTS.map((name) => [name, [`${FOLDER}/${name}`]])),
  [WEIGHTS]: [0, 1, 2, 3, 4, 5].map((part) => `${FOLDER}/${WEIGHTS}.${part}`),
}

/** Greedy answer that `tools/gguf/record.py` recorded. */
export interface RecordedAnswer {
  prompt: string
  promptTokens: number
  /** Text of each token; its bytes if it is a part of a character. */
  tokens: readonly (string | readonly number[])[]
  /** `true` if the answer ended by itself. */
  isWhole: boolean
  /** Distance of the two best logits at each token, and at the end of a whole answer. */
  margins: readonly number[]
}

interface Recorded {
  /** Answers of up to 48 tokens. */
  answers: readonly RecordedAnswer[]
  /** Answer of 16 tokens to a prompt of 2,000. */
  long: RecordedAnswer
}

export const RECORDED = JSON.parse(
  readFileSync(join(import.meta.dirname, '../models/smollm2-135m.json'), 'utf8'),
) as Recorded

/** Margin below which two tokens are as good as each other. */
const TIE = 0.02

/** Two threads. */
const ISOLATION = {
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-embedder-policy': 'require-corp',
}

/** Opens a site with the model's files, in a browser that optimizes wasm at once. */
export const openRealSite = ({ folders, ...options }: SiteOptions = {}): Promise<Site> =>
  openSite({
    folders: { '/models': 'demo/models', ...folders },
    headers: ISOLATION,
    ownBrowser: true,
    ...options,
  })

/** Opens a tab that serves the model, in a profile of its own, because tabs of one share their host. */
export async function openRealModel(
  site: Site,
  options: Omit<ServeOptions, 'catalog'>,
): Promise<Page> {
  const page = await site.open(undefined, await site.browser.newContext())
  // The first answer of a device that is slow loads the model.
  page.setDefaultTimeout(600_000)
  await serveIn(page, { ...options, catalog: `${site.url}/models/playground.json` })
  await page.evaluate(async (tag) => {
    const { server } = globalThis as unknown as { server: Server }
    await server.models.load(tag)
  }, REAL_MODEL)
  return page
}

export interface Logprob {
  token: string
  logprob: number
  bytes: number[]
}

export interface ChatAnswer {
  choices: {
    message: { content: string; tool_calls?: { function: { name: string; arguments: string } }[] }
    finish_reason: string
    logprobs: { content: (Logprob & { top_logprobs: Logprob[] })[] } | null
  }[]
  usage: {
    prompt_tokens: number
    completion_tokens: number
    prompt_tokens_details: { cached_tokens: number }
  }
}

/** Resolves with the response to a chat request. Throws if its status is not 200. */
export async function askChat(page: Page, body: object): Promise<ChatAnswer> {
  const { status, text } = await fetchIn(page, CHAT, { model: REAL_MODEL, ...body })
  const answer = JSON.parse(text) as ChatAnswer & { error?: object }
  if (status !== 200 || answer.error) throw new Error(`${status} ${text}`)
  return answer
}

export const toMessages = (content: string): object[] => [{ role: 'user', content }]

const toBytes = (token: string | readonly number[]): string =>
  String(typeof token === 'string' ? [...new TextEncoder().encode(token)] : [...token])

/** Comparison of an answer with a recorded one. */
export interface Comparison {
  /** `true` if all tokens are the same, and the end. */
  isEqual: boolean
  /** Margin of the record at the first other token; 0 if there is none. */
  margin: number
}

/** Compares a greedy answer that has logprobs with the record. */
export function compareAnswer(
  { choices: [choice] }: ChatAnswer,
  { tokens, isWhole, margins }: RecordedAnswer,
): Comparison {
  const own = (choice?.logprobs?.content ?? []).map(({ bytes }) => String(bytes))
  if (choice?.finish_reason === 'stop') own.push('end')
  const theirs = [...tokens.map(toBytes), ...(isWhole ? ['end'] : [])]
  const first = theirs.findIndex((token, at) => own[at] !== token)
  if (first < 0 && own.length === theirs.length) return { isEqual: true, margin: 0 }
  return { isEqual: false, margin: margins[first < 0 ? theirs.length - 1 : first] ?? Infinity }
}

/** Returns `true` if the answer equals the record, or leaves it where two tokens are as good. */
export const isRight = ({ isEqual, margin }: Comparison): boolean => isEqual || margin < TIE
