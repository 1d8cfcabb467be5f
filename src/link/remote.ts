/** The asking side of a service: an object with its methods, which calls them over a link. */
import type { Caller, MethodKind, MethodTable, Remote } from '../types/index.ts'
import { call, stream } from './ask.ts'
import type { Link } from './link.ts'

/** Returns the service that answers the link. The table lists its methods. */
export function remote<Service extends object>(
  link: Link,
  methods: MethodTable<Service>,
): Remote<Service> {
  const asking = Object.entries<MethodKind>(methods).map(([method, kind]) => {
    const ask = async (...given: unknown[]): Promise<unknown> => {
      const args = given.slice(0, -1)
      const caller = given.at(-1) as Caller
      if (kind === 'call') return call(link, method, args, caller)
      return stream(link, method, args, kind === 'monitored', caller)
    }
    return [method, ask]
  })
  return Object.fromEntries(asking) as Remote<Service>
}
