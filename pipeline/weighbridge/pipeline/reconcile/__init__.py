"""What the engine did against what `usage` reported: match, explain to the last token, or name the residual."""
