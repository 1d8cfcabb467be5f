import vue from '@vitejs/plugin-vue'
import { inorigin } from 'inorigin/vite'
import { defineConfig } from 'vite'

export default defineConfig({ plugins: [vue(), inorigin()] })
