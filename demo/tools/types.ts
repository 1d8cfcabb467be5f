/** The nouns of tools, which both API styles share. */

/** A tool as a request describes it to the model. */
export interface ToolDefinition {
  name: string
  description: string
  /** JSON Schema of the arguments, which are an object. */
  parameters: Record<string, unknown>
}

/** A tool that can be called. */
export interface Tool extends ToolDefinition {
  /**
   * Runs the tool and resolves with its result as text. Absent if the user answers the call by
   * hand. It rejects with an error whose message is for the model.
   */
  run?(args: Record<string, unknown>, signal: AbortSignal): Promise<string>
}

/** A call that a model asks for. */
export interface ToolCall {
  id: string
  name: string
  /** Arguments as JSON, exactly as the model wrote them. */
  arguments: string
}

export interface ToolResult {
  call: ToolCall
  content: string
  /** `true` if the call failed, or was declined. */
  isError: boolean
}

/** Text and tool calls of one request, with the results that the next request contains. */
export interface ToolRound {
  text: string
  results: readonly ToolResult[]
}
