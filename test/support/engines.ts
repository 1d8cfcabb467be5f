/** The browser engines that `npm run test:browsers` starts, each without debugger and driver. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromiumArgs, ensureChromium } from '../setup/chromium.ts'
import { ensureFirefox } from '../setup/firefox.ts'
import { ensureWebKit } from '../setup/webkit.ts'

/** A browser that starts with a profile of its own, and its first page. */
export interface Engine {
  name: 'Chromium' | 'Firefox' | 'WebKitGTK'
  /** Returns the path of the program, which is installed first if it is missing. */
  ensure(): string
  /** Prepares the folder of a new profile and returns the arguments of the command line. */
  argsFor(profile: string, url: string): string[]
  /** Environment variables of a profile, beside those of the test. */
  env(profile: string): Record<string, string>
  /** `true` if the program needs a display. The others are headless. */
  needsDisplay: boolean
}

export const chromium: Engine = {
  name: 'Chromium',
  ensure: () => ensureChromium(),
  argsFor: (profile, url) => [
    ...chromiumArgs(),
    '--headless',
    '--no-first-run',
    '--disable-popup-blocking',
    `--user-data-dir=${profile}`,
    url,
  ],
  env: () => ({}),
  needsDisplay: false,
}

/** Preferences that keep Firefox quiet and let pages open tabs. */
const PREFERENCES = {
  'browser.shell.checkDefaultBrowser': false,
  'dom.disable_open_during_load': false,
  'dom.popup_maximum': 1_000,
  'datareporting.policy.dataSubmissionEnabled': false,
}

export const firefox: Engine = {
  name: 'Firefox',
  ensure: ensureFirefox,
  argsFor(profile, url) {
    const lines = Object.entries(PREFERENCES).map(
      ([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`,
    )
    writeFileSync(join(profile, 'user.js'), lines.join(''))
    return ['--headless', '--no-remote', '--profile', profile, url]
  },
  env: () => ({}),
  needsDisplay: false,
}

export const webkit: Engine = {
  name: 'WebKitGTK',
  ensure: ensureWebKit,
  argsFor: (_profile, url) => ['--javascript-can-open-windows-automatically=true', url],
  // MiniBrowser has no option for its profile, which lies in these folders.
  env: (profile) => ({
    HOME: profile,
    XDG_CACHE_HOME: join(profile, 'cache'),
    XDG_CONFIG_HOME: join(profile, 'config'),
    XDG_DATA_HOME: join(profile, 'data'),
    GDK_BACKEND: 'x11',
  }),
  needsDisplay: true,
}
