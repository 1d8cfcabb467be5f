/** Work that several wait for. */
import { expect, test } from 'vitest'
import { InoriginError } from '../../../src/error.ts'
import { createSingleFlight } from '../../../src/host/library/single-flight.ts'

const never = new AbortController().signal

/** Work that ends when it is told to, and how often it was begun and given up. */
function started() {
  const seen = { begun: 0, given: 0 }
  let end: (value: string) => void = () => {}
  let fail: (error: Error) => void = () => {}
  const work = (signal: AbortSignal) => {
    seen.begun += 1
    signal.addEventListener('abort', () => (seen.given += 1))
    return new Promise<string>((resolve, reject) => ([end, fail] = [resolve, reject]))
  }
  return { seen, work, end: (value: string) => end(value), fail: (error: Error) => fail(error) }
}

test('is done once for all who ask while it is under way, and anew for who asks later', async () => {
  const singleFlight = createSingleFlight()
  const { seen, work, end, fail } = started()
  const both = [singleFlight('a', work, never), singleFlight('a', work, never)]
  expect(seen.begun).toBe(1)
  end('done')
  expect(await Promise.all(both)).toEqual(['done', 'done'])
  const third = singleFlight('a', work, never)
  fail(new Error('no'))
  await expect(third).rejects.toThrow('no')
  expect(seen).toEqual({ begun: 2, given: 0 })
})

test('goes on while anyone waits, and is given up with the last', async () => {
  const singleFlight = createSingleFlight()
  const { seen, work, end } = started()
  const [one, other] = [new AbortController(), new AbortController()]
  const waits = [one, other].map(({ signal }) => singleFlight('a', work, signal))
  one.abort(new InoriginError('aborted', 'Enough.'))
  await expect(waits[0]).rejects.toMatchObject({ kind: 'aborted' })
  expect(seen).toEqual({ begun: 1, given: 0 })
  other.abort()
  await expect(waits[1]).rejects.toMatchObject({ kind: 'aborted' })
  expect(seen.given).toBe(1)
  const again = singleFlight('a', work, never)
  expect(seen.begun).toBe(2)
  end('done')
  expect(await again).toBe('done')
})

test('is not begun for who has given up', async () => {
  const { seen, work } = started()
  await expect(createSingleFlight()('a', work, AbortSignal.abort())).rejects.toMatchObject({
    kind: 'aborted',
  })
  expect(seen.begun).toBe(0)
})
