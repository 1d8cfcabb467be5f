/** The connected tabs, and the choice among them. */
import type { TabCapability } from '../../bridge/protocol.ts'
import { InoriginError } from '../../error.ts'
import type { TabResponse } from './exchange.ts'
import type { ClientRequest, Tab } from './tab.ts'

/** Maximum number of connected tabs. */
export const MAX_TABS = 16

export interface Tabs {
  readonly size: number
  /** Adds the tab until it is closed. */
  add(tab: Tab): void
  /**
   * Resolves with the response of the most capable tab. If a tab is closed before it has sent a
   * status, the next one is asked.
   *
   * @throws InoriginError `unavailable` with `bridge_no_tab` or `bridge_tab_gone`.
   */
  request(request: ClientRequest, signal: AbortSignal): Promise<TabResponse>
}

export function createTabs(): Tabs {
  const tabs = new Set<Tab>()
  return {
    get size() {
      return tabs.size
    },
    add(tab) {
      tabs.add(tab)
      void tab.closed.then(() => tabs.delete(tab))
    },
    async request(request, signal) {
      let failure = noTabError()
      // A tab that connects after the request began may answer it, too.
      for (const tried = new Set<Tab>(); ;) {
        const [tab] = [...tabs].filter((one) => !tried.has(one)).toSorted(compareTabs)
        if (!tab) throw failure
        tried.add(tab)
        try {
          return await tab.request(request, signal)
        } catch (error) {
          const isGone = error instanceof InoriginError && error.code === 'bridge_tab_gone'
          if (!isGone) throw error
          failure = error
        }
      }
    },
  }
}

/** Orders tabs by capability. The sort is stable, so the first of equal tabs answers. */
function compareTabs(one: Tab, other: Tab): number {
  const [first, second] = [toRanks(one.capability), toRanks(other.capability)]
  const at = first.findIndex((rank, index) => rank !== second[index])
  return (second[at] ?? 0) - (first[at] ?? 0)
}

/** A software GPU is slower than WASM, so it counts as no GPU. */
function toRanks({ gpu, gpuBufferBytes, memoryBytes, threads }: TabCapability): number[] {
  return gpu === 'hardware'
    ? [1, gpuBufferBytes, memoryBytes, threads]
    : [0, 0, threads, memoryBytes]
}

function noTabError(): InoriginError {
  const what = 'No tab is connected to the bridge.'
  const todo = 'Open the page that `inorigin bridge` printed, or lend a tab with server.bridge().'
  return new InoriginError('unavailable', `${what} ${todo}`, {
    code: 'bridge_no_tab',
    retryAfter: 2,
  })
}
