import { serve } from 'inorigin'

export const server = await serve()
