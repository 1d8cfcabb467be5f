/** Passages of the documentation that fit a question, by the vectors of `@inorigin/embed`. */
import type { Server } from '../src/index.ts'

/** Model that compares questions with passages. It comes with the page. */
export const EMBED = '@inorigin/embed'

/** Place in the documentation. */
export interface Source {
  title: string
  /** Path of the page of the documentation beside this one. */
  path: string
}

/** A passage of `passages.json`, which the build writes. */
export interface IndexedPassage extends Source {
  /** Signed bytes in base64, in units of `scale`: the mean of the vectors of heading and text. */
  vector: string
  scale: number
}

/**
 * Least similarity of a question to a passage about its subject. Above it are 65 % of the 144 questions about
 * inorigin in the guide's evaluation, and one of the 115 about something else. docs/playground.md has more.
 */
const MIN_SIMILARITY = 0.48

const MAX_SOURCES = 3

interface Indexed extends Source {
  bytes: Int8Array
  scale: number
}

let loading: Promise<Indexed[]> | undefined

async function load(): Promise<Indexed[]> {
  const response = await fetch(new URL('passages.json', document.baseURI))
  if (!response.ok) throw new Error(`passages.json: ${response.status}`)
  const passages = (await response.json()) as IndexedPassage[]
  return passages.map(({ title, path, vector, scale }) => ({
    title,
    path: `site/${path.replace(/\.md$/, '.html')}`,
    scale,
    bytes: Int8Array.from(atob(vector), (character) => character.charCodeAt(0)),
  }))
}

/**
 * Resolves with the pages that a question is about, the closest first; with none if it is about something
 * else. Rejects if the model or the passages cannot be loaded.
 */
export async function findSources(server: Server, question: string): Promise<Source[]> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined
    throw error
  })
  const [passages, { outputs }] = await Promise.all([
    loading,
    server.predict(EMBED, { text: question }),
  ])
  const { data } = outputs['vector'] as { data: Float32Array }
  const near = passages
    .map(({ title, path, bytes, scale }) => ({ title, path, score: dot(bytes, data) * scale }))
    .filter(({ score }) => score >= MIN_SIMILARITY)
    .toSorted((one, other) => other.score - one.score)
  // A long section has several passages.
  const sources = new Map(near.toReversed().map(({ title, path }) => [title, { title, path }]))
  return [...sources.values()].toReversed().slice(0, MAX_SOURCES)
}

function dot(bytes: Int8Array, vector: Float32Array): number {
  let sum = 0
  for (const [at, byte] of bytes.entries()) sum += byte * (vector[at] ?? 0)
  return sum
}
