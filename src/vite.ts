/** The Vite plugin: `import { inorigin } from 'inorigin/vite'`. */
export { inorigin } from './vite/plugin.ts'
export type { InoriginOptions } from './vite/plugin.ts'
