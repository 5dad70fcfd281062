// Prints the perplexity that a peer, llama.cpp as the npm package node-llama-cpp
// carries it, gives a text: for docs/perplexity.md.
//
//	npm install --prefix bench/models --no-package-lock
//	node bench/models/perplexity.mjs MODEL.gguf TEXT [window] [F16|F32]
//
// Windows of 512 tokens that do not overlap, second half scored, evaluated from
// an empty context; an F32 cache unless told otherwise, 2 threads, no flash attention.
import {readFileSync} from "node:fs";
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const [file, path, size = "512", kv = "F32"] = process.argv.slice(2);
if (!path) {
  console.error("usage: node perplexity.mjs MODEL.gguf TEXT [window] [F16|F32]");
  process.exit(2);
}
const window = Number(size);
const llama = await getLlama({gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 2});
const model = await llama.loadModel({modelPath: file});
const bos = model.tokens.shouldPrependBosToken ? model.tokens.bos : undefined;
const text = model.tokenize(readFileSync(path, "utf8"), false);
const tokens = bos === undefined ? text : [bos, ...text];
const context = await model.createContext({
  contextSize: window, batchSize: window, threads: 2, flashAttention: false,
  experimentalKvCacheKeyType: kv, experimentalKvCacheValueType: kv,
});
const seq = context.getSequence();
let n = 0, sum = 0, squares = 0;
for (let at = 0; at + window <= tokens.length; at += window) {
  await seq.clearHistory();
  const w = tokens.slice(at, at + window);
  if (bos !== undefined) w[0] = bos;
  const first = Math.floor(window / 2);
  const outputs = await seq.controlledEvaluate(w.slice(0, -1).map((t, i) => i < first ? t : [t, {generateNext: {
    logits: {filter: {tokens: [w[i + 1]], includeTop: 1}}, totalLogitWeight: true,
  }}]));
  for (const [i, o] of outputs.entries()) {
    if (o === undefined) continue;
    const logits = new Map(o.next.logits);
    const best = Math.max(...logits.values());
    const l = best + Math.log(o.next.totalLogitWeight) - logits.get(w[i + 1]);
    n++;
    sum += l;
    squares += l * l;
  }
}
const mean = sum / n, ppl = Math.exp(mean);
console.log(JSON.stringify({tokens: tokens.length, scored_tokens: n, perplexity: ppl, mean_nll: mean,
  standard_error: ppl * Math.sqrt((squares / n - mean * mean) / (n - 1))}));
process.exit(0);
