/** Stores a resource from a file that the user chose. */
import { createSHA256 } from 'hash-wasm'
import { InoriginError } from '../error.ts'
import type { ImportProgress, Tag } from '../types/index.ts'
import { Assembly } from './assembly.ts'
import type { Database } from './database.ts'
import { CHUNK_BYTES, type WantedResource } from './db.ts'
import { toDownloadLockName } from './download.ts'
import { readStored, storeMissing } from './ensure.ts'
import type { EvictionOptions } from './eviction.ts'
import { acquireUseLocks, runExclusive } from './exclusive.ts'
import { trackDeletion } from './pending-deletions.ts'
import {
  countStoredBytes,
  findResourceRecord,
  readResource,
  removeResource,
  touchResources,
} from './resources.ts'
import { createProgressMeter, startProgressReports } from './transfer-rate.ts'

const READ_PIECE_BYTES = 4 * 1024 * 1024

export interface ImportFileOptions {
  signal: AbortSignal
  tag: Tag
  onBytes: (bytes: number) => void
}

/** Reads bytes of a file. Rejects with `invalid_request` if that fails, as after a change. */
export async function readPiece(
  file: Blob,
  start = 0,
  end = file.size,
): Promise<Uint8Array<ArrayBuffer>> {
  try {
    return new Uint8Array(await file.slice(start, end).arrayBuffer())
  } catch (cause) {
    throw fileChangedError(file instanceof File ? file.name : 'A file', cause)
  }
}

/** Returns the error for a file that changed after the user chose it. */
export function fileChangedError(path: string, cause?: unknown): InoriginError {
  const what = `${path} was changed or removed while it was being read. Choose it again.`
  const details = { code: 'import_changed', param: 'files', cause } as const
  return new InoriginError('invalid_request', what, details)
}

/**
 * Stores a file as that resource, except for the chunks that are already stored. Resolves with
 * `false` if it is not that resource, as after a change of the file. Then nothing of it is stored.
 */
export function importFile(
  database: Database,
  wanted: WantedResource,
  file: Blob,
  { signal, tag, onBytes }: ImportFileOptions,
): Promise<boolean> {
  const lock = toDownloadLockName(database, wanted.sha256)
  return runExclusive(lock, { signal }, async (exclusive) => {
    if (await readResource(database, wanted.sha256)) return true
    const options = { chunkBytes: CHUNK_BYTES, signal: exclusive, tag }
    const assembly = await Assembly.open(database, wanted, options)
    for (;;) {
      while (assembly.position < wanted.bytes) {
        exclusive.throwIfAborted()
        const { position, end } = assembly
        const content = await readPiece(file, position, Math.min(position + READ_PIECE_BYTES, end))
        if (content.length === 0 || (await assembly.write(content)))
          return deleteMismatched(database, wanted.sha256)
        onBytes(content.length)
      }
      if (!(await assembly.finish())) return true
      if (!assembly.joined) return deleteMismatched(database, wanted.sha256)
      // The chunks that an earlier download stored were of another file.
      await assembly.restart(null)
    }
  })
}

async function deleteMismatched(database: Database, sha256: string): Promise<false> {
  const record = await findResourceRecord(database, sha256)
  const bytes = record ? countStoredBytes(record) : 0
  await trackDeletion(database, bytes, () => removeResource(database, sha256))
  return false
}

export interface ImportOptions extends EvictionOptions {
  tag: Tag
  onProgress: (progress: ImportProgress) => void
  /** Called when something must be written and there is space for it. */
  onWrite?: () => void
}

/** File and the resource that it is. */
export interface FileMatch {
  path: string
  file: Blob
  resource: WantedResource
}

/** Number of files that are written at the same time. All come from one disk. */
const MAX_PARALLEL_WRITES = 2

/** Resolves with the sha256 of each file, in the same order. They may be larger than the memory. */
export const digestFiles = (
  files: readonly Blob[],
  { signal, ...options }: ImportOptions,
): Promise<string[]> =>
  withCheckProgress(files, options, async (onBytes) => {
    const hash = await createSHA256()
    const digests: string[] = []
    for (const file of files) {
      hash.init()
      for (let start = 0; start < file.size; start += READ_PIECE_BYTES) {
        signal.throwIfAborted()
        const piece = await readPiece(file, start, start + READ_PIECE_BYTES)
        hash.update(piece)
        onBytes(piece.length)
      }
      digests.push(hash.digest())
    }
    return digests
  })

/** Runs `read` and reports the bytes that it passes to `onBytes` as the phase `check`. */
export async function withCheckProgress<T>(
  files: readonly Blob[],
  { tag, onProgress }: Pick<ImportOptions, 'tag' | 'onProgress'>,
  read: (onBytes: (bytes: number) => void) => Promise<T>,
): Promise<T> {
  const bytes = files.reduce((sum, file) => sum + file.size, 0)
  const meter = createProgressMeter(tag, 'check', bytes)
  const stopReports = startProgressReports(meter.progress, onProgress)
  const found = await read(meter.add).finally(stopReports)
  onProgress(meter.progress())
  return found
}

/**
 * Stores the files that are not stored yet. Resolves with the number of bytes written. Rejects with
 * `unavailable` before the first byte if they do not fit, with `invalid_request` if a file changed
 * since it was matched, and with `aborted`. Complete chunks stay stored.
 */
export async function importFiles(
  database: Database,
  matches: readonly FileMatch[],
  options: ImportOptions,
): Promise<number> {
  const { tag, signal, onProgress, onWrite } = options
  const files = new Map(matches.map((match) => [match.resource.sha256, match]))
  const release = await acquireUseLocks(database, files.keys(), signal)
  try {
    const wanted = matches.map(({ resource }) => resource)
    const stored = await readStored(database, wanted)
    const { missing, storedBytes } = stored
    const countStored = (sha256: string): number => storedBytes.get(sha256) ?? 0
    const total = missing.reduce((sum, one) => sum + one.bytes - countStored(one.sha256), 0)
    const meter = createProgressMeter(tag, 'store', total)
    const { progress } = meter
    const how = { ...options, limit: MAX_PARALLEL_WRITES, onStart: onWrite, progress }
    await storeMissing(database, stored, how, async (resource, shared) => {
      const { sha256 } = resource
      const { path, file } = files.get(sha256) as FileMatch
      const onBytes = (bytes: number) => {
        meter.add(bytes)
        storedBytes.set(sha256, countStored(sha256) + bytes)
      }
      if (!(await importFile(database, resource, file, { signal: shared, tag, onBytes })))
        throw fileChangedError(path)
    })
    await touchResources(database, files.keys(), tag)
    onProgress(progress())
    return total
  } finally {
    release()
  }
}
