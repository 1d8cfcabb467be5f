/** The public exports of `inorigin/language-model`. */
export { defineLanguageModel, installLanguageModel } from './install.ts'
export { CreateMonitor } from './create-monitor.ts'
export { LanguageModelToolCall, LanguageModelToolError, LanguageModelToolSuccess } from './types.ts'
export type { LanguageModelToolResult } from './types.ts'
export type { LanguageModel, LanguageModelConstructor } from './language-model.ts'
export type {
  Availability,
  InstallOptions,
  LanguageModelAnswer,
  LanguageModelChunk,
  LanguageModelCreateCoreOptions,
  LanguageModelCreateOptions,
  LanguageModelExpected,
  LanguageModelMessage,
  LanguageModelMessageContent,
  LanguageModelMessageRole,
  LanguageModelMessageType,
  LanguageModelMessageValue,
  LanguageModelOptions,
  LanguageModelParams,
  LanguageModelPrompt,
  LanguageModelPromptOptions,
  LanguageModelSamplingMode,
  LanguageModelServer,
  LanguageModelSignalOptions,
  LanguageModelTool,
} from './types.ts'
