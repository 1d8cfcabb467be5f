/**
 * Measures the space that is really free. Chromium's `estimate()` reports 10 GiB to every site, to
 * prevent identification (https://chromestatus.com/feature/5120752402685952). Extending a file by
 * `truncate()` counts at once, without a write, and fails if the file does not fit.
 */
import { withTimeout } from './timeouts.ts'
import { estimateQuota } from './quota.ts'

const MIB = 2 ** 20

/** Length of the largest file. Browsers count up to this exactly, and round longer files up. */
const MAX_PROBE_FILE_BYTES = 64 * MIB

const PROBE_FOLDER = 'inorigin-room'

/** Timeout in milliseconds for creating the files, since Chromium sometimes never answers. */
const PROBE_TIMEOUT_MS = 10_000

/**
 * Resolves with the number of bytes that can still be stored, at most `wanted`, to the mebibyte.
 * Resolves with `null` where the browser does not report it.
 */
export async function measureFreeBytes(
  wanted: number,
  timeoutMs = PROBE_TIMEOUT_MS,
): Promise<number | null> {
  const { usage, quota } = await estimateQuota()
  const estimated = usage === null || quota === null ? null : Math.max(0, quota - usage)
  if (estimated !== null && estimated < wanted) return estimated
  // One thread at a time: what one reserves would be missing for another. A thread that is frozen
  // meanwhile is not waited for.
  const timedOut = new AbortController()
  const reserving = navigator.locks
    .request(PROBE_FOLDER, { ifAvailable: true }, (lock) =>
      lock ? probeFreeBytes(wanted, timedOut.signal) : null,
    )
    .catch(() => null)
  const reserved = await withTimeout(timeoutMs, reserving, null)
  timedOut.abort()
  return reserved === null ? estimated : Math.min(reserved, wanted)
}

/** File handle of dedicated workers. TypeScript declares it only in its types for workers. */
interface SyncHandle {
  truncate(size: number): void
  getSize(): number
  close(): void
}

interface SyncFile {
  createSyncAccessHandle(): Promise<SyncHandle>
}

/** Reserves that much space, or as much as there is, and frees it again. */
async function probeFreeBytes(wanted: number, timedOut: AbortSignal): Promise<number | null> {
  if (!('createSyncAccessHandle' in (globalThis.FileSystemFileHandle?.prototype ?? {}))) return null
  const root = await navigator.storage.getDirectory()
  // A thread that ended in the middle may have left a folder.
  await root.removeEntry(PROBE_FOLDER, { recursive: true }).catch(() => undefined)
  const folder = await root.getDirectoryHandle(PROBE_FOLDER, { create: true })
  const handles: SyncHandle[] = []
  let reserved = 0
  try {
    for (let size = MAX_PROBE_FILE_BYTES; size >= MIB; size /= 2) {
      const enough = () => reserved + size > Math.ceil(wanted / MIB) * MIB
      while (!enough()) {
        // The caller stopped waiting, so the space must not be held any longer.
        timedOut.throwIfAborted()
        const file = await folder.getFileHandle(`${handles.length}`, { create: true })
        const handle = await (file as unknown as SyncFile).createSyncAccessHandle()
        handles.push(handle)
        if (!tryTruncate(handle, size)) break
        reserved += size
      }
    }
    return reserved
  } finally {
    for (const handle of handles) handle.close()
    await root.removeEntry(PROBE_FOLDER, { recursive: true }).catch(() => undefined)
  }
}

function tryTruncate(handle: SyncHandle, size: number): boolean {
  try {
    handle.truncate(size)
  } catch {
    return false
  }
  // Chromium's private windows refuse without an error.
  return handle.getSize() === size
}
