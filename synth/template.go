package synth

// template returns a chat template for an architecture, in its form of turns.
func template(arch string) string {
	switch arch {
	case "gemma4":
		return "{{ bos_token }}{% for message in messages %}" +
			"{{ '<|turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\\n' + message['content'] | trim + '<turn|>\\n' }}" +
			"{% endfor %}{% if add_generation_prompt %}{{ '<|turn>model\\n' }}{% endif %}"
	case "gemma3": // there is no turn of the system: what it says opens the user's
		return "{{ bos_token }}{% for message in messages %}" +
			"{% if message['role'] == 'system' %}{{ '<start_of_turn>user\\n' + message['content'] | trim + '\\n\\n' }}" +
			"{% else %}{% if loop.index0 == 0 or messages[0]['role'] != 'system' or loop.index0 > 1 %}" +
			"{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else 'user') + '\\n' }}{% endif %}" +
			"{{ message['content'] | trim + '<end_of_turn>\\n' }}{% endif %}" +
			"{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
	case "llama":
		return "{{ bos_token }}{% for message in messages %}" +
			"{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}" +
			"{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
	}
	return "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}" +
		"{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
}
