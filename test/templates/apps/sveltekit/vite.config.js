import { sveltekit } from '@sveltejs/kit/vite'
import { inorigin } from 'inorigin/vite'
import { defineConfig } from 'vite'

export default defineConfig({ plugins: [inorigin(), sveltekit()] })
