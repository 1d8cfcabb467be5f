import { svelte } from '@sveltejs/vite-plugin-svelte'
import { inorigin } from 'inorigin/vite'
import { defineConfig } from 'vite'

export default defineConfig({ plugins: [svelte(), inorigin()] })
