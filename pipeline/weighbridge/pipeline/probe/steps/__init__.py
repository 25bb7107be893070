"""Steps of a probe, one module each, declaring `STEP`: what it adds to the prompt, and what must hold."""
