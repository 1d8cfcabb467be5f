/** Every write goes through one function, because that one checks the epoch. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** A write without `runWrite`: by a shortcut of the connection, or in a transaction opened elsewhere. */
const UNFENCED = /connection\s*\.(put|add|delete|clear)\(|\.transaction\([^)]*'readwrite'/

test('only database.ts opens a transaction that writes', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' })
  const writers = files
    .filter((path) => path.endsWith('.ts'))
    .filter((path) => UNFENCED.test(readFileSync(join('src', path), 'utf8')))
  expect(writers).toEqual(['store/database.ts'])
})
