/** The two official SDKs, bundled for the page as an app would bundle them. */
export { default as OpenAI } from 'openai'
export { default as Anthropic } from '@anthropic-ai/sdk'
