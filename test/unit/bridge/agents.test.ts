/**
 * Coding agents as they come from the npm registry, through the bridge: each does one task with its
 * default tools. A server writes the answers, so that no model decides the outcome.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Upstream } from '../../../src/catalog/upstream-schema.ts'
import { openHost } from '../../support/routed-host.ts'
import {
  chunkOf,
  DONE,
  sendEvents,
  startUpstream,
  type UpstreamServer,
} from '../../support/upstream-server.ts'
import { model } from '../catalog/entries.ts'
import { closeAll, open } from './open-bridge.ts'

const run = promisify(execFile)

const SLOW = { tags: ['slow'], timeout: 600_000 }
const TAG = '@acme/large'
const SECRET = 'quokka-42'
const PROMPT = 'Read the file fact.txt and say the secret word.'

interface Agent {
  title: string
  /** Package with its version. */
  name: string
  /** File below `node_modules` that starts it. */
  program: string
  args: string[]
  /** Files that it reads below its home folder, which is its working folder, too. */
  files?: (url: string) => Record<string, string>
  env?: (url: string) => Record<string, string>
  /** Name of its tool that reads files or runs commands, and the arguments that read a file. */
  tool: string
  toArguments: (path: string) => object
  /** Texts that it prints while it works. */
  prints?: string[]
}

const PLATFORM = `${process.platform}-${process.arch}`

const CODEX = {
  name: '@openai/codex@0.171.0',
  // A script, which starts the program of this platform.
  program: '@openai/codex/bin/codex.js',
  tool: 'exec_command',
  toArguments: (path: string) => ({ cmd: `cat ${path}` }),
}

const CODEX_ARGS = ['exec', '--skip-git-repo-check', '-s', 'danger-full-access', '-m', TAG, PROMPT]

const AGENTS: Agent[] = [
  {
    title: 'Claude Code',
    name: '@anthropic-ai/claude-code@2.1.332',
    program: `@anthropic-ai/claude-code-${PLATFORM}/claude`,
    args: ['-p', PROMPT],
    env: (url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_AUTH_TOKEN: 'none',
      ANTHROPIC_MODEL: TAG,
      ANTHROPIC_SMALL_FAST_MODEL: TAG,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
    tool: 'Read',
    toArguments: (file_path) => ({ file_path }),
  },
  {
    ...CODEX,
    title: 'Codex with a provider of its own',
    args: CODEX_ARGS,
    files: (url) => ({
      '.codex/config.toml': `model_provider = "tab"\n[model_providers.tab]\nname = "tab"\nbase_url = "${url}/v1"\n`,
    }),
  },
  {
    ...CODEX,
    title: 'Codex over a WebSocket, which has the conversation compacted',
    args: CODEX_ARGS,
    // The server states 9,000 tokens, so Codex compacts after the first answer.
    files: (url) => ({
      '.codex/config.toml': `openai_base_url = "${url}/v1"\nmodel_auto_compact_token_limit = 8000\n`,
    }),
    env: () => ({ CODEX_API_KEY: 'none', RUST_LOG: 'codex_api=info' }),
    prints: ['successfully connected to Responses WebSocket', 'context compacted'],
  },
  {
    title: 'opencode',
    name: 'opencode-ai@1.18.33',
    program: `opencode-${PLATFORM}/bin/opencode`,
    args: ['run', PROMPT],
    files: (url) => ({
      'opencode.json': JSON.stringify({
        autoupdate: false,
        share: 'disabled',
        model: `tab/${TAG}`,
        small_model: `tab/${TAG}`,
        provider: {
          tab: {
            npm: '@ai-sdk/openai-compatible',
            options: { baseURL: `${url}/v1` },
            models: { [TAG]: { limit: { context: 200_000, output: 32_000 } } },
          },
        },
      }),
    }),
    tool: 'read',
    toArguments: (filePath) => ({ filePath }),
  },
]

interface ChatBody {
  messages: Array<{ role: string; content: unknown }>
  tools?: Array<{ function: { name: string } }>
}

/** Folder with the packages, which stay for the next run. */
const PACKAGES = join(import.meta.dirname, '../../../node_modules/.cache/inorigin-agents')

let home: string
let server: UpstreamServer
/** Number of tools of each request. */
const tools: number[] = []
let agent: Agent

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'inorigin-agents-'))
  server = await startUpstream((response, { body }) => {
    const { messages, tools: offered = [] } = body as unknown as ChatBody
    tools.push(offered.length)
    const [found] = new RegExp(SECRET).exec(JSON.stringify(messages)) ?? []
    const usage = { prompt_tokens: 9_000, completion_tokens: 5 }
    const end = [{ choices: [], usage }, DONE]
    if (!found && offered.some((tool) => tool.function.name === agent.tool)) {
      const text = JSON.stringify(agent.toArguments(join(home, 'fact.txt')))
      const call = {
        index: 0,
        id: 'call_1',
        type: 'function',
        function: { name: agent.tool, arguments: text },
      }
      sendEvents(response, [chunkOf({ tool_calls: [call] }), chunkOf({}, 'tool_calls'), ...end])
    } else {
      sendEvents(response, [chunkOf({ content: `The word is ${found}.` }, 'stop'), ...end])
    }
    response.end()
  })
})
afterEach(closeAll)
afterAll(async () => {
  await server?.close()
  if (home) await rm(home, { recursive: true, force: true })
})

/** Installs the package, unless it is there. Its own scripts would only copy the program. */
async function install({ name, program }: Agent): Promise<string> {
  const path = join(PACKAGES, 'node_modules', program)
  await mkdir(PACKAGES, { recursive: true })
  if (!existsSync(path)) {
    const options = ['--prefix', PACKAGES, '--ignore-scripts', '--no-audit', '--no-fund']
    await run('npm', ['install', ...options, name])
  }
  return path
}

function openServedHost() {
  const upstream: Upstream = {
    id: 'server',
    url: server.url,
    model: 'far',
    when: ['always'],
    forwardAuthorization: false,
    continues: false,
    unsupported: [],
    refusal: null,
  }
  const upstreams = [upstream]
  return openHost(model({ tag: TAG, maxInputTokens: 200_000, maxOutputTokens: 32_000, upstreams }))
}

describe.each(AGENTS)('$title', SLOW, (each) => {
  test('does a task with its default tools, and every request has the status 200', async () => {
    agent = each
    tools.length = 0
    const program = await install(agent)
    const host = openServedHost()
    const bridge = await open()
    const statuses: number[] = []
    await bridge.lend(async (request) => {
      const response = await host.fetch(request)
      statuses.push(response.status)
      return response
    })
    const { url } = bridge.server
    const files = { 'fact.txt': `The secret word is ${SECRET}.\n`, ...agent.files?.(url) }
    await rm(join(home, '.codex'), { recursive: true, force: true })
    for (const [name, text] of Object.entries(files)) {
      await mkdir(dirname(join(home, name)), { recursive: true })
      await writeFile(join(home, name), text)
    }
    const started = run(program, agent.args, {
      cwd: home,
      env: { PATH: process.env['PATH'], HOME: home, ...agent.env?.(url) },
      timeout: 120_000,
    })
    started.child.stdin?.end()
    const { stdout, stderr } = await started
    for (const line of each.prints ?? []) expect(stderr).toContain(line)
    expect(stdout).toContain(`The word is ${SECRET}.`)
    expect(statuses.length).toBeGreaterThanOrEqual(2)
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(Math.max(...tools)).toBeGreaterThanOrEqual(10)
  })
})
