/** Digests of the options on which tabs that share a host must agree. They hide the API keys. */
import { computeDigest } from '../../values/digest.ts'
import type { OptionDigest } from '../../types/index.ts'
import type { HostSetup } from '../messages.ts'

/** Resolves with digests of the options that a host applies for every tab. */
export async function digestOptions(setup: HostSetup): Promise<OptionDigest> {
  const keys = setup.apiKeys && [...setup.apiKeys].sort()
  return {
    catalog: await digest(setup.scope, setup.catalog),
    apiKeys: await digest(setup.scope, keys),
    device: setup.device,
    upstreams: await digest(setup.scope, [...setup.upstreams].sort()),
    imageUrls: await digest(setup.scope, [...setup.imageUrls].sort()),
  }
}

/** Returns the names of the options that differ. */
export function findDifferences(one: OptionDigest, other: OptionDigest): string[] {
  const names = ['catalog', 'apiKeys', 'device', 'upstreams', 'imageUrls'] as const
  return names.filter((name) => one[name] !== other[name])
}

const digest = (salt: string, value: unknown): Promise<string> =>
  computeDigest('SHA-256', new TextEncoder().encode(`${salt}\n${JSON.stringify(value)}`))
