/** `npm run ask`, as it is run from a terminal. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { circlePng } from '../support/image-files.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Time in milliseconds after which a command that does not end is stopped. Its exit code is then `null`. */
const ASK_TIMEOUT_MS = 120_000

interface Outcome {
  code: number | null
  stdout: string
  stderr: string
  /** How many pieces the answer came in. */
  pieces: number
}

function ask(args: readonly string[], onPiece = (): void => {}): Promise<Outcome> {
  const { VITEST: _, ...env } = process.env
  const child = spawn(process.execPath, ['.ci/build/run.mjs', 'demo/ask.ts', ...args], {
    cwd: ROOT,
    env,
    timeout: ASK_TIMEOUT_MS,
  })
  const outcome: Outcome = { code: null, stdout: '', stderr: '', pieces: 0 }
  child.stdout.on('data', (data: Buffer) => {
    outcome.stdout += data.toString()
    outcome.pieces += 1
    onPiece()
  })
  child.stderr.on('data', (data: Buffer) => (outcome.stderr += data.toString()))
  return new Promise((resolve) => child.on('close', (code) => resolve({ ...outcome, code })))
}

test.each(['completions', 'messages'])('answers in style %s', { tags: ['slow'] }, async (style) => {
  const args = ['--url', inject('demo'), '--style', style, '--device', 'wasm']
  const { code, stdout, stderr } = await ask(['Who are you?', ...args])
  expect(stderr).toBe('')
  expect(code).toBe(0)
  expect(stdout.length).toBeGreaterThan(1)
  expect(stdout.endsWith('\n')).toBe(true)
})

test('asks the model that sees about a picture', { tags: ['slow'] }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'inorigin-ask-'))
  try {
    const file = join(folder, 'circle.png')
    writeFileSync(file, circlePng([214, 39, 40]))
    const args = ['--url', inject('demo'), '--device', 'wasm', '--image', file]
    const { code, stdout, stderr } = await ask(['What color is the circle?', ...args])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/red/i)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('prints each token when it comes', async () => {
  const slow = await serveSlowAnswer(['One', ' two', ' three', '.'])
  try {
    const { code, stdout, pieces } = await ask(['Count to three.', '--url', slow.url], slow.next)
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'One two three.\n' })
    expect(pieces).toBeGreaterThanOrEqual(4)
  } finally {
    slow.close()
  }
})

test('says what failed, and fails', { tags: ['slow'] }, async () => {
  const { code, stdout, stderr } = await ask(['Hello', '--url', 'http://127.0.0.1:9/'])
  expect(code).toBe(1)
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^The answer failed: .*ERR_/)
})

test('says how it is used', { tags: ['slow'] }, async () => {
  const { code, stderr } = await ask(['--style', 'letters', 'Hello'])
  expect(code).toBe(1)
  expect(stderr).toMatch(/Unknown style "letters".*Usage: npm run ask -- /s)
})

interface SlowAnswer {
  url: string
  /** Sends the next token. */
  next: () => void
  close: () => void
}

/** Serves a page like the playground's, whose answer sends a token only after `next` was called. */
async function serveSlowAnswer(tokens: readonly string[]): Promise<SlowAnswer> {
  let next = (): void => {}
  const page =
    '<script>inorigin = { baseURL: origin + "/v1", models: { load: async () => {} } }</script>'
  const server = createServer(async (request, response) => {
    if (request.url?.startsWith('/?'))
      return response.setHeader('content-type', 'text/html').end(page)
    if (request.url === '/v1/models') return response.end('{"data":[{"id":"@test/slow"}]}')
    if (request.url !== '/v1/chat/completions') return response.writeHead(404).end()
    for (const content of tokens) {
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`)
      await new Promise<void>((resolve) => (next = resolve))
    }
    return response.end('data: [DONE]\n\n')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    next: () => next(),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
