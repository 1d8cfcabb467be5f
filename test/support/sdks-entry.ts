/** The two official SDKs and the AI SDK, bundled for the page as an app would bundle them. */
export { default as OpenAI } from 'openai'
export { default as Anthropic } from '@anthropic-ai/sdk'
export { createOpenAICompatible } from '@ai-sdk/openai-compatible'
export { APICallError, generateText, streamText } from 'ai'
