/** The policy of the document in which the playground runs code. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const PAGE = readFileSync(join(import.meta.dirname, '../../../demo/sandbox.html'), 'utf8')

test('the policy of the sandbox names the digest of its script, and allows no request', () => {
  const [, script = ''] = /<script>([^]*)<\/script>/.exec(PAGE) ?? []
  const digest = createHash('sha256').update(script).digest('base64')
  const [, policy = ''] = /content="([^"]*)"/.exec(PAGE) ?? []
  expect(policy.split('; ')).toEqual([
    "default-src 'none'",
    `script-src 'sha256-${digest}' 'unsafe-eval'`,
    'worker-src blob:',
    "base-uri 'none'",
    "form-action 'none'",
  ])
})
