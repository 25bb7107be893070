"""The runner of comparisons: one model, prompts, and strategies that are off or on, under the agent."""
