/** What a page of a web platform test has in place of the driver of a browser. */

/** Name of the function by which a page asks for a click of the user. */
export const BLESS = 'inoriginBless'

/** Beginning of the line of the console with the results. */
export const REPORT = 'inorigin web platform tests: '

/** Result of one test. */
export interface WptResult {
  name: string
  /** 0: passed; 1: failed; 2: timed out; 3: not run; 4: optional and not supported. */
  status: number
  message: string | null
}

/** What the page tells when its tests have ended. */
export interface WptReport {
  /** 0: ok; 1: error outside of a test; 2: timed out. */
  status: number
  message: string | null
  tests: WptResult[]
}

/**
 * Script that runs between the harness and the tests. It lets tests take as long as they need,
 * because a busy machine answers slowly.
 */
export const BOOTSTRAP = `
setup({ explicit_timeout: true })
globalThis.test_driver = {
  async bless(intent, action) {
    await ${BLESS}()
    return action?.()
  },
}
globalThis.test_driver_internal = {}
add_completion_callback((tests, { status, message }) => {
  const results = tests.map(({ name, status, message }) => ({ name, status, message }))
  console.log('${REPORT}' + JSON.stringify({ status, message, tests: results }))
})
`
