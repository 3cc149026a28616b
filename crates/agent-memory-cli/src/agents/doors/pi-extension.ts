// Written by `agent-memory install`, which writes it anew.
// pi's compaction, manual, by threshold and after an overflow, answered by `agent-memory hook`, which also imports the
// session after each turn. An empty answer or any error: pi's own compaction runs.
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { spawn } from "node:child_process";

const COMMAND = ["agent-memory", "hook", "pi"];

// `pi.exec` has no stdin, so the program is started here.
function ask(event: object, signal?: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { signal, timeout: 20000, stdio: ["pipe", "pipe", "ignore"] });
    let out = "";
    child.on("error", () => resolve(""));
    child.on("close", (code) => resolve(code === 0 ? out : ""));
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(event));
  });
}

export default function (pi: ExtensionAPI) {
  pi.on("agent_settled", async (_event, ctx) => {
    try {
      const transcript = ctx.sessionManager.getSessionFile();
      if (!transcript) return;
      await ask({
        hook_event_name: "Stop",
        session_id: ctx.sessionManager.getSessionId(),
        transcript_path: transcript,
        cwd: ctx.cwd,
      });
    } catch {
      return;
    }
  });
  pi.on("session_before_compact", async (event, ctx) => {
    try {
      const p = event.preparation;
      const out = await ask({
        hook_event_name: "session_before_compact",
        session_id: ctx.sessionManager.getSessionId(),
        transcript_path: ctx.sessionManager.getSessionFile(),
        cwd: ctx.cwd,
        trigger: event.reason,
        will_retry: event.willRetry,
        custom_instructions: event.customInstructions,
        first_kept_entry_id: p.firstKeptEntryId,
        tokens_before: p.tokensBefore,
      }, event.signal);
      if (!out.trim()) return;
      const { summary, firstKeptEntryId, tokensBefore, details } = JSON.parse(out);
      return { compaction: { summary, firstKeptEntryId, tokensBefore, details } };
    } catch {
      return;
    }
  });
}
