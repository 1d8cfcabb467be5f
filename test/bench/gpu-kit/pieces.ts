/** Packs a folder into pieces that `unpack.sh` joins. */
import { execFileSync } from 'node:child_process'
import {
  createReadStream,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** Returns the folder of a part, counted from 1. */
export const partOf = (out: string, part: number): string => join(out, `part-${part}`)

/**
 * Packs the content of a folder with tar and gzip, and writes pieces of at most so many bytes into
 * `part-1`, `part-2` and so on. Resolves with their number.
 */
export async function packFolder(folder: string, out: string, bytes: number): Promise<number> {
  const work = mkdtempSync(join(tmpdir(), 'inorigin-kit-archive-'))
  try {
    const archive = join(work, 'kit.tar.gz')
    execFileSync('tar', ['-czf', archive, '-C', folder, '.'])
    return await split(archive, out, bytes)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

async function split(archive: string, out: string, bytes: number): Promise<number> {
  const { size } = statSync(archive)
  const count = Math.ceil(size / bytes)
  for (let part = 1; part <= count; part += 1) {
    const folder = partOf(out, part)
    mkdirSync(folder, { recursive: true })
    const start = (part - 1) * bytes
    const end = Math.min(size, start + bytes) - 1
    await pipeline(
      createReadStream(archive, { start, end }),
      createWriteStream(join(folder, `kit.tar.gz.${part}-of-${count}`)),
    )
  }
  return count
}
