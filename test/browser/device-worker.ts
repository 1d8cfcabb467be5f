/** Probes the device in a dedicated worker, as the host does. */
import { probeDevice } from '../../src/device/capabilities.ts'
import { requestPersistence } from '../../src/store/persistence.ts'

addEventListener('message', () => {
  Promise.all([probeDevice(), requestPersistence()]).then(
    ([capabilities, persisted]) => postMessage({ capabilities, persisted }),
    (thrown: unknown) => postMessage({ error: String(thrown) }),
  )
})
