/** What two tabs must agree on to share a host, in a form that tells no key. */
import type { HostSetup } from '../link/protocol.ts'
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

async function digest(salt: string, value: unknown): Promise<string> {
  const bytes = new TextEncoder().encode(`${salt}\n${JSON.stringify(value)}`)
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
