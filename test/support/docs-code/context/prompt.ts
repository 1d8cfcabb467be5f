/** Elements that show an answer, and a session of the Prompt API. */
import { serve } from 'inorigin'
import { defineLanguageModel } from 'inorigin/language-model'

export const button = document.createElement('button')
export const bar = document.createElement('progress')
export const output = document.createElement('output')

export const LanguageModel = defineLanguageModel({ server: serve, model: '@inorigin/guide' })
// A session may only download its model after a click.
const server = await serve()
await server.models.load('@inorigin/guide')
export const session = await LanguageModel.create()
