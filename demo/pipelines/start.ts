/** Starts the server in a page with the models that `npm run pipelines` has added. */
import { serve, type Device, type Server } from '../../src/index.ts'

/** Starts the server. `?device=webgpu` or `?device=wasm` in the page's address restricts it. */
export function start(): Promise<Server> {
  const asked = new URLSearchParams(location.search).get('device')
  const device: Device | 'auto' = asked === 'webgpu' || asked === 'wasm' ? asked : 'auto'
  return serve({ catalog: './inorigin/catalog.json', device })
}
