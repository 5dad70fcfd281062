// Makes the texts that realmodel_test.go compares with: greedy answers of a
// peer, llama.cpp as the npm package node-llama-cpp carries it, to the prompts
// of prompts.json, and how far the peer is from itself when its settings change.
//
//	npm install --prefix bench/models --no-package-lock
//	node bench/models/peer.mjs MODEL.gguf chat|raw OUT.json
//
// With chat a prompt's "text" is a user's message in the template of the file,
// with raw its "raw" is the beginning of a text.
//
// The base setting generates token by token on the CPU with 2 threads, an F16
// cache and no flash attention. Each other setting is then given the same
// tokens, so that nothing changes but the order of sums and the precision of
// intermediate values, and yet at some positions another token becomes the best.
// For each setting the file has, over all positions,
//
//	other_token    how often another token than the base setting's is the best
//	largest_lead   the most that such a token leads by, in log-probability
//	largest, rms   how far the margin of the base setting's best two tokens moves
//
// The bound for another program is the largest of "largest": when the margin of
// the best two tokens moves by that much, the second may come to lead by as
// much. (The largest lead itself is a poor bound: where the weights are F32 it
// comes from one or two positions.)
//
// SmolLM2-135M-Instruct.F32.gguf is made by the test, from the Q4_1 file.
import {createHash} from "node:crypto";
import {createReadStream, readFileSync, writeFileSync} from "node:fs";
import {basename} from "node:path";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";
import {Template} from "@huggingface/jinja";

const newTokens = 48;
const settings = [
  {name: "base", stepwise: true, flash: false, kv: "F16"},
  {name: "one pass", stepwise: false, flash: false, kv: "F16"},
  {name: "flash attention", stepwise: true, flash: true, kv: "F16"},
  {name: "one pass, flash attention", stepwise: false, flash: true, kv: "F16"},
  {name: "F32 cache", stepwise: true, flash: false, kv: "F32"},
  {name: "one pass, F32 cache", stepwise: false, flash: false, kv: "F32"},
];

const [file, form, out] = process.argv.slice(2);
if (!out || !["chat", "raw"].includes(form)) {
  console.error("usage: node peer.mjs MODEL.gguf chat|raw OUT.json");
  process.exit(2);
}
const prompts = JSON.parse(readFileSync(new URL("prompts.json", import.meta.url)));
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 2});
const model = await llama.loadModel({modelPath: file});
const own = JSON.parse(readFileSync(new URL("../package.json", import.meta.resolve("node-llama-cpp"))));

const round = (x) => Math.round(x * 1e5) / 1e5;

// tokens of a prompt, with the token at the beginning that the file asks for.
function encode(prompt) {
  if (form === "chat") {
    const template = new Template(model.fileInfo.metadata.tokenizer.chat_template);
    return model.tokenize(template.render({
      messages: [{role: "user", content: prompt.text}],
      add_generation_prompt: true,
      bos_token: model.tokens.bosString ?? "",
      eos_token: model.tokens.eosString ?? "",
    }), true);
  }
  const ids = model.tokenize(prompt.raw, false);
  return model.tokens.shouldPrependBosToken ? [model.tokens.bos, ...ids] : ids;
}

// evaluates tokens and returns, from the n-th on, the best two tokens that
// follow, best first, and the log-probabilities of them and of the tokens asked for.
async function evaluate(seq, tokens, n, ask) {
  const outputs = await seq.controlledEvaluate(tokens.map((t, i) => i < n ? t : [t, {generateNext: {
    logits: {filter: {tokens: ask[i - n] ?? [], includeTop: 2}}, totalLogitWeight: true,
  }}]));
  return outputs.filter((o) => o !== undefined).map(({next}) => {
    const best = [...next.logits].sort((a, b) => b[1] - a[1]);
    const all = best[0][1] + Math.log(next.totalLogitWeight);
    return {best: best.slice(0, 2).map(([t]) => t), logprob: new Map(best.map(([t, l]) => [t, l - all]))};
  });
}

async function generate(seq, prompt) {
  const greedy = [], second = [], logprob = [];
  let tokens = prompt, skip = prompt.length - 1;
  while (greedy.length < newTokens) {
    const [{best, logprob: lp}] = await evaluate(seq, tokens, skip, []);
    greedy.push(best[0]);
    second.push(best[1]);
    logprob.push(best.map((t) => round(lp.get(t))));
    if (model.isEogToken(best[0])) break;
    tokens = [best[0]];
    skip = 0;
  }
  return {prompt, greedy, second, logprob};
}

// evaluates a generated text in another setting: what follows each position.
async function force(seq, text, stepwise) {
  const ask = text.greedy.map((t, i) => [t, text.second[i]]);
  const given = text.greedy.slice(0, -1), first = text.prompt.length - 1;
  if (!stepwise) return evaluate(seq, [...text.prompt, ...given], first, ask);
  const result = await evaluate(seq, text.prompt, first, [ask[0]]);
  for (const [i, t] of given.entries()) result.push(...await evaluate(seq, [t], 0, [ask[i + 1]]));
  return result;
}

async function withSequence(setting, use) {
  const context = await model.createContext({
    contextSize: 1024, batchSize: 1024, threads: 2, flashAttention: setting.flash,
    experimentalKvCacheKeyType: setting.kv, experimentalKvCacheValueType: setting.kv,
  });
  const seq = context.getSequence();
  const result = [];
  for (const item of use.items) {
    await seq.clearHistory();
    result.push(await use.each(seq, item));
  }
  await context.dispose();
  return result;
}

const texts = await withSequence(settings[0], {items: prompts.map(encode), each: generate});
const noise = [];
for (const setting of settings.slice(1)) {
  const all = await withSequence(setting, {items: texts, each: (seq, t) => force(seq, t, setting.stepwise)});
  let largest = 0, squares = 0, positions = 0, other = 0, lead = 0;
  texts.forEach((t, k) => t.greedy.forEach((best, i) => {
    const {best: [mine], logprob} = all[k][i];
    const [a, b] = t.logprob[i];
    const moved = Math.abs(logprob.get(best) - logprob.get(t.second[i]) - (a - b));
    largest = Math.max(largest, moved);
    squares += moved * moved;
    positions++;
    if (mine !== best) {
      other++;
      lead = Math.max(lead, logprob.get(mine) - logprob.get(best));
    }
  }));
  noise.push({setting: setting.name, largest: round(largest), rms: round(Math.sqrt(squares / positions)),
    other_token: other, largest_lead: round(lead)});
  console.error(noise.at(-1));
}

const hash = createHash("sha256");
for await (const part of createReadStream(file)) hash.update(part);
const head = {
  model: basename(file),
  sha256: hash.digest("hex"),
  peer: `node-llama-cpp ${own.version}, llama.cpp ${(llama.llamaCppRelease ?? {}).release ?? "?"}`,
  form,
  positions: texts.reduce((n, t) => n + t.greedy.length, 0),
  bound: Math.max(...noise.map((n) => n.largest)),
};
// One line for each setting and text, so that a change can be read.
const lines = (items) => "[\n" + items.map((x) => "    " + JSON.stringify(x)).join(",\n") + "\n  ]";
writeFileSync(out, JSON.stringify(head, null, 2).slice(0, -2) +
  `,\n  "noise": ${lines(noise)},\n  "texts": ${lines(texts.map((t, k) => ({
    kind: prompts[k].kind, input: form === "chat" ? prompts[k].text : prompts[k].raw,
    output: model.detokenize(t.greedy, true), ...t})))}\n}\n`);
process.exit(0);
