/** Names this browser with its full version, under which verdicts on its GPU are stored. */

/** Parts of `NavigatorUAData`, which TypeScript's types lack and only Chromium has. */
interface UserAgentData {
  getHighEntropyValues(
    hints: readonly string[],
  ): Promise<{ fullVersionList?: readonly { brand: string; version: string }[] }>
}

/**
 * Resolves with the user agent string, and in Chromium with the full versions, because the string has
 * only the major one: https://www.chromium.org/updates/ua-reduction/
 */
export async function getBrowserName(): Promise<string> {
  const { userAgent, userAgentData } = navigator as Navigator & { userAgentData?: UserAgentData }
  const data = await userAgentData?.getHighEntropyValues(['fullVersionList']).catch(() => undefined)
  const versions = (data?.fullVersionList ?? []).map(({ brand, version }) => `${brand} ${version}`)
  return [userAgent, ...versions.toSorted()].join(' ')
}
