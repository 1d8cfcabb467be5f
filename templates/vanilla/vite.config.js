import { inorigin } from 'inorigin/vite'
import { defineConfig } from 'vite'

export default defineConfig({
  // Relative, so that the build runs in any folder of any static host.
  base: './',
  // `keepApp` lets the page open without a network after the first visit.
  plugins: [inorigin({ keepApp: true })],
})
