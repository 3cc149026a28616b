"use strict";
// Shows the data of the page. Every text of a transcript gets into the page as text, never as markup.

// ---- Data

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const { log, views, summaries, contexts } = data;
const HEAD = log.tokens.length;
/** Tokens before each message: sums[n] is the cost of messages 1 to n. */
const sums = new Float64Array(HEAD + 1);
for (let n = 1; n <= HEAD; n += 1) sums[n] = sums[n - 1] + log.tokens[n - 1];
const costOf = (first, last) => sums[last] - sums[first - 1];

/** Elements with messages. Each is parsed when one of its messages is needed first. */
const chunks = [...document.querySelectorAll("script.messages")].map((element) => ({
  element,
  first: Number(element.dataset.first),
  last: Number(element.dataset.last),
  messages: null,
}));

function chunkOf(seq) {
  let [low, high] = [0, chunks.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (chunks[middle].last < seq) low = middle + 1;
    else high = middle;
  }
  return chunks[low];
}

function message(seq) {
  const chunk = chunkOf(seq);
  chunk.messages ??= JSON.parse(chunk.element.textContent);
  return chunk.messages[seq - chunk.first];
}

const ROLES = { u: "user", p: "text added by a program", a: "assistant", r: "reasoning", c: "tool call", t: "tool result", s: "system", n: "note" };
const KINDS = { raw: "verbatim", trimmed: "shortened", omitted: "left out" };
const STATES = { whole: "whole", shortened: "shortened", summary: "in a summary", left_out: "left out" };
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const number = (value) => value.toLocaleString("en-US");
const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;
const short = (value) => (value < 1000 ? String(value) : `${(value / 1000).toFixed(value < 99_500 ? 1 : 0)}k`);
const clip = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

/** The times of a range: `2 Mar, 09:00 – 4 Mar, 10:12`; empty if no time is known. */
function period(first, last, day = DAY) {
  let [from, to] = [Infinity, -Infinity];
  for (let seq = first; seq <= last; seq += 1) {
    const time = log.times[seq - 1];
    if (time === 0) continue;
    from = Math.min(from, time);
    to = Math.max(to, time);
  }
  if (from > to) return "";
  const days = [day.format(from), day.format(to)];
  const clocks = [CLOCK.format(from), CLOCK.format(to)];
  if (days[0] !== days[1]) return `${days[0]}, ${clocks[0]} – ${days[1]}, ${clocks[1]}`;
  return clocks[0] === clocks[1] ? `${days[0]}, ${clocks[0]}` : `${days[0]}, ${clocks[0]} – ${clocks[1]}`;
}

function requestsIn(first, last) {
  let found = 0;
  for (let seq = first; seq <= last; seq += 1) if (log.letters[seq - 1] === "u") found += 1;
  return found;
}

// ---- Trees of views

/** Gives each node its parent, level and place among its siblings. A child of messages alone is no row of its own. */
function adopt(nodes, parent, view) {
  return nodes.map((node, index) => {
    const own = {
      ...node,
      view,
      parent,
      level: parent ? parent.level + 1 : 0,
      place: index + 1,
      siblings: nodes.length,
      open: false,
      key: `${view.name}/${parent ? parent.key : ""}/${node.first}`,
    };
    own.leaf = !node.summary || !(node.children ?? []).some((child) => child.summary);
    own.children = own.leaf ? [] : adopt(node.children, own, view);
    return own;
  });
}

for (const view of views) view.nodes = adopt(view.spans, null, view);
let view = views.find((one) => one.current) ?? views[0];
let context = null;

/** The states of all messages in the chosen context, as an array; `null` without one. */
let states = null;

function statesOf(shares) {
  const all = new Array(HEAD);
  for (const [first, last, state] of shares.runs) all.fill(state, first - 1, last);
  return all;
}

/** Opens the upper levels of a view and its latest messages, so that it shows how it is made. */
function openSome() {
  if (view.nodes.some((node) => node.open)) return;
  for (const node of view.nodes) node.open = !node.leaf;
  const last = view.nodes.at(-1);
  if (last && !last.summary) last.open = true;
}

// ---- Rows: the open part of the tree, flat

let rows = [];
/** Keys of rows that are unfolded: results, long texts, long summaries. */
const unfolded = new Set();

function flatten() {
  rows = [];
  const messages = (first, last, node, level) => {
    for (let seq = first; seq <= last; seq += 1) rows.push({ type: "message", key: `m${seq}`, seq, node, level });
  };
  const visit = (node) => {
    rows.push({ type: "node", key: node.key, node, level: node.level });
    if (!node.open) return;
    if (node.summary) rows.push({ type: "text", key: `${node.key}#`, node, level: node.level });
    if (node.leaf) messages(node.first, node.last, node, node.level);
    else node.children.forEach(visit);
  };
  view.nodes.forEach(visit);
}

function indexOf(key) {
  return rows.findIndex((row) => row.key === key);
}

// ---- Search

/** Milliseconds of a search without a pause. */
const SLICE = 12;
const search = { pattern: null, items: [], total: 0, at: -1, run: 0, done: true };

/** The texts of a row in the order in which it shows them unfolded. */
function textsOf(row) {
  if (row.type === "text") return summaries[row.node.summary].text.split("\n").map((line) => splitLine(line)[1]);
  return message(row.seq).parts.flatMap((part) =>
    part.type === "call" ? [part.name, pretty(part.arguments)] : [part.text],
  );
}

function matches(text) {
  let found = 0;
  for (const match of text.matchAll(search.pattern)) if (match[0] !== "") found += 1;
  return found;
}

function startSearch(query) {
  const words = query.trim();
  search.run += 1;
  search.items = [];
  search.total = 0;
  search.at = -1;
  search.done = true;
  search.pattern = null;
  $("search").classList.toggle("searching", words !== "");
  if (words !== "") {
    const escaped = words.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&").replace(/\s+/g, "\\s+");
    search.pattern = new RegExp(escaped, "giu");
    search.done = false;
    const order = [];
    const visit = (node) => {
      if (node.summary) order.push({ type: "text", node });
      if (node.leaf) order.push({ type: "messages", node, next: node.first });
      node.children.forEach(visit);
    };
    view.nodes.forEach(visit);
    searchSlice(search.run, order, 0);
  }
  redrawRows();
  showHits();
}

/** Searches for a few milliseconds, and goes on after the browser has drawn. */
function searchSlice(run, order, index) {
  if (run !== search.run) return;
  const end = performance.now() + SLICE;
  const add = (row) => {
    const found = textsOf(row).reduce((sum, text) => sum + matches(text), 0);
    if (found > 0) search.items.push({ ...row, found, before: search.total });
    search.total += found;
  };
  while (index < order.length && performance.now() < end) {
    const part = order[index];
    if (part.type === "text") {
      add(part);
      index += 1;
      continue;
    }
    while (part.next <= part.node.last && performance.now() < end) {
      add({ type: "message", seq: part.next, node: part.node });
      part.next += 1;
    }
    if (part.next > part.node.last) index += 1;
  }
  search.done = index >= order.length;
  if (!search.done) setTimeout(searchSlice, 0, run, order, index);
  showHits();
  if (search.done) drawStrip();
}

function showHits() {
  const { pattern, total, at, done } = search;
  const place = at >= 0 ? `${number(at + 1)} of ` : "";
  const all = total === 0 && done ? "no hits" : `${number(total)}${done ? "" : "…"}${at < 0 ? (total === 1 ? " hit" : " hits") : ""}`;
  $("hits").textContent = pattern ? `${place}${all}` : "";
  for (const id of ["previous", "next"]) $(id).hidden = !pattern || total === 0;
}

/** Goes to the next hit, or by `step` -1 to the previous one. */
function goToHit(step) {
  if (search.total === 0) return;
  if (search.at < 0 && step > 0) search.at = firstHitFrom(active);
  else search.at = (search.at + step + search.total) % search.total;
  const item = hitItem();
  reveal(item.node, item.type === "message");
  const key = item.type === "message" ? `m${item.seq}` : `${item.node.key}#`;
  unfolded.add(key);
  flatten();
  heights.delete(key);
  select(indexOf(key), "center");
  const mark = $("rows").querySelector("mark.now");
  if (mark) keepInSight(mark);
  showHits();
}

/** The first hit at or after a row, or the first of all. */
function firstHitFrom(index) {
  const row = rows[index];
  if (!row) return 0;
  const from = row.type === "message" ? row.seq : row.node.first;
  const item = search.items.find((one) => (one.type === "message" ? one.seq : one.node.first) >= from);
  return item ? item.before : 0;
}

function hitItem() {
  return search.items.find((item) => search.at < item.before + item.found);
}

/** Opens the nodes above a message or a text, and its own node. */
function reveal(node) {
  for (let one = node; one; one = one.parent) one.open = true;
}

function nodeOf(seq) {
  let nodes = view.nodes;
  for (;;) {
    const node = nodes.find((one) => one.first <= seq && seq <= one.last);
    if (!node || node.leaf) return node;
    nodes = node.children;
  }
}

function goToMessage(seq) {
  const node = nodeOf(seq);
  if (!node) return;
  reveal(node);
  flatten();
  select(indexOf(`m${seq}`), "center");
}

// ---- Elements

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

function arrow() {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", "M6 4l4 4-4 4");
  svg.append(path);
  return svg;
}

function bar(part, whole) {
  const fill = make("i");
  fill.style.width = `${whole > 0 ? Math.min(100, (100 * part) / whole) : 0}%`;
  return make("span", "bar", fill);
}

/** Appends a text with its hits marked. Counts them in `marks`, so that one of them can be the current one. */
function put(element, text, marks, withCode = false) {
  const codes = withCode ? [...text.matchAll(/```[\s\S]*?(?:```|$)|`[^`\n]+`/g)] : [];
  const hits = search.pattern ? [...text.matchAll(search.pattern)].filter((hit) => hit[0] !== "") : [];
  if (codes.length === 0 && hits.length === 0) {
    element.append(text);
    return;
  }
  const ends = new Set([0, text.length]);
  for (const range of [...codes, ...hits]) ends.add(range.index).add(range.index + range[0].length);
  const cuts = [...ends].sort((a, b) => a - b);
  let [code, hit] = [0, 0];
  for (let n = 0; n + 1 < cuts.length; n += 1) {
    const [from, to] = [cuts[n], cuts[n + 1]];
    while (code < codes.length && codes[code].index + codes[code][0].length <= from) code += 1;
    while (hit < hits.length && hits[hit].index + hits[hit][0].length <= from) hit += 1;
    let piece = document.createTextNode(text.slice(from, to));
    if (hit < hits.length && hits[hit].index <= from) {
      piece = make("mark", marks && marks.now === marks.seen + hit ? "now" : "", piece);
    }
    if (code < codes.length && codes[code].index <= from) piece = make("code", "", piece);
    element.append(piece);
  }
  if (marks) marks.seen += hits.length;
}

/** Sizes up to which a text is not folded, and the lines of it that are shown folded. */
const SPOKEN = { lines: 24, characters: 2400, shown: 18 };
const REASONED = { lines: 7, characters: 700, shown: 4 };

function isLong(text, size) {
  if (text.length > size.characters) return true;
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines > size.lines;
}

function beginning(text, size) {
  const lines = text.slice(0, size.characters).split("\n");
  return lines.slice(0, size.shown).join("\n");
}

/** Appends a text that is folded if it is long, with a button that unfolds it. */
function putLong(element, text, row, marks, withCode) {
  const size = element.className === "reason" || log.letters[row.seq - 1] === "p" ? REASONED : SPOKEN;
  if (!isLong(text, size)) {
    put(element, text, marks, withCode);
    return null;
  }
  const open = unfolded.has(row.key);
  put(element, open ? text : beginning(text, size), marks, withCode);
  return foldButton(row, open, open ? "Show less" : `Show all ${number(text.length)} characters`);
}

function foldButton(row, open, label) {
  const button = make("button", "fold", label);
  button.type = "button";
  button.tabIndex = -1;
  button.dataset.fold = row.key;
  button.setAttribute("aria-expanded", String(open));
  return button;
}

/**
 * The value of a call's arguments. Some sources keep them as a string of JSON. The text itself if its value does not
 * have all of it, as for a large number or a key that occurs twice.
 */
function parsed(text) {
  try {
    const value = JSON.parse(text);
    if (typeof value === "string") return value.startsWith("{") ? parsed(value) : value;
    const dense = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, (_, string) => (string ? JSON.stringify(JSON.parse(string)) : ""));
    return JSON.stringify(value) === dense ? value : text;
  } catch {
    return text;
  }
}

/** The arguments of a call as lines: each argument, and its value as it is read. */
function pretty(text) {
  const value = parsed(text);
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return typeof value === "string" ? value : text;
  }
  const lines = Object.entries(value).map(([name, argument]) => {
    const shown = typeof argument === "string" ? argument : JSON.stringify(argument, null, 2);
    return `${name}: ${shown.includes("\n") ? `\n${shown}` : shown}`;
  });
  return lines.join("\n");
}

const MAIN = ["command", "cmd", "file_path", "path", "pattern", "query", "url"];

/** The arguments of a call in one line: the main argument, or all of them. */
function oneLine(text) {
  const value = parsed(text);
  if (value === null || typeof value !== "object" || Array.isArray(value)) return String(value ?? "");
  const names = Object.keys(value);
  const flat = (argument) => (typeof argument === "string" ? argument : JSON.stringify(argument));
  if (names.length === 1) return flat(value[names[0]]);
  const main = MAIN.find((name) => typeof value[name] === "string");
  return main ? value[main] : names.map((name) => `${name}=${flat(value[name])}`).join(" ");
}

function lineOf(className, mark, name, argument, more, row, open, marks) {
  const button = make("button", `line ${className}`, mark ? make("span", "mark", mark) : null);
  button.type = "button";
  button.tabIndex = -1;
  button.dataset.fold = row.key;
  button.setAttribute("aria-expanded", String(open));
  if (name !== null) {
    const label = make("span", "tool-name");
    put(label, name, marks);
    button.append(label);
  }
  const preview = make("span", "argument");
  put(preview, clip(argument.replace(/\s+/g, " "), 300), null);
  button.append(preview);
  if (more) button.append(make("span", "more", more));
  return button;
}

function drawPart(body, part, row, marks, letter) {
  const open = unfolded.has(row.key);
  const long = (className, text, withCode) => {
    const element = make("div", className);
    const button = putLong(element, text, row, marks, withCode);
    body.append(element);
    if (button) body.append(button);
  };
  if (part.type === "text" && letter === "n") return drawFolded(body, "note", "·", part.text, row, marks);
  if (part.type === "text") return long("say", part.text, true);
  if (part.type === "reasoning") return long("reason", part.text || "(hidden by the provider)", false);
  if (part.type === "media") return long("say", part.text, false);
  if (part.type === "other") return drawFolded(body, "result", "·", part.text, row, marks);
  if (part.type === "result") {
    return drawFolded(body, `result${part.failed ? " failed" : ""}`, part.failed ? "✕" : "└", part.text, row, marks);
  }
  body.append(lineOf("call", "", part.name, oneLine(part.arguments), "", row, open, marks));
  if (open) {
    const block = make("div", "block-text");
    put(block, pretty(part.arguments), marks);
    body.append(block);
  }
  return undefined;
}

/** Draws a text as its first line, and below it the whole text if the row is unfolded. */
function drawFolded(body, className, mark, text, row, marks) {
  const open = unfolded.has(row.key);
  const first = text.split("\n", 50).find((line) => line.trim() !== "") ?? "";
  const lines = text === "" ? 0 : text.split("\n").length;
  const more = lines > 1 ? count(lines, "line") : "";
  body.append(lineOf(className, mark, null, first.trim() || "(empty)", more, row, open, null));
  if (open) {
    const block = make("div", "block-text");
    put(block, text, marks);
    body.append(block);
  }
}

/** Splits a line of a summary into the position that it begins with, and the rest. */
function splitLine(line) {
  const match = /^\[(\d{1,9})\] /.exec(line);
  return match ? [Number(match[1]), line.slice(match[0].length)] : [null, line];
}

function marksOf(row) {
  if (search.at < 0) return { seen: 0, now: -1 };
  const item = hitItem();
  const same = item.type === "message" ? row.type === "message" && row.seq === item.seq : row.type === "text" && row.node === item.node;
  return { seen: 0, now: same ? search.at - item.before : -1 };
}

const FEW_LINES = 6;

function drawText(row, body) {
  const { text } = summaries[row.node.summary];
  const lines = text.split("\n");
  const open = unfolded.has(row.key) || lines.length <= FEW_LINES + 3;
  const words = make("div", "words");
  const marks = marksOf(row);
  const numbered = lines.some((line) => splitLine(line)[0] !== null);
  for (const line of open ? lines : lines.slice(0, FEW_LINES)) {
    const [seq, rest] = splitLine(line);
    const paragraph = make("p", numbered ? (open ? "" : "one") : "plain");
    if (seq !== null && seq >= 1 && seq <= HEAD) {
      const to = make("button", "to", String(seq));
      to.type = "button";
      to.tabIndex = -1;
      to.dataset.to = seq;
      to.setAttribute("aria-label", `Go to message ${seq}`);
      paragraph.append(to);
    }
    put(paragraph, open ? rest : clip(rest, 260), marks);
    words.append(paragraph);
  }
  body.append(words);
  if (lines.length > FEW_LINES + 3) {
    words.append(foldButton(row, open, open ? "Show less" : `Show all ${count(lines.length, "line")} of the summary`));
  }
  return `Words of the summary: ${clip(text, 400)}`;
}

function drawMessage(row, element, body, side) {
  const letter = log.letters[row.seq - 1];
  const { role, name, parts } = message(row.seq);
  element.classList.add("message", letter);
  const marks = marksOf(row);
  const who = name ? `${role} ${name}` : role;
  if (letter === "p") body.append(make("div", "who", "added by a program"));
  else if (letter === "s" || name) body.append(make("div", "who", who));
  for (const part of parts) drawPart(body, part, row, marks, letter);
  const time = log.times[row.seq - 1];
  const tokens = log.tokens[row.seq - 1];
  const state = states?.[row.seq - 1];
  if (state && STATES[state]) {
    side.append(make("span", "state", STATES[state], make("i", `dot ${state}`)));
    element.classList.toggle("dim", state === "left_out");
  } else {
    const clock = time && letter === "u" ? `${CLOCK.format(time)}  ·  ` : "";
    side.textContent = letter === "n" ? "note" : `${clock}${number(tokens)}`;
  }
  side.title = `${count(tokens, "token")}${time ? `, ${YEAR.format(time)}, ${CLOCK.format(time)} UTC` : ""}`;
  const first = parts.map((part) => (part.type === "call" ? `${part.name} ${oneLine(part.arguments)}` : part.text)).join(" ");
  const shownAs = state && STATES[state] ? `, ${STATES[state]}` : "";
  return `${ROLES[letter]}, message ${row.seq}${shownAs}: ${clip(first, 400)}`;
}

function drawNode(row, element, body, side) {
  const { node } = row;
  element.classList.add("span");
  const whole = costOf(node.first, node.last);
  const range = node.first === node.last ? `message ${number(node.first)}` : `messages ${number(node.first)}–${number(node.last)}`;
  const about = make("div", "about");
  const tell = (text, className) => text && about.append(make("span", className ?? "", text));
  const summary = node.summary ? summaries[node.summary] : null;
  tell(summary ? (summary.depth > 0 ? "summary of summaries" : "summary") : KINDS[node.kind], "kind");
  tell(range);
  tell(period(node.first, node.last));
  tell(count(requestsIn(node.first, node.last), "request"));
  if (summary) tell(summary.provisional ? "extract" : (summary.model ?? ""));
  const shown = context?.summaries.find((one) => one.id === node.summary);
  let used = null;
  if (shown) {
    const lines = shown.lines ? `, ${number(shown.lines[0])} of ${number(shown.lines[1])} lines` : "";
    used = make("div", "about used", make("i", "dot summary"), `in ${number(context.budget)} tokens: ${number(shown.tokens)}${lines}`);
  }
  body.append(make("div", "topic", node.topic || range), about);
  if (used) body.append(used);
  const figure = make("div", "figure");
  if (summary || node.kind !== "raw") figure.append(`${number(whole)} → `, make("b", "", number(node.tokens)));
  else figure.append(make("b", "", number(whole)));
  side.append(figure, bar(node.kind === "raw" ? whole : node.tokens, whole));
  element.setAttribute("aria-expanded", String(node.open));
  return `${about.firstChild.textContent}, ${range}, ${number(whole)} tokens${node.kind === "raw" ? "" : ` in ${number(node.tokens)}`}: ${node.topic}`;
}

function draw(row, index) {
  const element = make("div", "row");
  element.id = `row-${index}`;
  element.dataset.key = row.key;
  element.setAttribute("role", "treeitem");
  element.style.setProperty("--level", row.level);
  const gutter = make("div", "gutter");
  const body = make("div", "body");
  const side = make("div", "side");
  element.append(gutter, body, side);
  let label;
  let [level, place, siblings] = [row.level + 2, 1, 1];
  if (row.type === "node") {
    gutter.append(arrow());
    label = drawNode(row, element, body, side);
    [level, place, siblings] = [row.level + 1, row.node.place, row.node.siblings];
  } else if (row.type === "text") {
    element.classList.add("text");
    label = drawText(row, body);
  } else {
    gutter.textContent = row.seq;
    label = drawMessage(row, element, body, side);
    place = row.seq - row.node.first + 1;
    siblings = row.node.last - row.node.first + 1;
    const fold = body.querySelector("[data-fold]");
    if (fold) element.setAttribute("aria-expanded", fold.getAttribute("aria-expanded"));
  }
  element.setAttribute("aria-label", label);
  element.setAttribute("aria-level", level);
  element.setAttribute("aria-posinset", place);
  element.setAttribute("aria-setsize", siblings);
  return element;
}

// ---- A list that draws only the rows in sight

const box = $("log");
const AROUND = 600;
const heights = new Map();
let offsets = new Float64Array(1);
/** Drawn rows by key. */
let drawn = new Map();
let active = 0;
let waiting = false;

function guess(row) {
  if (row.type === "node") return 78;
  if (row.type === "text") return 300;
  const tokens = log.tokens[row.seq - 1];
  switch (log.letters[row.seq - 1]) {
    case "c":
    case "t":
    case "n":
      return 30;
    case "r":
      return 30 + Math.min(18, Math.floor(tokens / 22)) * 22;
    default:
      return 48 + Math.min(18, Math.floor(tokens / 18)) * 24;
  }
}

function layOut() {
  if (offsets.length !== rows.length + 1) offsets = new Float64Array(rows.length + 1);
  for (let n = 0; n < rows.length; n += 1) offsets[n + 1] = offsets[n] + (heights.get(rows[n].key) ?? guess(rows[n]));
  $("space").style.height = `${offsets[rows.length]}px`;
}

/** The row at a height of the list. */
function rowAt(y) {
  let [low, high] = [0, rows.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle] <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Draws the rows in sight. Rows turn out to be higher or lower than guessed; the row `anchor` stays in its place. */
function render(anchor = null) {
  waiting = false;
  const top = $("space").offsetTop;
  const keep = anchor ?? rowAt(box.scrollTop - top);
  for (let pass = 0; pass < 4; pass += 1) {
    const scroll = box.scrollTop - top;
    const from = rowAt(Math.max(0, scroll - AROUND));
    const to = rowAt(scroll + box.clientHeight + AROUND);
    const next = new Map();
    const list = $("rows");
    let place = list.firstChild;
    for (let n = from; n <= to && n < rows.length; n += 1) {
      const row = rows[n];
      let element = drawn.get(row.key);
      if (!element) element = draw(row, n);
      else if (element.id !== `row-${n}`) element.id = `row-${n}`;
      element.classList.toggle("active", n === active);
      next.set(row.key, element);
      drawn.delete(row.key);
      if (place === element) place = place.nextSibling;
      else list.insertBefore(element, place);
    }
    for (const element of drawn.values()) element.remove();
    drawn = next;
    list.style.transform = `translateY(${offsets[from]}px)`;
    let changed = false;
    const before = offsets[keep];
    for (const [key, element] of drawn) {
      const height = element.getBoundingClientRect().height;
      if (Math.abs((heights.get(key) ?? -1) - height) > 0.5) {
        heights.set(key, height);
        changed = true;
      }
    }
    if (!changed) break;
    layOut();
    list.style.transform = `translateY(${offsets[from]}px)`;
    if (offsets[keep] !== before) box.scrollTop += offsets[keep] - before;
  }
  box.setAttribute("aria-activedescendant", `row-${active}`);
  drawSeen();
}

function later() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => render());
}

/** Draws all rows in sight again; the row `anchor`, or else the first in sight, stays in its place. */
function redrawRows(anchor = null) {
  for (const element of drawn.values()) element.remove();
  drawn = new Map();
  layOut();
  render(anchor);
}

function redraw(key) {
  drawn.get(key)?.remove();
  drawn.delete(key);
  heights.delete(key);
}

/** Makes a row the active one, and scrolls to it. */
function select(index, where = "nearest") {
  if (rows.length === 0 || index < 0) return;
  const earlier = rows[active]?.key;
  active = Math.max(0, Math.min(rows.length - 1, index));
  redraw(rows[active].key);
  if (earlier) drawn.get(earlier)?.classList.remove("active");
  layOut();
  const top = $("space").offsetTop;
  const place = () => {
    const from = offsets[active] + top;
    const to = offsets[active + 1] + top;
    const [above, below] = [box.scrollTop, box.scrollTop + box.clientHeight];
    if (where === "center" && (from < above || to > below)) return Math.max(0, from - box.clientHeight / 3);
    if (where === "top") return Math.max(0, from - 12);
    if (from < above + 8) return Math.max(0, from - 12);
    if (to > below - 8) return Math.min(from - 12, to - box.clientHeight + 24);
    return box.scrollTop;
  };
  box.scrollTop = place();
  redrawRows(active);
  // The heights around it are known now.
  const again = place();
  if (Math.abs(again - box.scrollTop) > 1) {
    box.scrollTop = again;
    render(active);
  }
}

function keepInSight(element) {
  const inner = element.getBoundingClientRect();
  const outer = box.getBoundingClientRect();
  if (inner.top >= outer.top + 40 && inner.bottom <= outer.bottom - 40) return;
  box.scrollTop += inner.top - outer.top - box.clientHeight / 3;
  render();
}

/** Opens or closes a summary, a result or a long text. */
function toggle(index, open) {
  const row = rows[index];
  if (!row) return;
  if (row.type === "node") {
    row.node.open = open ?? !row.node.open;
    flatten();
  } else {
    if (open ?? !unfolded.has(row.key)) unfolded.add(row.key);
    else unfolded.delete(row.key);
  }
  redraw(row.key);
  select(indexOf(row.key));
}

const isFoldable = (index) => Boolean(drawn.get(rows[index].key)?.querySelector("[data-fold]"));

// ---- The side: views, sizes of contexts, the map

function radio(className, checked, label, choose, ...children) {
  const button = make("button", className, ...children);
  button.type = "button";
  button.setAttribute("role", "radio");
  button.setAttribute("aria-checked", String(checked));
  button.setAttribute("aria-label", label);
  button.tabIndex = checked ? 0 : -1;
  button.addEventListener("click", choose);
  return button;
}

function drawViews() {
  const buttons = views.map((one) =>
    radio(
      "view",
      one === view,
      `${one.name}: ${number(data.tokens)} tokens in ${number(one.tokens)}`,
      () => chooseView(one),
      make("span", "view-name", one.name),
      bar(one.tokens, data.tokens),
      make("span", "figure", number(one.tokens)),
    ),
  );
  $("views").replaceChildren(...buttons);
}

const budgets = [...new Set(contexts.map((one) => one.budget))];

function drawBudgets() {
  $("context").hidden = budgets.length === 0;
  const options = [null, ...budgets].map((budget) => {
    const label = budget === null ? "off" : `${budget / 1000}k`;
    const spoken = budget === null ? "no context" : `${number(budget)} tokens`;
    return radio("budget", (context?.budget ?? null) === budget, spoken, () => chooseBudget(budget), label);
  });
  $("budgets").replaceChildren(...options);
  const shares = Object.keys(STATES).map((state) => {
    const found = states ? states.filter((one) => one === state).length : null;
    return make("div", "share", make("i", `dot ${state}`), STATES[state], make("b", "", found === null ? "" : number(found)));
  });
  $("shares").replaceChildren(...(states ? shares : []));
}

function chooseView(one, keep = true) {
  const seq = rows[active]?.type === "message" ? rows[active].seq : rows[active]?.node.first;
  view = one;
  chooseShares(context?.budget ?? null);
  drawSide();
  openSome();
  flatten();
  const node = keep && active > 0 && seq ? nodeOf(seq) : null;
  let index = 0;
  for (let above = node; above && index === 0; above = above.parent) index = Math.max(0, indexOf(above.key));
  active = 0;
  if (search.pattern) startSearch($("query").value);
  select(index, "top");
}

function chooseShares(budget) {
  context = contexts.find((one) => one.view === view.name && one.budget === budget) ?? null;
  states = context ? statesOf(context) : null;
}

function chooseBudget(budget) {
  chooseShares(budget);
  drawSide();
  redrawRows();
}

/** Lets arrow keys choose among buttons, as in any group of radio buttons. */
function radioKeys(group) {
  group.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const buttons = [...group.children];
    const at = buttons.findIndex((button) => button.getAttribute("aria-checked") === "true");
    const next = (at + step + buttons.length) % buttons.length;
    buttons[next].click();
    group.children[next].focus();
  });
}

const map = $("map");
const HEADING = 24;
const STRIP = 28;

/** The colour of a variable of the style sheet, for the canvas. */
function colour(name) {
  const probe = make("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

const total = Math.max(1, sums[HEAD]);
const mapHeight = () => Math.max(40, map.clientHeight - HEADING);
const yOf = (tokens) => HEADING + (tokens / total) * mapHeight();

function placeAt(element, left, top, width, height) {
  Object.assign(element.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${Math.max(1, height)}px` });
}

function drawMap() {
  map.replaceChildren();
  if (map.clientWidth === 0 || HEAD === 0) return;
  const gap = 12;
  const depth = (node) => (node.summary ? summaries[node.summary].depth : 0);
  const depths = views.map((one) => one.nodes.reduce((most, node) => Math.max(most, depth(node)), 0) + 1);
  // A view with more levels is wider.
  const shared = (map.clientWidth - STRIP - gap * views.length) / depths.reduce((sum, levels) => sum + levels + 1, 0);
  let next = 0;
  views.forEach((one, index) => {
    const [left, levels] = [next, depths[index]];
    const width = shared * (levels + 1);
    next += width + gap;
    const group = make("div", one === view ? "current-view" : "");
    const heading = make("div", `column${one === view ? " current" : ""}`, one.name);
    heading.style.left = `${left}px`;
    group.append(heading);
    const shares = context && contexts.find((other) => other.view === one.name && other.budget === context.budget);
    const inner = shares ? width - 10 : width;
    const each = inner / levels;
    const visit = (node, level) => {
      const top = yOf(sums[node.first - 1]);
      const height = yOf(sums[node.last]) - top;
      const span = node.summary && !node.leaf ? each : inner - level * each;
      const block = make("div", `block ${node.summary ? `depth-${Math.min(2, summaries[node.summary].depth)}` : node.kind}`);
      placeAt(block, left + level * each, top + 1, span - 2, height - 2);
      block.title = `messages ${node.first}–${node.last}\n${node.topic}`;
      block.dataset.key = node.key;
      if (height > 26 && span > 34 && node.kind !== "omitted") {
        block.textContent = short(node.summary ? node.tokens : costOf(node.first, node.last));
      }
      block.addEventListener("click", () => {
        if (view !== one) chooseView(one, false);
        node.open = true;
        reveal(node.parent);
        flatten();
        select(indexOf(node.key), "top");
        box.focus({ preventScroll: true });
      });
      group.append(block);
      node.children.forEach((child) => visit(child, level + 1));
    };
    one.nodes.forEach((node) => visit(node, 0));
    if (shares) {
      for (const [first, last, state] of shares.runs) {
        if (sums[last] === sums[first - 1]) continue;
        const strip = make("div", `strip ${state}`);
        const top = yOf(sums[first - 1]);
        placeAt(strip, left + width - 7, top, 7, yOf(sums[last]) - top);
        strip.title = `messages ${first}–${last}: ${STATES[state] ?? state}`;
        group.append(strip);
      }
    }
    map.append(group);
  });
  const heading = make("div", "column", "log");
  heading.style.left = `${map.clientWidth - STRIP}px`;
  const canvas = make("canvas");
  canvas.id = "strip";
  canvas.addEventListener("click", (event) => {
    const tokens = ((event.offsetY / mapHeight()) * total);
    let seq = 1;
    while (seq < HEAD && sums[seq] < tokens) seq += 1;
    goToMessage(seq);
    box.focus({ preventScroll: true });
  });
  const seen = make("div");
  seen.id = "seen";
  map.append(heading, canvas, seen);
  drawStrip();
  drawSeen();
}

/** Draws the log: a line for each request, and a shade for everything else; and the hits of a search. */
function drawStrip() {
  const canvas = $("strip");
  if (!canvas) return;
  const height = mapHeight();
  placeAt(canvas, map.clientWidth - STRIP, HEADING, STRIP, height);
  const scale = window.devicePixelRatio || 1;
  canvas.width = STRIP * scale;
  canvas.height = height * scale;
  const paint = canvas.getContext("2d");
  paint.scale(scale, scale);
  const colours = { a: colour("--strong-line"), c: colour("--line"), t: colour("--line"), u: colour("--soft") };
  const widths = { u: STRIP, a: STRIP * 0.6, c: STRIP * 0.35, t: STRIP * 0.35 };
  const requests = requestsIn(1, HEAD);
  const layer = (letters) => {
    // Many requests in few pixels are a shade.
    paint.globalAlpha = letters === "u" ? Math.min(1, height / (5 * Math.max(1, requests))) : 1;
    for (let seq = 1; seq <= HEAD; seq += 1) {
      const letter = log.letters[seq - 1];
      if (!letters.includes(letter) || !colours[letter]) continue;
      const top = (sums[seq - 1] / total) * height;
      paint.fillStyle = colours[letter];
      const tall = letter === "u" ? 1 : Math.max(0.5, (log.tokens[seq - 1] / total) * height);
      paint.fillRect(0, top, widths[letter], tall);
    }
  };
  layer("ct");
  layer("a");
  layer("u");
  paint.globalAlpha = 1;
  paint.fillStyle = colour("--mark-now");
  for (const item of search.items) {
    if (item.type === "message") paint.fillRect(STRIP * 0.7, (sums[item.seq - 1] / total) * height - 0.5, STRIP * 0.3, 2);
  }
}

/** Frames the part of the log that is in sight. */
function drawSeen() {
  const seen = $("seen");
  if (!seen || rows.length === 0) return;
  const top = box.scrollTop - $("space").offsetTop;
  const first = rows[rowAt(Math.max(0, top + 4))];
  const last = rows[rowAt(top + box.clientHeight - 4)];
  const from = first.seq ?? first.node.first;
  const to = last.seq ?? (last.type === "text" ? last.node.first : last.node.last);
  const above = yOf(sums[from - 1]);
  placeAt(seen, map.clientWidth - STRIP - 3, above - 2, STRIP + 6, Math.max(6, yOf(sums[Math.max(from, to)]) - above + 4));
  for (const block of map.querySelectorAll(".block")) {
    block.classList.toggle("active", block.dataset.key === rows[active]?.node.key);
  }
}

function drawSide() {
  drawViews();
  drawBudgets();
  drawMap();
  const times = period(1, HEAD, YEAR);
  const share = data.tokens > 0 ? ((100 * view.tokens) / data.tokens).toFixed(1) : "100.0";
  const figures = `${number(data.tokens)} tokens → ${number(view.tokens)} in the view ${view.name} (${share} %)`;
  const notes = log.letters.split("n").length - 1;
  const entries = [count(HEAD - notes, "message"), notes > 0 ? count(notes, "note") : ""].filter(Boolean).join(", ");
  const replaced = Object.entries(data.redacted ?? {}).map(([kind, values]) => `${number(values)} ${kind}`).join(", ");
  const redacted = data.redacted ? `redacted: ${replaced || "nothing"}` : "";
  $("facts").textContent = [entries, times, figures, redacted, data.title ? data.session : ""].filter(Boolean).join("  ·  ");
}

// ---- Light and dark

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function showTheme() {
  $("theme").setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  drawStrip();
}

function switchTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
}

// ---- Keys and clicks

function moveBy(step) {
  const element = drawn.get(rows[active]?.key);
  const outer = box.getBoundingClientRect();
  const inner = element?.getBoundingClientRect();
  // A row that is higher than the window is scrolled through first.
  if (inner && step > 0 && inner.bottom > outer.bottom + 4 && inner.top < outer.bottom) {
    box.scrollTop += Math.min(inner.bottom - outer.bottom + 24, box.clientHeight * 0.8);
  } else if (inner && step < 0 && inner.top < outer.top - 4 && inner.bottom > outer.top) {
    box.scrollTop -= Math.min(outer.top - inner.top + 24, box.clientHeight * 0.8);
  } else {
    select(active + step);
  }
}

function goUp() {
  const row = rows[active];
  if (!row) return;
  if (row.type === "node" && row.node.open) toggle(active, false);
  else if (row.type !== "node" && unfolded.has(row.key)) toggle(active, false);
  else if (row.type === "node") row.node.parent && select(indexOf(row.node.parent.key));
  else select(indexOf(row.node.key));
}

function goDown() {
  const row = rows[active];
  if (!row) return;
  if (row.type === "node") {
    if (row.node.open) select(active + 1);
    else toggle(active, true);
  } else if (isFoldable(active) && !unfolded.has(row.key)) toggle(active, true);
}

const PAGE_SHARE = 0.85;

function pageBy(step) {
  const target = rowAt(Math.max(0, offsets[active] + step * box.clientHeight * PAGE_SHARE));
  select(target === active ? active + step : target);
}

const treeKeys = {
  ArrowDown: () => moveBy(1),
  ArrowUp: () => moveBy(-1),
  ArrowRight: goDown,
  ArrowLeft: goUp,
  Home: () => select(0),
  End: () => select(rows.length - 1),
  PageDown: () => pageBy(1),
  PageUp: () => pageBy(-1),
  Enter: () => (rows[active]?.type === "node" || isFoldable(active)) && toggle(active),
  " ": () => (rows[active]?.type === "node" || isFoldable(active)) && toggle(active),
};

const pageKeys = {
  "/": () => $("query").select(),
  "?": () => $("keys").showModal(),
  n: () => goToHit(1),
  p: () => goToHit(-1),
  v: () => chooseView(views[(views.indexOf(view) + 1) % views.length]),
  c: () => {
    const all = [null, ...budgets];
    chooseBudget(all[(all.indexOf(context?.budget ?? null) + 1) % all.length]);
  },
  t: switchTheme,
  Escape: () => endSearch(),
};

function endSearch() {
  $("query").value = "";
  startSearch("");
  drawStrip();
  box.focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  if (event.target === $("query")) {
    if (event.key === "Escape") endSearch();
    if (event.key === "ArrowDown") box.focus({ preventScroll: true });
    if (event.key !== "Escape" && event.key !== "ArrowDown") return;
    event.preventDefault();
    return;
  }
  const act = (event.target === box || event.target === document.body ? treeKeys[event.key] : undefined) ?? pageKeys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

$("search").addEventListener("submit", (event) => event.preventDefault());
$("query").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  goToHit(event.shiftKey ? -1 : 1);
});

let typing = 0;
$("query").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => startSearch($("query").value), 120);
});
$("previous").addEventListener("click", () => goToHit(-1));
$("next").addEventListener("click", () => goToHit(1));
$("theme").addEventListener("click", switchTheme);
$("help").addEventListener("click", () => $("keys").showModal());
radioKeys($("views"));
radioKeys($("budgets"));

$("rows").addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  const index = row ? indexOf(row.dataset.key) : -1;
  if (index < 0) return;
  const to = event.target.closest("[data-to]");
  if (to) goToMessage(Number(to.dataset.to));
  // A selection of text is no click.
  else if (getSelection().isCollapsed && (rows[index].type === "node" || event.target.closest("[data-fold]"))) toggle(index);
  else {
    drawn.get(rows[active]?.key)?.classList.remove("active");
    active = index;
    later();
  }
  box.focus({ preventScroll: true });
});

box.addEventListener("scroll", later, { passive: true });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
let boxWidth = box.clientWidth;
new ResizeObserver(() => {
  if (box.clientWidth !== boxWidth) heights.clear();
  boxWidth = box.clientWidth;
  layOut();
  drawMap();
  later();
}).observe(document.body);

$("title").textContent = data.title ?? data.session;
openSome();
flatten();
layOut();
drawSide();
render();
showTheme();
