/** A page with the chat of `@ai-sdk/react`, which leaves what it shows and can do as `chat`. */
import { useChat } from '@ai-sdk/react'
import {
  DirectChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type ChatTransport,
  type UIMessage,
} from 'ai'
import { createElement, useEffect } from 'react'
import { createRoot } from 'react-dom/client'
import type { Server } from '../../../src/index.ts'
import { createAgent } from './agent.ts'

/** State that the page shows, and its functions. */
export type Chat = Pick<
  ReturnType<typeof useChat>,
  'messages' | 'status' | 'error' | 'sendMessage' | 'addToolApprovalResponse' | 'stop'
>

function ChatView({ transport }: { transport: ChatTransport<UIMessage> | undefined }) {
  const chat = useChat({
    ...(transport && { transport }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  useEffect(() => void Object.assign(globalThis, { chat }))
  return createElement('output', null, JSON.stringify(chat.messages))
}

/** Shows a chat that asks the agent in this page, or the default route if no server is given. */
export function mountChat(server?: Server): void {
  const transport = server && new DirectChatTransport({ agent: createAgent(server) })
  const place = document.body.appendChild(document.createElement('div'))
  const untyped = transport as unknown as ChatTransport<UIMessage> | undefined
  createRoot(place).render(createElement(ChatView, { transport: untyped }))
}
