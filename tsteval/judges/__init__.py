"""A language model as judge: prompts, the model in the process or at an address, its answers as scores."""
