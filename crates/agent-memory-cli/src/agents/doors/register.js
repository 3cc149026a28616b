// Written by `agent-memory install`, which writes it anew.
// Claude Code's compaction, manual and automatic, answered by `agent-memory hook`. On any error the built-in one runs.
// The loader checks this file without running it: `$` may stand only as `$.noun.event(…)`.
const COMMAND = ["agent-memory", "hook", "claude-code"];

// What an assistant said, and tool results, are handed back without the handle, so that they are written anew. Kept by
// handle they go wrong when the session is resumed: assistant texts come twice, as the old line and the new one share
// their message id, and result lines keep the old parent. A user's own message keeps its handle, and so its images.
function kept(message) {
  if (message.role === 'user' && !message.toolResults?.length) return { toolUses: [], ...message };
  const { handle, ...rest } = message;
  return { toolUses: [], ...rest };
}

// What the program made anew: texts, calls and results.
function rebuilt({ role, text, toolUses, toolResults }) {
  return { role, text: text ?? '', toolUses: toolUses ?? [], ...(toolResults?.length ? { toolResults } : {}) };
}

// The event has one message for each block. Parallel calls must come back as one message, and their results as one, or
// all but the last result are missing after a resume.
function joined(messages) {
  const out = [];
  for (const m of messages) {
    const last = out.at(-1);
    const join = last && !last.handle && !m.handle && last.role === m.role && (m.role === 'assistant' || (last.toolResults && m.toolResults));
    if (!join) {
      out.push(m);
      continue;
    }
    last.text = [last.text, m.text].filter(Boolean).join('\n');
    last.toolUses = [...last.toolUses, ...m.toolUses];
    if (m.toolResults) last.toolResults = [...(last.toolResults ?? []), ...m.toolResults];
  }
  return out;
}

export function register(on) {
  on('session.compact', async ($, e, next) => {
    if (e.trigger === 'precompute') return { skip: 'agent-memory answers when the compaction is due' };
    if (e.agentId) return next(e); // a sub-agent's own compaction
    let answer;
    try {
      const event = {
        hook_event_name: 'session.compact',
        session_id: await $.session.id(),
        cwd: await $.session.cwd(),
        trigger: e.trigger,
        instructions: e.instructions,
        messages: e.messages,
      };
      const run = await $.process.run(COMMAND, { stdin: JSON.stringify(event), timeoutMs: 20000 });
      if (run.exitCode !== 0 || run.isStdoutTruncated) return next(e);
      // {messages: [{keep: index} | {role, text, toolUses?, toolResults?}], tokens_before?, tokens_after?}, or
      // {fallback: reason}, or nothing
      const out = JSON.parse(run.stdout);
      const messages = joined(out.messages.map((m) => (m.keep === undefined ? rebuilt(m) : kept(e.messages[m.keep]))));
      if (messages.length === 0) return next(e);
      answer = { messages, tokensBefore: out.tokens_before, tokensAfter: out.tokens_after };
    } catch {
      return next(e);
    }
    return answer;
  });
}
