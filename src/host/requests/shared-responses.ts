/**
 * The stored responses of a host, of which every page has a copy: the next host takes them over
 * (`host/tab/response-copies.ts`).
 */
import type { CopyMessage, ResponseHandover } from '../messages.ts'
import type { Caller } from '../../types/index.ts'
import { createResponseStore, type ResponseMethods } from './response-store.ts'

/** Creates the response methods of a host that takes over the responses of an earlier one. */
export function createSharedResponses(
  authorize: (caller: Caller) => void,
  { channelName, copies }: ResponseHandover,
): ResponseMethods {
  const channel = new BroadcastChannel(channelName)
  const publish = (message: CopyMessage): void => channel.postMessage(message)
  const store = createResponseStore(authorize, {
    initial: copies,
    onStored: (copy) => publish({ type: 'stored', copies: [copy] }),
    onRemoved: (ids) => publish({ type: 'removed', ids }),
  })
  channel.onmessage = ({ data }: MessageEvent<CopyMessage>) => {
    if (data.type === 'join') publish({ type: 'stored', copies: store.list() })
  }
  return store.methods
}
