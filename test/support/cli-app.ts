/** An app in a temporary folder, and the built command in it. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../..')
export const CLI = join(ROOT, 'dist/cli.js')

export interface Outcome {
  code: number | null
  out: string
  err: string
}

export class CliApp {
  readonly folder = mkdtempSync(join(tmpdir(), 'inorigin-app-'))

  constructor() {
    this.put('package.json', '{\n    "name": "app"\n}\n')
  }

  /** Runs the command in the app, or in a folder of it. */
  inorigin(...args: readonly string[]): Outcome {
    return this.run(CLI, args)
  }

  run(cli: string, args: readonly string[], cwd = this.folder): Outcome {
    const options = { cwd, encoding: 'utf8' } as const
    const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], options)
    return { code: status, out: stdout, err: stderr.replace(PROGRESS_LINES, '') }
  }

  /** Runs `inorigin init public`. Throws if it fails. */
  init(...options: readonly string[]): void {
    const { code, err } = this.inorigin('init', 'public', ...options)
    if (code !== 0) throw new Error(err)
  }

  path = (path: string): string => join(this.folder, path)

  put(path: string, content: string | Uint8Array): void {
    mkdirSync(dirname(this.path(path)), { recursive: true })
    writeFileSync(this.path(path), content)
  }

  get = (path: string): string => readFileSync(this.path(path), 'utf8')

  has = (path: string): boolean => existsSync(this.path(path))

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Lines of progress, which a command prints after 5 s, so on a busy machine only. */
const PROGRESS_LINES = /^.*(?: \.\.\.|: \d+ % of .*)\n/gm
