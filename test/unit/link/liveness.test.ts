/** Death notices: who is told, and who is not any more. */
import { expect, test } from 'vitest'
import { watchLivenessLock } from '../../../src/link/liveness.ts'
import { createLocks } from '../../support/locks.ts'

test('those who watch are told of a death once, those who stopped are not', async () => {
  const locks = createLocks()
  let die = () => {}
  const life = new Promise<void>((resolve) => (die = resolve))
  const held = locks.request('life', () => life)
  const told: string[] = []
  const [staying, leaving] = [new AbortController(), new AbortController()]
  watchLivenessLock(locks, 'life', staying.signal, () => told.push('stays'))
  watchLivenessLock(locks, 'life', leaving.signal, () => told.push('leaves'))
  watchLivenessLock(locks, 'life', AbortSignal.abort(), () => told.push('never came'))
  leaving.abort()
  die()
  await held
  await expect.poll(() => told).toContain('stays')
  expect(told).toEqual(['stays'])
})
