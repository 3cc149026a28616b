// Written by `agent-memory install`, which writes it anew.
// opencode: what each request holds is rewritten by `agent-memory hook`; on any error, and on an empty answer, nothing changes.
// opencode keeps the whole session in its database and asks again at every request, also at those of its compaction, so
// the answer must depend on the messages alone, or the provider's prompt cache is lost.
import { spawn } from "node:child_process";

const COMMAND = ["agent-memory", "hook", "opencode"];

function ask(event) {
  return new Promise((resolve) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { timeout: 10000, stdio: ["pipe", "pipe", "ignore"] });
    let out = "";
    child.on("error", () => resolve(""));
    child.on("close", (code) => resolve(code === 0 ? out : ""));
    child.stdout.setEncoding("utf8").on("data", (text) => (out += text));
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(event));
  });
}

export const AgentMemory = async ({ client, directory }) => ({
  // The answer of a turn is in no request until the next turn, so the session is also handed over at its end.
  event: async ({ event }) => {
    try {
      if (event.type !== "session.idle") return;
      const session = event.properties.sessionID;
      const { data } = await client.session.messages({ path: { id: session } });
      if (data?.length) await ask({ hook_event_name: "session.idle", session_id: session, cwd: directory, messages: data });
    } catch {}
  },
  // The answer: {"messages": [{"keep": index} | {"role": "user", "text": …}, …]}
  "experimental.chat.messages.transform": async (input, output) => {
    try {
      const all = output.messages;
      const session = all[0]?.info.sessionID;
      const out = await ask({ hook_event_name: "chat.messages.transform", session_id: session, cwd: directory, messages: all });
      if (!out.trim()) return;
      const { info, parts } = all.find((m) => m.info.role === "user");
      const part = { id: parts[0]?.id ?? info.id, sessionID: info.sessionID, messageID: info.id, type: "text" };
      const rewritten = JSON.parse(out).messages.map((m) =>
        m.keep === undefined ? { info: { ...info }, parts: [{ ...part, text: m.text }] } : all[m.keep]);
      if (rewritten.length > 0) all.splice(0, all.length, ...rewritten);
    } catch {}
  },
  // The answer: {"prompt": …} replaces the prompt of opencode's own compaction, {"context": […]} adds to it.
  "experimental.session.compacting": async (input, output) => {
    try {
      const out = await ask({ hook_event_name: "session.compacting", session_id: input.sessionID, cwd: directory });
      if (!out.trim()) return;
      const answer = JSON.parse(out);
      if (answer.prompt) output.prompt = answer.prompt;
      output.context.push(...(answer.context ?? []));
    } catch {}
  },
});
