/** Where a command writes its reply; the command's staging, published when it returns. */
export type { RespWriter as Reply } from '../resp/writer.ts';
