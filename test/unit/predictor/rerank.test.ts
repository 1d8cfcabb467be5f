/** Scores of pairs, with a fake predictor: a token is the length of a word, a score their sum. */
import { expect, test } from 'vitest'
import type { Reranker } from '../../../src/catalog/schema.ts'
import type { TextPredictor } from '../../../src/predictor/embed.ts'
import { scorePairs, tokenizePairs } from '../../../src/predictor/rerank.ts'
import { predictor } from '../catalog/entries.ts'

const { signal } = new AbortController()
const entry: Reranker = {
  ...predictor({ tag: '@acme/rerank' }),
  rerank: { input: 'text', output: 'score' },
}

const toIds = (text: string): number[] => text.split(' ').map((word) => word.length)

/** Returns a predictor that keeps how many pairs it scores at once. */
function fake(batches: number[], scale = 1): TextPredictor {
  return {
    tokenize(_name, text, _path, { pair = '', isCut } = {}) {
      expect(isCut).toBe(true)
      const ids = [...toIds(text), ...toIds(pair)]
      return { ids, types: ids.map(() => 0) }
    },
    async predictTokens(_name, rows) {
      batches.push(rows.length)
      const sums = rows.map(({ ids }) => scale * ids.reduce((sum, id) => sum + id, 0))
      // A single number of the shape [1] is returned as such.
      const score = sums.length === 1 ? sums[0] : { data: Float32Array.from(sums) }
      return { tag: '', outputs: { score }, latency: 0, device: 'wasm' }
    },
  }
}

const rank = async (documents: string[], opened: TextPredictor) => {
  const rows = await tokenizePairs(opened, entry, { model: '', query: 'ab c', documents }, signal)
  return scorePairs(opened, entry, rows, signal)
}

test('Documents are scored in batches, and the scores are in their order', async () => {
  const batches: number[] = []
  const words = (count: number): string => Array<string>(count).fill('a').join(' ')
  const lengths = [3000, 1, 5000, 2]
  const { scores, tokens } = await rank(lengths.map(words), fake(batches))
  expect(scores).toEqual(lengths.map((length) => length + 3))
  expect(tokens).toBe(8003 + 8)
  expect(batches.toSorted()).toEqual([1, 1, 2])
})

test('Scores that are no numbers are refused', async () => {
  await expect(rank(['a', 'b'], fake([], NaN))).rejects.toMatchObject({ code: 'not_finite' })
})

test('More tokens than a request may have are refused', async () => {
  const long = Array<string>(160_000).fill('a').join(' ')
  await expect(rank([long, long], fake([]))).rejects.toMatchObject({ param: 'documents' })
})
