// Package prompts holds the fixed set of prompts that answers are compared on:
// by recorded oracles, by the comparison of units and by that of settings.
//
// There are the four kinds of the seed documents: chat, code, qa and summary,
// five of each. Half of them are of the world that the embedded model knows, so
// that it has something to say. The set is part of recorded files; a prompt that
// is changed is another prompt and gets another name.
package prompts

import "slices"

// A Prompt is a user's message.
type Prompt struct {
	Kind string // one of Kinds
	Name string // such as "chat-1", never used for another text
	Text string
}

// Kinds are the kinds of prompts, in the order of All.
func Kinds() []string { return []string{"chat", "code", "qa", "summary"} }

// All returns the set.
func All() []Prompt { return slices.Clone(set[:]) }

var set = [...]Prompt{
	{"chat", "chat-1", "Hello"},
	{"chat", "chat-2", "Define compiler in two sentences."},
	{"chat", "chat-3", "Tell me a short story about a painter and her turtle."},
	{"chat", "chat-4", "I have moved to a new town and know nobody there. How do I find friends?"},
	{"chat", "chat-5", "Explain what a compute unit is, and why a step of one stream is a chain."},

	{"code", "code-1", "Complete this function:\n```python\ndef sum_list(numbers):\n    total = 0\n```"},
	{"code", "code-2", "Explain this code:\n```python\ndef count_down(n):\n    while n > 0:\n        print(n)\n        n -= 1\n```"},
	{"code", "code-3", "Rewrite this loop as a list comprehension and keep the names:\n```python\nlong_words = []\nfor word in words:\n    if len(word) > 6:\n        long_words.append(word.upper())\n```"},
	{"code", "code-4", "Write a Python function called reverse_string that reverses a string."},
	{"code", "code-5", "Write a Go function that returns the largest value of a slice of integers and an error if the slice is empty."},

	{"qa", "qa-1", "What is the capital of Italy?"},
	{"qa", "qa-2", "What is 7 * 8?"},
	{"qa", "qa-3", "Amber Engine is a program written in Rust. It was first released in 2016 by a team of 5 people led by Nora. When was Amber Engine first released?"},
	{"qa", "qa-4", "Leo has 12 pears and gives 4 of them to Mia. How many pears does Leo have now?"},
	{"qa", "qa-5", "The ferry leaves the island at 9:40 and arrives at 13:05; on Sundays it leaves an hour later. When does it arrive on Sundays?"},

	{"summary", "summary-1", "Summarize in one sentence:\nKarl is a baker who lives near the bridge. Last March he decided to repair the old oven in the bakery. The work took 4 weeks, and Ida helped him with the tools. On Monday many people came to taste the bread."},
	{"summary", "summary-2", "Summarize this text in one sentence and quote a phrase of it:\nA model can be split into four chunks. In our test c2 ran on the GPU and the other chunks ran on the CPU. We saw that handing over the rows takes time. The test was done on Tuesday and repeated 6 times."},
	{"summary", "summary-3", "Sum up this text in one sentence:\nThe shy heron is a well known animal of this river. It needs shallow water and quiet mornings to live well. Vera, who is a teacher, counts the animals every May. This year there were 27 of them."},
	{"summary", "summary-4", "Summarize: The council met to decide about the old railway bridge. Engineers had found rust in two of its five arches. Repairing it would cost four million, a new bridge eleven. After three hours the council voted to repair it, and to close it to lorries until the work is done."},
	{"summary", "summary-5", "Give the main points of this message as a list:\nThe workshop moves from Thursday to Friday, since the large room is taken. We begin at ten, not at nine. Please bring your laptop and some of your own data; lunch is paid for. Who cannot come tells Miriam by Wednesday."},
}
