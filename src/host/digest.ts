/** What two tabs must agree on to share a host, in a form that tells no key. */
import type { HostSetup } from '../link/protocol.ts'
import { digestOf } from '../store/hash.ts'
import type { OptionDigest } from '../types/index.ts'

/** Digests of the options that a host applies for every tab. */
export async function digestOptions(setup: HostSetup): Promise<OptionDigest> {
  const keys = setup.apiKeys && [...setup.apiKeys].sort()
  return {
    catalog: await digest(setup.scope, setup.catalog),
    apiKeys: await digest(setup.scope, keys),
    device: setup.device,
  }
}

/** The names of the options in which the two differ. */
export function differences(one: OptionDigest, other: OptionDigest): string[] {
  const names = ['catalog', 'apiKeys', 'device'] as const
  return names.filter((name) => one[name] !== other[name])
}

const digest = (salt: string, value: unknown): Promise<string> =>
  digestOf('SHA-256', new TextEncoder().encode(`${salt}\n${JSON.stringify(value)}`))
