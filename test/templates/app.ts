/** Apps in temporary folders that have the packed package installed, and browsers that visit them. */
import { execFile, spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { BrowserContext, Page } from 'playwright'
import { expect, inject } from 'vitest'
import { findFile } from '../support/docs-code/blocks.ts'
import type { Recipe } from '../support/docs-code/recipes.ts'

const shell = process.platform === 'win32'
const run = promisify(execFile)

/** What npm and the tools of an app see: not that a test runs them. */
function environment(): NodeJS.ProcessEnv {
  const { VITEST: _, NODE_ENV: __, ...env } = process.env
  return { ...env, NO_COLOR: '1', FORCE_COLOR: '0', NEXT_TELEMETRY_DISABLED: '1' }
}

export interface App {
  folder: string
  write(path: string, text: string): void
  /** Returns the app in a folder below this one. */
  in(name: string): App
  /** Runs a command of the app, and resolves with what it printed. */
  run(command: string, ...args: string[]): Promise<string>
  /** Starts a server of the app, and resolves with its address when it prints that. */
  start(command: string, ...args: string[]): Promise<{ url: string; stop(): void }>
  remove(): void
}

/** Returns a folder, or else a new and empty one, as an app. */
export function openApp(folder = mkdtempSync(join(tmpdir(), 'inorigin-app-'))): App {
  return {
    folder,
    in: (name) => openApp(join(folder, name)),
    write(path, text) {
      const to = join(folder, path)
      mkdirSync(dirname(to), { recursive: true })
      writeFileSync(to, text)
    },
    async run(command, ...args) {
      const options = { cwd: folder, env: environment(), shell, maxBuffer: 2 ** 26 }
      const { stdout, stderr } = await run(command, args, options)
      return stdout + stderr
    },
    start: (command, ...args) => startServer(folder, command, args),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

const INSTALL = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']

/** Installs the packed package, and what the app's package.json names. */
export async function install(app: App): Promise<void> {
  await app.run('npm', 'install', ...INSTALL, inject('tarball'))
}

/** Returns a copy of an app of `apps/`, installed. */
export async function openFixture(name: string): Promise<App> {
  const app = openApp()
  cpSync(join(import.meta.dirname, 'apps', name), app.folder, { recursive: true })
  await install(app)
  return app
}

/** Returns the app of a recipe, installed: its folder in `apps/`, with the blocks of the page. */
export async function openRecipe({ name, page, files }: Recipe): Promise<App> {
  const app = openApp()
  cpSync(join(import.meta.dirname, 'apps', name), app.folder, { recursive: true })
  for (const file of files) app.write(file, findFile(page, file))
  await install(app)
  return app
}

function startServer(
  folder: string,
  command: string,
  args: readonly string[],
): Promise<{ url: string; stop(): void }> {
  const options = { cwd: folder, env: environment(), shell, detached: !shell }
  const child = spawn(command, args, options)
  // The command may be npm, which has the server as its child.
  const stop = () => {
    if (shell || child.pid === undefined) child.kill()
    else process.kill(-child.pid)
  }
  return new Promise((resolve, reject) => {
    let output = ''
    const hear = (chunk: Buffer): void => {
      output += chunk.toString()
      const [url] = /http:\/\/(localhost|127\.0\.0\.1):\d+\S*/.exec(output) ?? []
      if (url) resolve({ url: url.endsWith('/') ? url : `${url}/`, stop })
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', () => reject(new Error(`${command} ${args.join(' ')} ended:\n${output}`)))
  })
}

/** Opens a page and fails the test with what the page reports as an error. */
export async function visit(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage()
  page.on('pageerror', (error) => expect.fail(`${url}: ${error.stack ?? error.message}`))
  await page.goto(url, { timeout: 120_000 })
  return page
}

/** Asks the chat of a template, and resolves with the answer. */
export async function askChat(page: Page, question: string): Promise<string> {
  await page.getByText(/is ready/).waitFor({ timeout: 120_000 })
  const answers = page.locator('#log .assistant')
  const before = await answers.count()
  await page.getByPlaceholder('Ask something').fill(question)
  await page.getByRole('button', { name: 'Send' }).click()
  await expect.poll(() => answers.count(), { timeout: 120_000 }).toBe(before + 1)
  // The button is enabled again when the answer is whole.
  await page.locator('button:enabled').waitFor({ timeout: 120_000 })
  return (await answers.last().textContent()) ?? ''
}

/** Resolves when the library has kept all that a start without a network needs. */
export async function untilKept(page: Page): Promise<void> {
  const isComplete = async () => {
    const names = (await caches.keys()).filter((name) => name.endsWith(':assets'))
    const keys = await Promise.all(names.map(async (name) => (await caches.open(name)).keys()))
    return keys.flat().some(({ url }) => url.endsWith('files.json?inorigin=complete'))
  }
  await expect.poll(() => page.evaluate(isComplete), { timeout: 120_000 }).toBe(true)
}
