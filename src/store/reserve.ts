/**
 * How much really fits. `estimate()` does not tell in Chromium: it grants every site the same 10 GiB,
 * lest the true number identify someone (https://chromestatus.com/feature/5120752402685952). A file that
 * is made longer is counted at once, though no byte is written, and refused when it does not fit.
 */
import { within } from './patience.ts'
import { estimateRoom } from './room.ts'

const MIB = 2 ** 20

/** Lengths up to this are counted as they are; longer ones are rounded up to a multiple of it. */
const LARGEST = 64 * MIB

const FOLDER = 'inorigin-room'

/** Milliseconds for the files to be made; Chromium has been seen not to answer at all. */
const PATIENCE = 10_000

/**
 * Bytes that can still be stored, as far as they are asked for, and to the mebibyte; `null` where the
 * browser tells nothing.
 */
export async function freeBytes(wanted: number, patience = PATIENCE): Promise<number | null> {
  const { usage, quota } = await estimateRoom()
  const estimated = usage === null || quota === null ? null : Math.max(0, quota - usage)
  if (estimated !== null && estimated < wanted) return estimated
  // One at a time, as what one thread reserves another would miss. A thread that is frozen in the middle
  // is not waited for.
  const late = new AbortController()
  const reserving = navigator.locks
    .request(FOLDER, { ifAvailable: true }, (lock) => (lock ? reserve(wanted, late.signal) : null))
    .catch(() => null)
  const reserved = await within(patience, reserving, null)
  late.abort()
  return reserved === null ? estimated : Math.min(reserved, wanted)
}

/** A file as dedicated workers open it; TypeScript knows it in its types for workers alone. */
interface SyncHandle {
  truncate(size: number): void
  getSize(): number
  close(): void
}

interface SyncFile {
  createSyncAccessHandle(): Promise<SyncHandle>
}

/** Takes up that room, or what there is of it, and frees it again. */
async function reserve(wanted: number, late: AbortSignal): Promise<number | null> {
  if (!('createSyncAccessHandle' in (globalThis.FileSystemFileHandle?.prototype ?? {}))) return null
  const root = await navigator.storage.getDirectory()
  // One that was left by a thread which ended in the middle.
  await root.removeEntry(FOLDER, { recursive: true }).catch(() => undefined)
  const folder = await root.getDirectoryHandle(FOLDER, { create: true })
  const handles: SyncHandle[] = []
  let reserved = 0
  try {
    for (let size = LARGEST; size >= MIB; size /= 2) {
      const enough = () => reserved + size > Math.ceil(wanted / MIB) * MIB
      while (!enough()) {
        // Nobody waits any more: what is taken up here is missed elsewhere.
        late.throwIfAborted()
        const file = await folder.getFileHandle(`${handles.length}`, { create: true })
        const handle = await (file as unknown as SyncFile).createSyncAccessHandle()
        handles.push(handle)
        if (!fits(handle, size)) break
        reserved += size
      }
    }
    return reserved
  } finally {
    for (const handle of handles) handle.close()
    await root.removeEntry(FOLDER, { recursive: true }).catch(() => undefined)
  }
}

function fits(handle: SyncHandle, size: number): boolean {
  try {
    handle.truncate(size)
  } catch {
    return false
  }
  // A private window of Chromium refuses without a word.
  return handle.getSize() === size
}
