#!/usr/bin/env python3
"""Writes goldens.json and features.json with Jinja2, the reference, set up as chat templates expect it.
Run it in this folder after a change of the templates, the conversations or features.txt."""
import datetime, json, os
from jinja2.sandbox import ImmutableSandboxedEnvironment

env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
env.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
now = datetime.datetime(2025, 2, 3, 4, 5, 6)
env.globals["strftime_now"] = lambda f: now.strftime(f)


class Refused(Exception):
    pass


def refuse(reason):
    raise Refused(reason)


env.globals["raise_exception"] = refuse
tokens = {"gemma": ("<bos>", "<eos>"), "llama": ("<|begin_of_text|>", "<|eot_id|>")}


def render(source, name, messages, prompt):
    bos, eos = tokens.get(name[:5], ("<s>", "</s>"))
    return env.from_string(source).render(messages=messages, add_generation_prompt=prompt, bos_token=bos,
                                          eos_token=eos, tools=None, documents=None)


conversations = json.load(open("conversations.json"))
goldens = []
for file in sorted(os.listdir("templates")):
    source = open("templates/" + file, newline="").read()
    for conversation, messages in conversations.items():
        for prompt in (False, True):
            golden = {"template": file, "conversation": conversation, "prompt": prompt}
            try:
                golden["text"] = render(source, file, messages, prompt)
            except Refused as e:
                golden["refused"] = str(e)
            goldens.append(golden)
json.dump(goldens, open("goldens.json", "w"), indent=1)

features = []
for line in open("features.txt", newline="\n"):
    line = line.rstrip("\n")
    if line and not line.startswith("##"):
        source = line.replace("⏎", "\n")
        features.append({"source": source, "text": render(source, "", conversations["hello"], True)})
json.dump(features, open("features.json", "w"), indent=1)
