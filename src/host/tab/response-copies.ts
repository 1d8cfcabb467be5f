/**
 * Copies of the stored responses, which every page keeps in memory. A page that becomes the host
 * passes them to its worker. So responses outlive the host that stored them, and none is written to
 * the disk.
 */
import type { CopyMessage, ResponseCopy, ResponseHandover } from '../messages.ts'

export interface ResponseCopies {
  /** Joins the channel of the hosts and requests the responses that are already stored. */
  open(): void
  /** Returns what the worker of this page needs when it starts. */
  handOver(): ResponseHandover
  /** Leaves the channel and forgets the copies. */
  close(): void
}

export function createResponseCopies(channelName: string): ResponseCopies {
  const copies = new Map<string, ResponseCopy>()
  let channel: BroadcastChannel | undefined
  return {
    open() {
      if (channel) return
      channel = new BroadcastChannel(channelName)
      channel.onmessage = ({ data }: MessageEvent<CopyMessage>) => {
        if (data.type === 'stored') {
          for (const copy of data.copies) copies.set(copy.response.id, copy)
        } else if (data.type === 'removed') {
          for (const id of data.ids) copies.delete(id)
        }
      }
      channel.postMessage({ type: 'join' } satisfies CopyMessage)
    },
    handOver: () => ({ channelName, copies: [...copies.values()] }),
    close() {
      channel?.close()
      channel = undefined
      copies.clear()
    },
  }
}
