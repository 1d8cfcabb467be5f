import { reactRouter } from '@react-router/dev/vite'
import { inorigin } from 'inorigin/vite'
import { defineConfig } from 'vite'

export default defineConfig({ plugins: [inorigin(), reactRouter()] })
