/** What several clients have and say in the same words. */
import { ensure, equal } from '../judge.ts'

/** All pages of a listing, with each model once. */
export async function judgeModels(
  list: AsyncIterable<{ id: string }>,
  model: string,
): Promise<void> {
  const ids: string[] = []
  for await (const { id } of list) ids.push(id)
  ensure(ids.includes(model), `${model} is not listed`)
  equal(new Set(ids).size, ids.length, 'how many models there are')
}

/** As many vectors as texts, of numbers, not all the same. */
export function judgeVectors(vectors: readonly (readonly number[])[], texts: number): void {
  equal(vectors.length, texts, 'how many vectors there are')
  const [length = 0] = vectors.map((vector) => vector.length)
  for (const vector of vectors) {
    ensure(vector.length === length && length > 8, `a vector of ${vector.length}`)
    ensure(vector.every(Number.isFinite), 'a vector of what are no numbers')
    ensure(
      vector.some((value) => value !== 0),
      'a vector of nothing',
    )
  }
  ensure(JSON.stringify(vectors[0]) !== JSON.stringify(vectors[1]), 'two texts have one vector')
}
